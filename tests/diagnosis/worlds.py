"""Small made-up incidents: series with an onset, probe results, lines; nothing is named after a recorded case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.cause import Catalogue
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.request import DiagnosisRequest
from bot.domain.change import Change, ChangeKind
from bot.domain.evidence import Sample, Series, SourceState
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.instant import Window
from bot.inventory import Service
from bot.source import LogLine

AT = datetime(2026, 11, 30, 20, 30, tzinfo=UTC)
ONSET = AT - timedelta(minutes=15)
WINDOW = Window.before(AT, 5_400)
STEP = 15.0
NODE = "node-1"
SERVICE = Service(name="rank-api", nodes=(NODE,), depends_on=("store",))
CATALOGUE: Catalogue = load_causes([shipped_causes()])


def series(
    before: float,
    during: float,
    *,
    labels: Mapping[str, str] | None = None,
    onset: datetime = ONSET,
    until: datetime | None = None,
    window: Window = WINDOW,
    step: float = STEP,
) -> Series:
    """A level with one shift at `onset`, back at `until`; a ripple of one percent keeps it from being flat."""
    samples = []
    for index in range(round(window.seconds / step) + 1):
        at = window.start + timedelta(seconds=index * step)
        sick = at >= onset and (until is None or at < until)
        level = during if sick else before
        samples.append(Sample(at=at, value=level * (1 + 0.01 * math.sin(index))))
    return Series(
        name="", labels=dict(labels or {}), unit="", samples=tuple(samples), step_seconds=step
    )


def reading(name: str, *found: Series) -> Reading:
    return Reading(query=f"q:{name}", window=WINDOW, series=found)


def probe(name: str, *findings: str, node: str = NODE, summary: str = "seen") -> ProbeResult:
    return ProbeResult(
        probe=name,
        node=node,
        status=ProbeStatus.OK,
        started_at=AT,
        duration_seconds=0.1,
        findings=tuple(
            Finding(id=item, severity=FindingSeverity.WARNING, summary=summary) for item in findings
        ),
    )


def line(text: str, at: datetime = ONSET + timedelta(seconds=30)) -> LogLine:
    nanoseconds = round(at.timestamp()) * 10**9
    return LogLine(at_ns=nanoseconds, labels={"service": SERVICE.name, "node": NODE}, text=text)


_ON_NODE = {"node": NODE}
_ON_GPU = {"Hostname": NODE, "gpu": "0"}

CALM: dict[str, tuple[float, Mapping[str, str]]] = {
    "latency.client": (0.08, {}),
    "latency.server": (0.07, _ON_NODE),
    "errors.ratio": (0.001, {}),
    "load.requests": (50.0, {}),
    "load.inflight": (5.0, {}),
    "throughput.answers": (50.0, {}),
    "input.length": (4_000.0, {}),
    "phase.frontend": (0.01, _ON_NODE),
    "phase.queue": (0.004, _ON_NODE),
    "phase.h2d": (0.002, _ON_NODE),
    "phase.compute": (0.04, _ON_NODE),
    "engine.waiting": (0.5, _ON_NODE),
    "engine.running": (4.0, _ON_NODE),
    "engine.progress": (50.0, _ON_NODE),
    "pinned.allocations": (0.02, _ON_NODE),
    "gpu.busy": (60.0, {"Hostname": NODE}),
    "gpu.clock": (1_700.0, _ON_GPU),
    "gpu.temperature": (60.0, _ON_GPU),
    "gpu.link_in": (2e9, _ON_GPU),
    "gpu.replays": (0.0, _ON_GPU),
    "gpu.memory": (60_000.0, _ON_GPU),
    "gpu.xid": (0.0, _ON_GPU),
    "host.cpu_pressure": (0.01, _ON_NODE),
    "host.cpu_throttled": (0.0, _ON_NODE),
    "host.cpu_idle": (40.0, _ON_NODE),
    "host.load": (8.0, _ON_NODE),
    "host.switches": (50_000.0, _ON_NODE),
    "host.io_pressure": (0.003, _ON_NODE),
    "host.blocked": (0.2, _ON_NODE),
    "process.cpu": (8.0, _ON_NODE),
    "disk.latency": (0.003, {**_ON_NODE, "device": "sda"}),
    "writes.service": (1e6, _ON_NODE),
    "logs.shipped": (60.0, _ON_NODE),
    "net.retransmits": (0.0005, _ON_NODE),
    "peer.latency": (0.01, {"peer": "store"}),
    "peer.errors": (0.0, {"peer": "store"}),
}

CLEAN = (
    probe("gpu_state", "gpu.ok"), probe("gpu_errors", "gpu.errors_clean"),
    probe("gpu_link", "gpu.link_ok"), probe("host_disk", "disk.ok"),
    probe("host_network", "net.ok"), probe("process_stacks", "proc.stacks_ok"),
    probe("process_threads", "proc.threads_ok"), probe("gpu_allocator", "gpu.allocator_ok"),
    probe("host_cpu", "cpu.ok"), probe("log_health", "log.ok"),
    probe("service_config", "svc.config_unchanged"), probe("service_metrics", "svc.metrics_ok"),
)  # fmt: skip


def world(
    sick: Mapping[str, float] | None = None,
    *,
    probes: Sequence[ProbeResult] = (),
    lines: Sequence[LogLine] = (),
    changes: Sequence[Change] = (),
    onsets: Mapping[str, datetime] | None = None,
) -> Collected:
    """The calm service with some signals at another level since the onset; given probes replace the clean ones."""
    readings = {
        name: reading(
            name,
            series(
                level,
                (sick or {}).get(name, level),
                labels=labels,
                onset=(onsets or {}).get(name, ONSET),
            ),
        )
        for name, (level, labels) in CALM.items()
    }
    replaced = {(item.node, item.probe) for item in probes}
    results = [*probes, *(item for item in CLEAN if (item.node, item.probe) not in replaced)]
    usual = line("request served", WINDOW.start + timedelta(minutes=5))
    return Collected(
        request=DiagnosisRequest(service=SERVICE.name, at=AT),
        nodes=(NODE,),
        window=WINDOW,
        resolution_seconds=STEP,
        rate_seconds=60.0,
        now=readings,
        service_lines=(usual, *lines),
        node_lines=(usual,),
        log_window=WINDOW,
        changes=tuple(changes),
        probes=tuple(results),
        states=dict.fromkeys(("metrics", "logs", "traces", "events", "probes"), SourceState.OK),
    )


def change(
    name: str,
    summary: str,
    at: datetime,
    kind: ChangeKind = ChangeKind.CONFIG,
    service: str = SERVICE.name,
) -> Change:
    return Change(id=name, kind=kind, service=service, summary=summary, at=at)


def without(collected: Collected, *names: str) -> Collected:
    return replace(
        collected, now={key: value for key, value in collected.now.items() if key not in names}
    )


PINNED = {
    "latency.client": 0.5, "latency.server": 0.45, "phase.h2d": 0.03, "pinned.allocations": 2.0,
    "load.inflight": 25.0, "gpu.busy": 50.0, "gpu.link_in": 1.2e9,
}  # fmt: skip
CPU = {
    "latency.client": 0.4, "latency.server": 0.35, "phase.frontend": 0.2, "host.cpu_pressure": 0.5,
    "host.load": 90.0, "host.cpu_idle": 2.0, "gpu.busy": 35.0,
}  # fmt: skip
CLOCK = {
    "latency.client": 0.2, "latency.server": 0.18, "phase.compute": 0.075, "gpu.clock": 900.0,
    "gpu.temperature": 86.0, "phase.queue": 0.05,
}  # fmt: skip
LOCK = {
    "latency.client": 0.5, "latency.server": 0.45, "phase.frontend": 0.3, "host.switches": 250_000.0,
    "gpu.busy": 30.0, "process.cpu": 5.0, "load.inflight": 40.0,
}  # fmt: skip
LOADER = {
    "latency.client": 0.6, "latency.server": 0.5, "phase.frontend": 0.4, "gpu.busy": 25.0,
    "load.inflight": 60.0, "engine.waiting": 0.0,
}  # fmt: skip
SURGE = {
    **LOADER, "disk.latency": 0.15, "host.io_pressure": 0.35, "host.blocked": 8.0,
    "writes.service": 2e8, "logs.shipped": 2_000.0,
}  # fmt: skip
