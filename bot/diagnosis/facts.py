"""What one pass knows: observations, findings, lines and changes, ready to be tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.cause import Catalogue, Signal
from bot.diagnosis.collected import DECLARED, Collected, Reading
from bot.diagnosis.line_search import LineSearch
from bot.diagnosis.observation import (
    Observation,
    entity_of,
    is_log_signal,
    observe,
    points,
    zero_filled,
)
from bot.diagnosis.robust import slope
from bot.diagnosis.symptoms import Incident, find_incident, usual_range
from bot.diagnosis.tracing import observe_traces, trace_paths
from bot.domain.change import Change
from bot.domain.evidence import Series, SourceState
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.domain.instant import Window
from bot.source import LogLine

_LATE_SECONDS = 900.0
"""A probe that ran longer than this from the moment asked about says nothing of it. Basis: judgement."""

_LOG_LEAD_SECONDS = 600.0
"""Lines this long before the onset may tell of its trigger. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The input of the judgement; nothing in it depends on the order in which answers came.

    observations: by signal name, ordered by entity.
    findings: probe results that looked in time, by node and probe.
    is_declared: whether people say that something is wrong which no metric of theirs has measured.
    search: `service`, `node` and `old` lines, ready to be searched.
    named_nodes: nodes that the alert's labels name.
    is_stale: True when probes ran after the level had come back, so that a clean finding clears nothing.
    """

    service: str
    nodes: tuple[str, ...]
    incident: Incident
    observations: Mapping[str, tuple[Observation, ...]]
    results: Mapping[tuple[str, str], ProbeResult]
    is_stale: bool
    service_lines: tuple[LogLine, ...]
    node_lines: tuple[LogLine, ...]
    old_lines: tuple[LogLine, ...]
    logs_read: bool
    log_lead: datetime
    log_window: Window | None
    changes: tuple[Change, ...]
    changes_read: bool
    resolution_seconds: float
    named_nodes: frozenset[str] = frozenset()
    is_declared: bool = False
    search: Mapping[str, LineSearch] = field(default_factory=dict, compare=False, repr=False)


def establish(collected: Collected, catalogue: Catalogue) -> Facts:
    """Turns raw answers into facts; pure, and independent of the order of the answers."""
    incident = find_incident(collected, catalogue)
    observations: dict[str, tuple[Observation, ...]] = {}
    for name, reading in collected.now.items():
        signal = collected.signal(name, catalogue)
        if signal is None:
            continue
        seen = [
            _one(signal, series, reading, collected, incident)
            for series in reading.series
            if not _is_own_log(name, series, collected)
        ]
        observations[name] = tuple(sorted(seen, key=lambda item: (item.entity, item.query)))
    if collected.spans:
        paths = trace_paths(collected.spans, collected.request.service)
        for observation in observe_traces(
            paths, catalogue, incident=incident.window, window=collected.window,
            query=f"traces of {collected.request.service}",
        ):  # fmt: skip
            name = observation.signal.name
            observations[name] = (*observations.get(name, ()), observation)
    results = {
        (result.node, result.probe): result
        for result in collected.probes
        if result.status is ProbeStatus.OK
        and abs((result.started_at - collected.request.at).total_seconds()) <= _LATE_SECONDS
    }
    return Facts(
        service=collected.request.service,
        nodes=collected.nodes,
        incident=incident,
        observations=dict(sorted(observations.items())),
        results=results,
        is_stale=incident.is_over,
        service_lines=collected.service_lines,
        node_lines=collected.node_lines,
        old_lines=collected.old_lines,
        logs_read=bool(collected.service_lines or collected.node_lines),
        log_lead=incident.earliest - timedelta(seconds=_log_lead(collected)),
        log_window=collected.log_window,
        changes=collected.changes,
        changes_read=collected.states.get("events") is not SourceState.UNREACHABLE,
        resolution_seconds=collected.resolution_seconds,
        named_nodes=frozenset(collected.request.labels.values()) & frozenset(collected.nodes),
        is_declared=bool(collected.request.symptoms) and not _is_measured(observations),
        search={
            "service": LineSearch(collected.service_lines),
            "node": LineSearch(collected.node_lines),
            "old": LineSearch(collected.old_lines),
        },
    )


def _is_measured(observations: Mapping[str, tuple[Observation, ...]]) -> bool:
    """Whether a metric that people named as their symptom answered: then it speaks, and the words no longer do.

    One that deviates is a sighting of the incident; one that does not was checked and is calm.
    """
    return any(
        item.is_known
        for name, items in observations.items()
        if name.startswith(DECLARED)
        for item in items
    )


def _one(
    signal: Signal, series: Series, reading: Reading, collected: Collected, incident: Incident
) -> Observation:
    is_log = is_log_signal(signal)
    if is_log:
        series = zero_filled(series, reading.window)
    observation = observe(
        signal,
        series,
        query=reading.query,
        source="logs" if is_log else "metrics",
        window=reading.window,
        incident=incident.window,
        settle_seconds=series.step_seconds if is_log else collected.rate_seconds,
        partial=reading.partial,
        beyond=reading.beyond,
    )
    usual = usual_range(collected.history.get(signal.name, ()), observation)
    growth = _growth(collected.trends.get(signal.name), observation)
    return replace(observation, usual=usual, growth=growth)


def _growth(reading: Reading | None, observation: Observation) -> tuple[float, float] | None:
    """Growth over the whole trend window and over its last third, in the signal's unit."""
    if reading is None:
        return None
    for series in reading.series:
        if entity_of(series) != observation.entity:
            continue
        found = points(series)
        if len(found) < 12:
            return None
        seconds = found[-1][0] - found[0][0]
        late = [pair for pair in found if pair[0] >= found[-1][0] - seconds / 3]
        whole, recent = slope(found), slope(late)
        if whole is None or recent is None:
            return None
        return whole * seconds, recent * seconds / 3
    return None


def _is_own_log(name: str, series: Series, collected: Collected) -> bool:
    """Whether a stream of the node is the service's own; that one has its own signal."""
    return name == "logs.bytes_others" and collected.request.service in series.labels.values()


def _log_lead(collected: Collected) -> float:
    return min(_LOG_LEAD_SECONDS, collected.window.seconds / 6)
