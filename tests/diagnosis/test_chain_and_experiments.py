"""A link needs evidence in the right order; a result is compared with what was predicted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.diagnosis.engine import assess
from bot.diagnosis.experiments import judge_experiment
from bot.domain.finding import ProbeStatus
from bot.domain.hypothesis import NextExperiment
from bot.domain.incident import ExperimentVerdict
from bot.domain.text import Localized
from tests.diagnosis.test_engine import CASES
from tests.diagnosis.worlds import CATALOGUE, ONSET, SERVICE, SURGE, probe, world

LATER = ONSET + timedelta(minutes=6)


def test_disk_that_became_slow_after_the_loader_is_not_its_cause() -> None:
    late = ("disk.latency", "host.io_pressure", "host.blocked", "writes.service", "logs.shipped")
    collected = world(
        SURGE,
        probes=[probe("process_threads", "proc.blocked_io")],
        onsets=dict.fromkeys(late, LATER),
    )
    found = {item.cause: item for item in assess(collected, CATALOGUE, SERVICE).hypotheses}
    assert found["data_loading_blocked"].chain == ("data_loading_blocked",)


def test_disk_without_log_volume_is_itself_the_root() -> None:
    calm_logs = {**SURGE, "logs.shipped": 60.0}
    collected = world(
        calm_logs,
        probes=[
            probe("host_disk", "disk.latency_high"),
            probe("process_threads", "proc.blocked_io"),
        ],
    )
    first = assess(collected, CATALOGUE, SERVICE).hypotheses[0]
    assert first.chain == ("data_loading_blocked", "disk_io_saturation")


EXPERIMENT = NextExperiment(
    probe="gpu_allocator", node="node-1", args={}, query=None,
    expects=Localized.verbatim(""), would_refute=Localized.verbatim(""),
)  # fmt: skip


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        (["gpu.host_alloc_slow"], ExperimentVerdict.AS_PREDICTED),
        (["gpu.allocator_ok"], ExperimentVerdict.CONTRARY),
        (["gpu.fragmentation"], ExperimentVerdict.UNCLEAR),
        (["gpu.host_alloc_slow", "gpu.allocator_ok"], ExperimentVerdict.UNCLEAR),
        ([], ExperimentVerdict.UNCLEAR),
    ],
)
def test_result_is_compared_with_the_prediction(
    findings: list[str], verdict: ExperimentVerdict
) -> None:
    result = probe("gpu_allocator", *findings)
    outcome = judge_experiment("pinned_memory_contention", EXPERIMENT, result, CATALOGUE)
    assert outcome.verdict is verdict


def test_probe_that_could_not_look_is_unclear() -> None:
    result = replace(probe("gpu_allocator", "gpu.allocator_ok"), status=ProbeStatus.TIMEOUT)
    outcome = judge_experiment("pinned_memory_contention", EXPERIMENT, result, CATALOGUE)
    assert outcome.verdict is ExperimentVerdict.UNCLEAR


def test_next_experiment_is_one_that_was_not_answered_yet() -> None:
    collected = CASES["pinned_memory_contention"]
    without_stacks = replace(
        collected, probes=tuple(p for p in collected.probes if p.probe != "process_stacks")
    )
    first = assess(without_stacks, CATALOGUE, SERVICE).hypotheses[0]
    assert first.cause == "pinned_memory_contention"
    assert first.next_experiment is not None
    assert first.next_experiment.probe == "process_stacks"
    assert first.next_experiment.args["service"] == SERVICE.name


def test_both_outcomes_of_the_next_experiment_are_told_with_what_they_do() -> None:
    found = assess(CASES["pinned_memory_contention"], CATALOGUE, SERVICE)
    shares = {item.cause: item.probability for item in found.hypotheses}
    for item in found.hypotheses[:4]:
        planned = item.next_experiment
        if item.cause == "not_established" or planned is None:
            continue
        after = [
            float(text.en.rsplit("would make it ", 1)[1].split(" %")[0]) / 100
            for text in (planned.expects, planned.would_refute)
        ]
        assert after[1] <= shares[item.cause] + 0.01 <= after[0] + 0.02
        assert "概率" in planned.expects.zh
