"""From raw answers to a ranking: the mechanism is named, and where the data does not carry it nothing is."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.diagnosis.as_json import diagnosis_to_json
from bot.diagnosis.engine import assess
from bot.domain.change import ChangeKind
from bot.domain.evidence import SourceState
from bot.domain.hypothesis import NOT_ESTABLISHED, Diagnosis, LayerState
from tests.diagnosis.worlds import (
    AT,
    CATALOGUE,
    CLOCK,
    CPU,
    LOADER,
    LOCK,
    NODE,
    ONSET,
    PINNED,
    SERVICE,
    SURGE,
    change,
    line,
    probe,
    reading,
    series,
    world,
)


def diagnosed(*args: object, **kwargs: object) -> Diagnosis:
    return assess(world(*args, **kwargs), CATALOGUE, SERVICE)  # type: ignore[arg-type]


CASES = {
    "pinned_memory_contention": world(
        PINNED,
        probes=[
            probe("gpu_allocator", "gpu.host_alloc_slow"),
            probe("process_stacks", "proc.lock_contention", summary="20 threads in pool.acquire"),
        ],
    ),
    "cpu_contention": world(
        CPU,
        probes=[
            probe("host_cpu", "cpu.pressure"),
            probe("process_threads", "proc.runnable_waiting"),
        ],
    ),
    "gpu_clock_throttling": world(CLOCK, probes=[probe("gpu_state", "gpu.throttle_thermal")]),
    "lock_contention": world(
        LOCK,
        probes=[
            probe("process_stacks", "proc.lock_contention", summary="30 threads in cache.get"),
            probe("process_threads", "proc.lock_wait"),
        ],
    ),
    "data_loading_blocked": world(
        LOADER,
        probes=[probe("process_stacks", "proc.waiting_for_input")],
        lines=[line("reader worker 3 exited")],
    ),
    "log_write_surge": world(
        SURGE,
        probes=[
            probe("log_health", "log.write_surge"),
            probe("process_threads", "proc.blocked_io"),
            probe("host_disk", "disk.latency_high"),
        ],
    ),
}


@pytest.mark.parametrize("cause", sorted(CASES))
def test_mechanism_is_named_with_its_node(cause: str) -> None:
    first = assess(CASES[cause], CATALOGUE, SERVICE).hypotheses[0]
    assert first.cause == cause
    assert first.probability > 0.6
    assert first.node == NODE
    assert first.next_experiment is not None


def test_metrics_alone_name_pinned_memory_too() -> None:
    collected = replace(world(PINNED), probes=(), service_lines=(), node_lines=())
    first = assess(collected, CATALOGUE, SERVICE).hypotheses[0]
    assert first.cause == "pinned_memory_contention"


def test_surge_is_the_root_beneath_disk_and_loader() -> None:
    first = assess(CASES["log_write_surge"], CATALOGUE, SERVICE).hypotheses[0]
    assert first.chain == ("data_loading_blocked", "disk_io_saturation", "log_write_surge")


def test_calm_service_is_not_established() -> None:
    first = diagnosed().hypotheses[0]
    assert first.cause == NOT_ESTABLISHED
    assert first.probability > 0.8


def test_latency_without_any_cause_is_not_established() -> None:
    diagnosis = diagnosed({"latency.client": 0.4, "latency.server": 0.35})
    assert [symptom.id for symptom in diagnosis.symptoms] == ["latency"]
    assert diagnosis.hypotheses[0].cause == NOT_ESTABLISHED


def test_short_blip_is_no_symptom() -> None:
    blip = series(0.08, 0.9, onset=ONSET, until=ONSET + timedelta(seconds=90))
    collected = world()
    collected = replace(
        collected, now={**collected.now, "latency.client": reading("latency.client", blip)}
    )
    diagnosis = assess(collected, CATALOGUE, SERVICE)
    assert diagnosis.symptoms == ()
    assert diagnosis.hypotheses[0].cause == NOT_ESTABLISHED


def test_everything_down_is_not_established_and_says_what_was_not_seen() -> None:
    collected = replace(
        world(PINNED), now={}, probes=(), service_lines=(), node_lines=(), log_window=None,
        states=dict.fromkeys(world().states, SourceState.UNREACHABLE),
    )  # fmt: skip
    diagnosis = assess(collected, CATALOGUE, SERVICE)
    assert diagnosis.hypotheses[0].cause == NOT_ESTABLISHED
    assert len(diagnosis.blind_spots) == 5
    assert {verdict.state for verdict in diagnosis.layers} == {LayerState.NOT_CHECKED}


def test_probe_after_recovery_clears_nothing() -> None:
    collected = world(CPU)
    over = AT - timedelta(minutes=4)
    back = {
        name: reading(
            name,
            series(
                found.series[0].samples[0].value or 0.0,
                CPU[name],
                labels=found.series[0].labels,
                until=over,
            ),
        )
        for name, found in collected.now.items()
        if name in CPU
    }
    collected = replace(collected, now={**collected.now, **back})
    diagnosis = assess(collected, CATALOGUE, SERVICE)
    first = diagnosis.hypotheses[0]
    assert first.cause == "cpu_contention"
    assert not any(reason.source.value == "probe" for reason in first.against)


def test_guilty_change_may_be_older_than_an_innocent_deploy() -> None:
    changes = [
        change("old", "staging buffers: pool per-request", AT - timedelta(days=3)),
        change("new", "release 4.2", AT - timedelta(minutes=20), ChangeKind.DEPLOY, "store"),
        change("after", "preallocated pool", AT - timedelta(minutes=1)),
    ]
    collected = replace(CASES["pinned_memory_contention"], changes=tuple(changes))
    trigger = assess(collected, CATALOGUE, SERVICE).hypotheses[0].trigger
    assert trigger is not None
    assert trigger.change == "old"


def test_shares_sum_to_one_and_the_same_input_gives_the_same_bytes() -> None:
    first = assess(CASES["lock_contention"], CATALOGUE, SERVICE)
    again = assess(CASES["lock_contention"], CATALOGUE, SERVICE)
    assert math.isclose(math.fsum(item.probability for item in first.hypotheses), 1, abs_tol=1e-9)
    texts = [json.dumps(diagnosis_to_json(item), allow_nan=False) for item in (first, again)]
    assert texts[0] == texts[1]


def test_json_has_the_shape_of_the_contract() -> None:
    value = diagnosis_to_json(assess(CASES["log_write_surge"], CATALOGUE, SERVICE), "INC-1")
    assert set(value) == {
        "incident", "service", "at", "symptoms", "hypotheses", "layers", "sources", "blind_spots",
    }  # fmt: skip
    first = value["hypotheses"][0]
    assert set(first) == {
        "rank", "cause", "probability", "node", "component", "chain", "for", "against", "missing",
        "trigger", "next_experiment",
    }  # fmt: skip
    assert set(first["next_experiment"]) == {"probe", "node", "expects", "would_refute"}
    assert set(first["trigger"]) == {"change", "summary"}
    assert all(set(item) == {"source", "summary", "ref"} for item in first["for"])
    assert sum(item["probability"] for item in value["hypotheses"]) == pytest.approx(1, abs=1e-9)
    assert set(value["sources"]) == {"metrics", "logs", "traces", "events", "probes"}
    assert {item["layer"] for item in value["layers"]} == {
        "input", "application", "model", "runtime", "gpu", "host", "network", "storage",
        "dependency",
    }  # fmt: skip


def test_every_cited_id_is_among_the_evidence() -> None:
    diagnosis = assess(CASES["data_loading_blocked"], CATALOGUE, SERVICE)
    known = {item.id for item in diagnosis.evidence}
    cited = {
        reason.ref
        for item in diagnosis.hypotheses
        for reason in (*item.supports, *item.against)
        if reason.ref
    }
    assert cited
    assert cited <= known
