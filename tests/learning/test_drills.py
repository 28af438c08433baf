"""An exercise shows what its cause's own evidence says, recovers by the right fix only, and scores by its rules."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest

from bot.cause import AllOf, AnyOf, ChangeTest, FindingTest, LogTest, Not, Test
from bot.diagnosis.engine import diagnose
from bot.diagnosis.recovery import SymptomState, check_symptom
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.diagnosis.tracing import trace_paths
from bot.domain.evidence import SourceState
from bot.domain.finding import ProbeStatus
from bot.domain.hypothesis import NextExperiment
from bot.domain.incident import Fix, Mitigation, RootCause
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.domain.timeline import EntryKind
from bot.inventory import Inventory, Node, Service
from bot.learning.drills.debrief import model_path
from bot.learning.drills.exercise import exercise_ports, recovered_at
from bot.learning.drills.sampling import sample
from bot.learning.drills.scoring import score
from bot.sop import load_sop, shipped_sops
from tests.diagnosis.worlds import CATALOGUE
from tests.learning.written import NOW, draft, ledger, probed

INVENTORY = Inventory(
    nodes={name: Node(name=name, url=None) for name in ("gpu-1", "gpu-2")},
    services={
        "translate-api": Service(
            name="translate-api", nodes=("gpu-1", "gpu-2"), depends_on=("store",), selectors={"app": "translate"}
        )
    },
)  # fmt: skip
SOP = load_sop([shipped_sops()])


class Never:
    """A real source that must not be asked by an exercise."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"an exercise asked a real source: {name}")


def real() -> DiagnosisPorts:
    never = Never()
    return DiagnosisPorts(
        inventory=INVENTORY, catalogue=CATALOGUE, clock=lambda: NOW,
        metrics=never, logs=never, traces=never, changes=never, cluster=never, probes=never,
    )  # fmt: skip


def drill(cause: str):
    return ledger("INC-1", drill=cause, days_ago=0.0, is_over=False).incident


@pytest.mark.parametrize("cause", sorted(CATALOGUE.causes))
async def test_the_engine_finds_the_played_cause(cause: str) -> None:
    ports = exercise_ports(real(), drill(cause), lambda: NOW, None)
    request = DiagnosisRequest(service="translate-api", at=NOW, deadline_seconds=30)
    found = await diagnose(request, ports)
    assert found.hypotheses[0].cause == cause
    assert found.symptoms, "nobody would call this an incident"
    names = ("metrics", "logs", "traces", "events", "probes")
    assert {found.sources[name] for name in names} == {SourceState.OK}


async def test_the_played_traces_tell_the_phase_that_the_cause_slows_and_recover_with_it() -> None:
    later = NOW + timedelta(minutes=20)
    over = replace(
        drill("pinned_memory_contention"),
        root_cause=confirmed("pinned_memory_contention"),
        fix=Fix(text=Localized.verbatim("x"), by="U1", at=NOW + timedelta(minutes=6)),
    )
    traces = exercise_ports(real(), over, lambda: later, None).traces
    assert traces is not None

    async def copying(minutes: int) -> float:
        end = NOW + timedelta(minutes=minutes)
        window = Window(end - timedelta(minutes=5), end)
        answer = await traces.spans("translate-api", window, limit=10, timeout_seconds=1)
        paths = trace_paths(answer.items, "translate-api")
        assert len(paths) == 10 and all(path.has_service and path.peers for path in paths)
        return median(path.seconds["h2d"] for path in paths)

    before, during, after = await copying(-20), await copying(0), await copying(20)
    assert during > 3 * before and after == pytest.approx(before, rel=0.1)
    own = await traces.spans(
        "someone-else", Window(NOW - timedelta(hours=1), NOW), limit=5, timeout_seconds=1
    )
    assert own.items == ()


def leaves(test: Test) -> list[Test]:
    match test:
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return [leaf for part in parts for leaf in leaves(part)]
        case Not(part=part):
            return leaves(part)
        case _:
            return [test]


PATTERNS = sorted(
    {
        leaf.pattern
        for cause in CATALOGUE.causes.values()
        for rule in cause.evidence
        for leaf in leaves(rule.test)
        if isinstance(leaf, LogTest | ChangeTest | FindingTest) and leaf.pattern
    }
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_written_sample_is_one_that_the_pattern_matches(pattern: str) -> None:
    written = sample(pattern)
    assert written is not None
    assert re.search(pattern, written, re.IGNORECASE)


@pytest.mark.parametrize("pattern", ["(", "[", "a{", "\\", "(?P<", "(?=never)ever", "x{2,"])
def test_a_pattern_that_cannot_be_written_gives_none_and_never_raises(pattern: str) -> None:
    assert sample(pattern) is None or re.search(pattern, sample(pattern) or "")


def confirmed(cause: str) -> RootCause:
    text = Localized.verbatim("x")
    return RootCause(
        cause=cause, chain=(cause,), trigger=None, deep_cause=text, prevention=text,
        evidence=(), by="U1", at=NOW + timedelta(minutes=5),
    )  # fmt: skip


@pytest.mark.parametrize(("named", "helps"), [("cpu_contention", True), ("memory_leak", False)])
async def test_only_the_fix_of_the_right_cause_takes_the_symptom_away(
    named: str, helps: bool
) -> None:
    fixed_at = NOW + timedelta(minutes=6)
    later = fixed_at + timedelta(minutes=10)
    incident = replace(
        drill("cpu_contention"),
        root_cause=confirmed(named),
        fix=Fix(text=Localized.verbatim("x"), by="U1", at=fixed_at),
    )
    ports = exercise_ports(real(), incident, lambda: later, None)
    request = DiagnosisRequest(service="translate-api", at=later, deadline_seconds=30)
    check = await check_symptom(request, fixed_at, ports, onset=NOW - timedelta(minutes=15))
    assert check.state is (SymptomState.CLEARED if helps else SymptomState.FOUND)
    assert ports.probes is not None
    result = await ports.probes.run("gpu-2", "host_cpu", {}, subject="U1", timeout_seconds=1)
    other = await ports.probes.run("gpu-1", "host_cpu", {}, subject="U1", timeout_seconds=1)
    seen = {item.id for one in (result, other) for item in one.findings}
    assert (seen == {"cpu.ok"}) is helps


def test_a_mitigation_helps_whatever_the_cause() -> None:
    at = NOW + timedelta(minutes=2)
    calmed = replace(drill("cpu_contention"), mitigations=(Mitigation(text=None, by="U1", at=at),))
    assert recovered_at(calmed) == at


async def test_a_heavy_probe_needs_its_approval_in_an_exercise_too() -> None:
    ports = exercise_ports(real(), drill("cpu_contention"), lambda: NOW, None)
    assert ports.probes is not None
    run = ports.probes.run
    denied = await run("gpu-1", "h2d_bandwidth", {}, subject="U1", timeout_seconds=1)
    allowed = await run(
        "gpu-1", "h2d_bandwidth", {}, subject="U1", timeout_seconds=1, approved_by="U2"
    )
    unknown = await run("gpu-9", "host_cpu", {}, subject="U1", timeout_seconds=1)
    assert [denied.status, allowed.status, unknown.status] == [
        ProbeStatus.DENIED,
        ProbeStatus.OK,
        ProbeStatus.UNSUPPORTED,
    ]


async def test_a_cause_that_left_the_catalogue_never_falls_back_on_real_sources() -> None:
    ports = exercise_ports(real(), drill("gone"), lambda: NOW, None)
    assert (ports.metrics, ports.logs, ports.probes) == (None, None, None)


def steps(*names: str) -> list:
    at = NOW
    return [
        item
        for name in names
        for item in (
            draft(EntryKind.STEP, at, "s", by="U1", op="entered", step=name),
            draft(EntryKind.STEP, at, "s", by="U1", op="passed", step=name),
        )
    ]


ALL_STEPS = ("symptom", "information", "hypotheses", "verification", "root_cause", "review")


def trial_of(cause: str, verdict: str = "as_predicted") -> list:
    planned = NextExperiment(
        probe="host_cpu", node="gpu-1", args={}, query=None,
        expects=Localized.verbatim("x"), would_refute=Localized.verbatim("y"),
    )  # fmt: skip
    text = {"en": "x", "zh-CN": "x"}
    return [
        draft(
            EntryKind.EXPERIMENT, NOW - timedelta(minutes=1), "p", by="U1", op="planned", id="X-1", cause=cause,
            probe=planned.probe, node=planned.node, args={}, query=None, predicted=text, would_refute=text,
        ),
        draft(
            EntryKind.EXPERIMENT, NOW, "f", op="finished", id="X-1", verdict=verdict, result=text, evidence=[]
        ),
    ]  # fmt: skip


def points(**given) -> dict[str, int]:
    made = ledger("INC-1", drill="cpu_contention", days_ago=0.0, **given)
    return {part.name: part.points for part in score(made, SOP).parts}


def test_the_model_responder_gets_all_points() -> None:
    found = points(cause="cpu_contention", more=[*steps(*ALL_STEPS), *trial_of("cpu_contention")])
    assert found == {"cause": 40, "order": 20, "conclusions": 15, "probes": 10, "time": 15}


def test_a_jumped_conclusion_costs_its_points() -> None:
    assert points(cause="cpu_contention", more=steps(*ALL_STEPS))["conclusions"] == 0
    contrary = [*steps(*ALL_STEPS), *trial_of("cpu_contention", "contrary")]
    assert points(cause="cpu_contention", more=contrary)["conclusions"] == 0


def test_wrong_cause_skipped_steps_wasted_probes_and_slowness_cost() -> None:
    skipped = [draft(EntryKind.STEP, NOW, "s", by="U1", op="skipped", step="information")]
    found = points(
        cause="memory_leak",
        confirmed_after=3600.0,
        more=[*steps("symptom", "hypotheses"), *skipped, probed("host_disk", "disk.ok")],
    )
    assert found == {"cause": 0, "order": 0, "conclusions": 0, "probes": 8, "time": 0}


def test_wrong_answer_is_not_better_for_having_been_quick_and_is_told_by_its_title() -> None:
    made = ledger("INC-1", drill="cpu_contention", cause="memory_leak", confirmed_after=60.0)
    parts = {part.name: part for part in score(made, SOP, CATALOGUE.causes).parts}
    assert parts["time"].points == 0
    for shown in (parts["cause"].why, parts["order"].why):
        for text in (shown.en, shown.zh):
            assert not re.search("cpu_contention|memory_leak|root_cause", text)
    assert CATALOGUE.causes["cpu_contention"].title.zh in parts["cause"].why.zh


def test_no_conclusion_is_no_jumped_one() -> None:
    found = points(more=steps(*ALL_STEPS))
    assert (found["cause"], found["conclusions"], found["time"]) == (0, 15, 0)


def test_a_real_incident_is_not_scored() -> None:
    with pytest.raises(ValueError, match="no exercise"):
        score(ledger("INC-1", cause="cpu_contention"), SOP)


@pytest.mark.parametrize("cause", sorted(CATALOGUE.causes))
def test_the_model_path_has_every_step_in_both_languages(cause: str) -> None:
    path = model_path(drill(cause), CATALOGUE)
    assert [item.step for item in path] == list(ALL_STEPS)
    for item in path:
        assert all(text.en and text.zh for text in item.texts)


def test_saved_cases_are_found_in_the_knowledge_folder(tmp_path: Path) -> None:
    from bot.learning.drills.exercise import saved_cases

    (tmp_path / "cases" / "INC-7.case").mkdir(parents=True)
    assert saved_cases(tmp_path) == {}
    (tmp_path / "cases" / "INC-7.case" / "case.json").write_text("{}")
    assert list(saved_cases(tmp_path)) == ["INC-7.case"]
    assert saved_cases(None) == {}
