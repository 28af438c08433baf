"""The checklist at work in an incident: what runs by itself, what it comes to, and that silence is never clean."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bot.cause import Catalogue
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.checklist import CheckOutcome
from bot.domain.evidence import Sample, Series
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.incident import Incident
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.incidents.responding import Via
from bot.inventory import Inventory, Node, Service
from bot.jobs import checking, proposing, requests
from bot.source import Answer
from bot.store import queue
from tests.web.door import NOW, Door, opened, payload

SERVICE = "pay-api"
LIST = """id: inference-general
title: {en: Own, zh-CN: 自有}
items:
  - id: asked-of-people
    step: symptom
    text: {en: "Who is hit?", zh-CN: "谁受影响？"}
  - id: pressure
    step: information
    query: sum(rate(waits_total{$service}[$w]))
    above: 0.5
    learned_from: INC-3
    text: {en: "Waits?", zh-CN: "等待？"}
  - id: memory
    step: information
    probe: host_memory
    learned_from: INC-3
    text: {en: "Memory?", zh-CN: "内存？"}
  - id: disk
    step: information
    probe: host_disk
    text: {en: "Disk?", zh-CN: "磁盘？"}
  - id: golden
    step: verification
    probe: golden_set
    learned_from: INC-3
    text: {en: "Golden?", zh-CN: "黄金？"}
"""


class Metrics:
    """Answers every query with one value, or not at all."""

    def __init__(self) -> None:
        self.value: float | None = 0.7
        self.asked: list[str] = []
        self.is_down = False

    async def names(self, window: Window, *, timeout_seconds: float) -> frozenset[str]:
        return frozenset()

    async def range(self, query: str, window: Window, **_: object) -> Answer[Series]:
        return Answer(items=(), query=query, window=window)

    async def instant(self, query: str, at: datetime, *, timeout_seconds: float) -> Answer[Series]:
        self.asked.append(query)
        if self.is_down:
            raise EvidenceError("prometheus: gone", reason=Reason.REFUSED)
        samples = (Sample(at=at, value=self.value),)
        series = Series(name="", labels={}, unit="", samples=samples, step_seconds=0)
        items = (series,) if self.value is not None else ()
        return Answer(items=items, query=query, window=Window(at, at))


class Runner:
    """Every probe finds what a test has put there."""

    def __init__(self) -> None:
        self.findings: dict[str, tuple[Finding, ...]] = {}
        self.ran: list[str] = []

    async def run(self, node: str, probe: str, args: Mapping[str, Any], **_: object) -> ProbeResult:
        self.ran.append(probe)
        found = self.findings.get(probe)
        return ProbeResult(
            probe=probe,
            node=node,
            status=ProbeStatus.OK if found is not None else ProbeStatus.DENIED,
            started_at=NOW,
            duration_seconds=0.1,
            findings=found or (),
            error=None if found is not None else "not permitted",
        )


def finding(name: str, severity: FindingSeverity) -> tuple[Finding, ...]:
    return (Finding(id=name, severity=severity, summary=f"{name} seen"),)


class Bench:
    def __init__(self, door: Door, metrics: Metrics, runner: Runner) -> None:
        self.door, self.metrics, self.runner = door, metrics, runner

    async def look(self, stage: str) -> Incident:
        job = requests.checks("INC-1", stage=stage)
        handler = checking.handlers(self.door.services)[requests.CHECKS]
        await handler(queue.Claim(job=job, token="t", attempt=1))
        return await self.door.incident()

    async def propose(self) -> Incident:
        job = requests.checklist("INC-1", by="U0LEAD")
        handler = proposing.handlers(self.door.services)[requests.CHECKLIST]
        await handler(queue.Claim(job=job, token="t", attempt=1))
        return await self.door.incident()

    def outcomes(self, incident: Incident) -> dict[str, CheckOutcome]:
        return {run.item: run.outcome for run in incident.checks}


@pytest.fixture
async def bench(redis_url: str, tmp_path: Path) -> AsyncIterator[Bench]:
    (tmp_path / "checklists").mkdir()
    (tmp_path / "checklists" / "inference-general.yaml").write_text(LIST, encoding="utf-8")
    metrics, runner = Metrics(), Runner()
    ports = DiagnosisPorts(
        inventory=Inventory(
            nodes={"gpu-1": Node(name="gpu-1", url=None)},
            services={SERVICE: Service(name=SERVICE, nodes=("gpu-1",))},
        ),
        catalogue=Catalogue(),
        clock=lambda: NOW,
        metrics=metrics,
        probes=runner,
    )
    async with opened(redis_url, ports, RCA_KNOWLEDGE_DIR=str(tmp_path)) as door:
        body = payload("pair_first.json")
        labels = {"alertname": "Odd", "service": SERVICE}
        body["alerts"] = [{**body["alerts"][0], "labels": labels, "annotations": {}}]
        await door.take("alertmanager", {**body, "commonLabels": labels, "commonAnnotations": {}})
        yield Bench(door, metrics, runner)


async def test_learned_checks_run_before_anything_is_collected_and_heavy_ones_never(bench: Bench):
    bench.runner.findings["host_memory"] = finding("mem.low", FindingSeverity.WARNING)
    incident = await bench.look("opened")
    assert bench.outcomes(incident) == {
        "pressure": CheckOutcome.FOUND, "memory": CheckOutcome.FOUND,
    }  # fmt: skip
    assert bench.runner.ran == ["host_memory"]
    assert bench.metrics.asked == [f'sum(rate(waits_total{{service="{SERVICE}"}}[60s]))']
    assert incident.checklist is not None and incident.checklist.version == 0
    texts = await bench.door.texts()
    assert any("learned from INC-3): found something (0.7, bound 0.5)" in text for text in texts)
    assert any("holds what was learned from INC-3" in text for text in texts)


async def test_rest_is_read_from_what_was_collected_without_asking_the_nodes_again(bench: Bench):
    bench.runner.findings["host_memory"] = finding("mem.ok", FindingSeverity.INFO)
    await bench.look("opened")
    result = await bench.runner.run("gpu-1", "host_disk", {})
    via = Via(by="rca-bot", at=NOW, key="c")
    await bench.door.services.responding.record_readings(
        "INC-1", [result], via, purpose="collection"
    )
    bench.runner.ran.clear()
    incident = await bench.look("collected")
    assert bench.runner.ran == []
    assert bench.outcomes(incident)["disk"] is CheckOutcome.UNKNOWN, "denied is not clean"
    assert bench.outcomes(incident)["memory"] is CheckOutcome.CLEAN


async def test_source_that_is_down_or_empty_leaves_the_check_unknown(bench: Bench):
    bench.metrics.is_down = True
    incident = await bench.look("opened")
    assert bench.outcomes(incident)["pressure"] is CheckOutcome.UNKNOWN
    usage = await bench.door.services.shelf.usage("inference-general")
    assert usage["pressure"].incidents == 0, "what could not look does not make a check stale"


async def test_later_look_that_finds_something_is_said_and_a_quiet_one_is_not(bench: Bench):
    bench.metrics.value = 0.1
    incident = await bench.look("opened")
    assert bench.outcomes(incident)["pressure"] is CheckOutcome.CLEAN
    before = incident.last_seq
    bench.metrics.value = 0.2
    await bench.look("collected")
    bench.metrics.value = 0.9
    incident = await bench.look("collected")
    assert bench.outcomes(incident)["pressure"] is CheckOutcome.FOUND
    assert incident.last_seq > before
    last = incident.last_seq
    assert (await bench.look("collected")).last_seq == last, "nothing new, nothing said"
    usage = (await bench.door.services.shelf.usage("inference-general"))["pressure"]
    assert (usage.incidents, usage.found) == (1, 1)


async def test_question_that_nobody_answered_counts_as_skipped_at_the_close(bench: Bench):
    await bench.look("opened")
    incident = await bench.propose()
    assert bench.outcomes(incident)["asked-of-people"] is CheckOutcome.SKIPPED
    assert incident.is_checklist_reviewed
    usage = await bench.door.services.shelf.usage("inference-general")
    assert usage["asked-of-people"].incidents == 1
    again = await bench.propose()
    assert again.last_seq == incident.last_seq, "what was proposed once is not proposed again"
