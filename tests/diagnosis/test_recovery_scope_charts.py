"""Is the symptom gone, who is affected, and what the charts show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.diagnosis.charts import deciding_charts
from bot.diagnosis.collected import Reading
from bot.diagnosis.engine import assess
from bot.diagnosis.recovery import SymptomState, judge_recovery
from bot.diagnosis.request import DiagnosisPorts
from bot.diagnosis.scope import propose_scope, vague
from bot.inventory import Inventory
from tests.diagnosis.test_engine import CASES
from tests.diagnosis.worlds import (
    AT,
    CATALOGUE,
    ONSET,
    SERVICE,
    change,
    reading,
    series,
    world,
)

PORTS = DiagnosisPorts(inventory=Inventory(), catalogue=CATALOGUE, clock=lambda: datetime.now(UTC))
FIXED = AT - timedelta(minutes=6)


def latency(until: datetime | None) -> dict[str, Reading]:
    found = reading("latency.client", series(0.08, 0.6, onset=ONSET, until=until))
    return {**world().now, "latency.client": found}


@pytest.mark.parametrize(
    ("until", "state"), [(FIXED, SymptomState.CLEARED), (None, SymptomState.FOUND)]
)
def test_level_since_the_fix_decides(until: datetime | None, state: SymptomState) -> None:
    collected = replace(world(), now=latency(until))
    check = judge_recovery(collected, PORTS, FIXED, onset=ONSET)
    assert check.state is state
    assert check.evidence
    assert "ms" in check.summary.en


def test_what_users_feel_is_told_first_and_the_rest_is_cited() -> None:
    idle = reading("gpu.busy", series(60.0, 20.0, onset=ONSET, until=FIXED))
    now = {"gpu.busy": idle, **latency(FIXED)} | {"gpu.busy": idle}
    check = judge_recovery(replace(world(), now=now), PORTS, FIXED, onset=ONSET)
    assert check.state is SymptomState.CLEARED
    assert "latency" in check.summary.en
    assert [item.plugin for item in check.evidence] == ["latency.client", "gpu.busy"]


def test_onset_is_found_without_being_told() -> None:
    collected = replace(world(), now=latency(FIXED))
    assert judge_recovery(collected, PORTS, FIXED, onset=None).state is SymptomState.CLEARED


def test_too_soon_after_the_fix_is_unknown() -> None:
    just_now = AT - timedelta(seconds=20)
    collected = replace(world(), now=latency(just_now))
    check = judge_recovery(collected, PORTS, just_now, onset=ONSET)
    assert check.state is SymptomState.UNKNOWN


def test_no_metric_is_unknown_and_never_cleared() -> None:
    collected = replace(world(), now={})
    assert judge_recovery(collected, PORTS, FIXED, onset=ONSET).state is SymptomState.UNKNOWN


def test_workload_is_the_victim_and_not_the_exporter() -> None:
    labels = {"pod": "dcgm-exporter-x", "exported_pod": "chat-0", "Hostname": "gpu-7"}
    scope = propose_scope({"model_name": "m1", "tenant": "t9"}, [series(1, 1, labels=labels)])
    assert scope.replicas == ("chat-0",)
    assert scope.nodes == ("gpu-7",)
    assert (scope.models, scope.tenants) == (("m1",), ("t9",))
    assert not scope.is_confirmed


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("it is slow", ["what", "scope", "since"]),
        ("P99 latency 80 ms to 600 ms on node gpu-1 since 20:10", []),
        ("P99 延迟从 80 毫秒升到 600 毫秒，所有节点，自 20:10 起", []),
        ("errors 12 % for tenant acme", ["since"]),
        ("latency is bad on all replicas since 20:10", ["what"]),
    ],
)
def test_vague_symptom_is_asked_about(text: str, left: list[str]) -> None:
    assert [item.value for item in vague(text)] == left


def test_deciding_chart_has_the_symptom_and_its_evidence_on_one_axis() -> None:
    guilty = change("c1", "pool per-request", AT - timedelta(minutes=40))
    collected = replace(CASES["pinned_memory_contention"], changes=(guilty,))
    diagnosis = assess(collected, CATALOGUE, SERVICE)
    chart = deciding_charts(collected, diagnosis, CATALOGUE)[0]
    assert chart.id == "hypothesis-pinned_memory_contention"
    assert [panel.query for panel in chart.panels][:2] == ["q:latency.client", "q:phase.h2d"]
    copy = chart.panels[1]
    assert copy.unit == "s"
    assert copy.baseline_low is not None
    assert copy.baseline_high is not None
    assert copy.baseline_low < 0.002 < copy.baseline_high < (copy.threshold or 0)
    assert chart.onset is not None
    assert chart.onset.start <= ONSET <= chart.onset.end + timedelta(seconds=60)
    assert [mark.kind for mark in chart.marks] == ["change"]
    assert {item.evidence_id for item in chart.panels} & {item.id for item in diagnosis.evidence}


def test_not_established_decides_nothing_and_draws_nothing() -> None:
    collected = world()
    assert deciding_charts(collected, assess(collected, CATALOGUE, SERVICE), CATALOGUE) == ()
