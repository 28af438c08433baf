"""All sources at once under one deadline; what is down, late or absent is a gap and never an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.cause import Catalogue
from bot.diagnosis.collect import collect
from bot.diagnosis.engine import diagnose
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.change import Change
from bot.domain.evidence import Series, SourceState
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.domain.hypothesis import NOT_ESTABLISHED, Layer, Symptom
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.errors import EvidenceError, Reason
from bot.inventory import Inventory, Node
from bot.source import Answer, LogLine, Span
from tests.diagnosis.worlds import AT, CATALOGUE, NODE, ONSET, SERVICE, change, line, series

INVENTORY = Inventory(nodes={NODE: Node(name=NODE, url=None)}, services={SERVICE.name: SERVICE})
REQUEST = DiagnosisRequest(service=SERVICE.name, at=AT, deadline_seconds=1.0)


class Metrics:
    """Knows one metric; keeps what it was asked."""

    def __init__(self, *, error: EvidenceError | None = None, hang: bool = False) -> None:
        self.error, self.hang, self.asked = error, hang, list[str]()

    async def _gate(self) -> None:
        if self.hang:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    async def names(self, window: Window, *, timeout_seconds: float) -> frozenset[str]:
        await self._gate()
        return frozenset({"DCGM_FI_DEV_SM_CLOCK"})

    async def range(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        await self._gate()
        self.asked.append(query)
        found = series(1_700, 900, labels={"Hostname": NODE, "gpu": "0"}, window=window)
        return Answer(items=(found,), query=query, window=window)

    async def instant(self, query: str, at: datetime, *, timeout_seconds: float) -> Answer[Series]:
        await self._gate()
        found = series(1, 1, window=Window.before(at, 120), step=5)
        return Answer(items=(found,), query=query, window=Window(at, at))


class Probes:
    """Answers at once, or never."""

    def __init__(self, *, hang: str = "") -> None:
        self.hang, self.ran = hang, list[tuple[str, str | None]]()

    async def run(
        self,
        node: str,
        probe: str,
        args: Mapping[str, Any],
        *,
        subject: str,
        timeout_seconds: float,
        approved_by: str | None = None,
    ) -> ProbeResult:
        self.ran.append((probe, approved_by))
        if probe == self.hang:
            await asyncio.Event().wait()
        return ProbeResult(
            probe=probe, node=node, status=ProbeStatus.OK, started_at=AT, duration_seconds=0.0
        )


class Logs:
    """One line, and no volumes."""

    async def lines(
        self, query: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[LogLine]:
        return Answer(items=(line("served"),), query=query, window=window)

    async def volume(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        return Answer(items=(), query=query, window=window)


class Changes:
    def __init__(self, *found: Change) -> None:
        self.found = found

    async def between(self, start: datetime, end: datetime) -> list[Change]:
        return [item for item in self.found if start <= item.at <= end]


def ports(catalogue: Catalogue = CATALOGUE, **doors: Any) -> DiagnosisPorts:
    return DiagnosisPorts(
        inventory=INVENTORY, catalogue=catalogue, clock=lambda: datetime.now(UTC), **doors
    )


async def test_metrics_that_exist_are_asked_at_the_scrape_interval_and_no_others() -> None:
    metrics = Metrics()
    found = await collect(REQUEST, ports(metrics=metrics))
    assert found.resolution_seconds == 5
    assert found.states["metrics"] is SourceState.OK
    by_name_pattern = "__name__"
    asked = {
        query
        for query in metrics.asked
        if not query.startswith("up") and by_name_pattern not in query
    }
    assert asked == {f'DCGM_FI_DEV_SM_CLOCK{{Hostname=~"{NODE}"}}'}


async def test_nothing_configured_still_gives_a_ranking() -> None:
    diagnosis = await diagnose(REQUEST, ports())
    assert diagnosis.hypotheses[0].cause == NOT_ESTABLISHED
    assert set(diagnosis.sources.values()) == {SourceState.UNREACHABLE}


async def test_refused_metrics_are_a_gap_with_the_reason() -> None:
    error = EvidenceError("Prometheus at x: cannot be reached; check it", reason=Reason.REFUSED)
    found = await collect(REQUEST, ports(metrics=Metrics(error=error), probes=Probes()))
    assert found.states["metrics"] is SourceState.UNREACHABLE
    assert found.states["probes"] is SourceState.OK
    assert [gap.reason for gap in found.gaps if gap.plugin == "metrics"] == ["refused"]


async def test_source_that_hangs_costs_the_deadline_and_not_what_the_others_found() -> None:
    probes = Probes(hang="gpu_state")
    found = await collect(
        replace(REQUEST, deadline_seconds=4.0),
        ports(
            metrics=Metrics(hang=True),
            logs=Logs(),
            probes=probes,
            changes=Changes(change("c", "x", AT)),
        ),
    )
    assert found.states["metrics"] is SourceState.UNREACHABLE
    assert found.states["events"] is SourceState.OK
    assert found.states["logs"] is SourceState.OK
    assert [item.text for item in found.service_lines] == ["served"]
    assert {result.probe for result in found.probes} >= {"host_cpu", "gpu_link"}
    assert {gap.reason for gap in found.gaps} >= {"timeout"}


@pytest.mark.parametrize("approver", [None, "U1"])
async def test_heavy_probes_run_only_when_somebody_approves(approver: str | None) -> None:
    probes = Probes()
    request = replace(REQUEST, allow_heavy=True, approver=approver)
    await collect(request, ports(probes=probes))
    heavy = {name: by for name, by in probes.ran if name in ("golden_set", "h2d_bandwidth")}
    assert heavy == ({} if approver is None else {"golden_set": "U1", "h2d_bandwidth": "U1"})
    assert all(by is None for name, by in probes.ran if name not in heavy)


async def test_changes_reach_back_a_week_and_no_further() -> None:
    inside, outside = (change(str(days), "x", AT - timedelta(days=days)) for days in (6, 8))
    found = await collect(REQUEST, ports(changes=Changes(inside, outside)))
    assert [item.id for item in found.changes] == ["6"]


class Traces:
    """Requests whose wait for the engine grows in the last third of the window."""

    def __init__(self, *, operation: str = "wait_for_slot") -> None:
        self.operation = operation

    async def spans(
        self, service: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[Span]:
        spans: list[Span] = []
        for at in range(4):
            start = round((window.start.timestamp() + at) * 1e6)
            slow = window.start >= ONSET - timedelta(seconds=1)
            wait = 900_000 if slow else 20_000
            trace = f"{start:032x}"
            spans += [
                span(trace, "a", None, "handle", start, wait + 50_000),
                span(trace, "b", "a", self.operation, start + 1_000, wait),
                span(trace, "c", "a", "forward", start + 2_000 + wait, 40_000),
            ]
        return Answer(items=tuple(spans), query=service, window=window)


def span(
    trace: str, name: str, parent: str | None, operation: str, start: int, length: int
) -> Span:
    return Span(
        trace_id=trace, span_id=name, parent=parent, service=SERVICE.name, operation=operation,
        start_us=start, duration_us=length, tags={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "layer"),
    [
        ("wait_for_slot", Layer.RUNTIME),
        ("forward_pass", Layer.GPU),
        ("tokenize", Layer.APPLICATION),
    ],
)
async def test_probing_begins_at_the_layer_where_the_time_is_lost(
    operation: str, layer: Layer
) -> None:
    probes = Probes()
    symptom = Symptom(id="s1", summary=Localized("slow", "慢"), since=ONSET)
    await collect(
        replace(REQUEST, symptoms=(symptom,), deadline_seconds=60.0),
        ports(traces=Traces(operation=operation), probes=probes),
    )
    asked = [name for name, _ in probes.ran]
    of_layer = {item.probe for item in CATALOGUE.findings.values() if item.layer is layer}
    first = [name for name in asked if name in of_layer]
    assert first
    assert asked[: len(first)] == first
    assert sorted(asked) == sorted(name for name, _ in (await everything()).ran)


async def everything() -> Probes:
    """What runs where nothing tells where to begin."""
    probes = Probes()
    await collect(REQUEST, ports(probes=probes))
    return probes


async def test_probes_wait_for_no_source_that_hangs() -> None:
    probes = Probes()
    found = await collect(REQUEST, ports(metrics=Metrics(hang=True), probes=probes))
    assert found.states["probes"] is SourceState.OK
