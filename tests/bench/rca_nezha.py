"""Nezha's files as evidence of components."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.diagnosis.components.evidence import (
    Aspect,
    Call,
    CallSide,
    ComponentEvidence,
    EventCount,
    EventKind,
    Gauge,
    SpanRole,
    SpanTime,
    Track,
)
from bot.diagnosis.components.graph import DependencyGraph
from tests.bench.rca_files import read_json, rows, table, values

_MEASURES = {
    "CpuUsageRate(%)": (Aspect.CPU, "rate"),
    "PodServerLatencyP90(s)": (Aspect.LATENCY, "p90"),
    "PodServerLatencyP95(s)": (Aspect.LATENCY, "p95"),
    "PodServerLatencyP99(s)": (Aspect.LATENCY, "p99"),
    "PodWorkload(Ops)": (Aspect.REQUESTS, "rate"),
}
_SIDES = {
    "latency_p50_s_source_side": CallSide.CALLER,
    "latency_p50_s_destination_side": CallSide.CALLEE,
}


def evidence_of(bench: Path, folder: Path, incident: dict[str, Any]) -> ComponentEvidence:
    """Earlier injections are left out of what counts as usual."""
    graph = read_json(folder / "graph.json")
    files = {
        kind: bench.parent / name
        for name in incident["baseline_files"]
        for kind in ("metrics", "edges", "logs", "traces")
        if kind in Path(name).name
    }
    pairs = [(a, b) for a, b in graph["edges"]]
    gauges = tuple(
        Gauge(
            component=name, aspect=_MEASURES[metric][0], statistic=_MEASURES[metric][1], track=track
        )
        for (name, metric), track in _tracks(
            folder, files, incident, "metrics", ("service", "metric")
        )
        if metric in _MEASURES
    )
    calls = tuple(
        Call(caller=caller, callee=callee, side=_SIDES[metric], track=track)
        for (caller, callee, metric), track in _tracks(
            folder, files, incident, "edges", ("caller", "callee", "metric")
        )
    )
    return ComponentEvidence(
        graph=DependencyGraph.of(
            [*pairs, *((c.caller, c.callee) for c in calls)], incident["candidates"]
        ),
        candidates=tuple(incident["candidates"]),
        gauges=gauges,
        calls=calls,
        events=_events(folder, files, incident),
        spans=_spans(folder, files, incident),
    )


def _tracks(folder, files, incident, kind, keys):
    path = folder / f"{kind}.csv.gz"
    if not path.exists():
        return
    now = table(path, keys)
    past = table(files[kind], keys) if kind in files else {}
    times = _times(incident)
    for key in sorted(now):
        healthy = [
            value
            for time, value in sorted(now[key].items())
            if time < times[0] and not _is_masked(incident, time)
        ]
        yield (
            key,
            Track(
                usual=tuple(past.get(key, {}).values()),
                recent=tuple(healthy),
                during=values(now[key], times),
            ),
        )


def _events(
    folder: Path, files: Mapping[str, Path], incident: dict[str, Any]
) -> tuple[EventCount, ...]:
    found: dict[tuple[str, EventKind, str, bool], tuple[list[float], list[float]]] = {}
    times = _times(incident)
    for kind, name, count in (
        (EventKind.LINE, "logs", "count"),
        (EventKind.SPAN, "traces", "span_count"),
    ):
        for path, is_now in ((files.get(name), False), (folder / f"{name}.csv.gz", True)):
            if path is None or not path.exists():
                continue
            for row in rows(path):
                if kind is EventKind.LINE:
                    event, error = (
                        f"{row['code_location']} {row['pattern']}",
                        row["level"] == "ERROR",
                    )
                else:
                    event, error = f"{row['parent_service']} {row['operation']}", False
                entry = found.setdefault(
                    (row["service"], kind, event, error), ([0.0], [0.0] * len(times))
                )
                if not is_now:
                    entry[0][0] += int(row[count])
                elif int(row["timestamp"]) in times:
                    entry[1][times.index(int(row["timestamp"]))] += int(row[count])
    last = 1 + max((i for _, d in found.values() for i, n in enumerate(d) if n), default=-1)
    return tuple(
        EventCount(
            component=service, kind=kind, event=event, is_error=error,
            usual=usual[0], during=tuple(int(n) for n in during[:last]),
        )
        for (service, kind, event, error), (usual, during) in sorted(found.items())
    )  # fmt: skip


def _spans(
    folder: Path, files: Mapping[str, Path], incident: dict[str, Any]
) -> tuple[SpanTime, ...]:
    path = folder / "traces.csv.gz"
    if not path.exists() or "traces" not in files:
        return ()
    times = _times(incident)
    usual: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    during: dict[tuple[str, str, str], list[list[float]]] = defaultdict(
        lambda: [[0.0, 0.0] for _ in times]
    )
    for source, is_now in ((files["traces"], False), (path, True)):
        for row in rows(source):
            key = (row["service"], row["parent_service"], row["operation"])
            count = float(row["span_count"])
            seconds = count * float(row["dur_mean_us"]) / 1e6
            if is_now and int(row["timestamp"]) not in times:
                continue
            entry = during[key][times.index(int(row["timestamp"]))] if is_now else usual[key]
            entry[0] += count
            entry[1] += seconds
    return tuple(
        SpanTime(
            component=service,
            caller=parent if parent and parent != service else None,
            operation=operation,
            role=_role(service, parent, operation),
            usual=(usual[key][0], usual[key][1]) if key in usual else (0.0, 0.0),
            during=tuple((c, s) for c, s in during[key]) if key in during else (),
        )
        for key in sorted({*usual, *during})
        for service, parent, operation in (key,)
    )


def _role(service: str, parent: str, operation: str) -> SpanRole:
    """A span under another service's answers it; OpenTelemetry names client spans `HTTP <verb>`."""
    if parent and parent != service:
        return SpanRole.SERVER
    return SpanRole.CLIENT if operation.startswith("HTTP ") else SpanRole.OWN


def _times(incident: dict[str, Any]) -> list[int]:
    window = incident["incident_window"]
    return list(range(window["start"], window["end"] + 1, window["step_s"]))


def _is_masked(incident: dict[str, Any], time: int) -> bool:
    step = incident["incident_window"]["step_s"]
    return any(
        start <= time <= end + step for start, end in incident["known_past_incident_windows"]
    )
