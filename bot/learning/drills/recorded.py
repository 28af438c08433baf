"""Plays a saved case as an exercise: what was read then, moved to now; its last minutes repeat until it is fixed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bot.cause import Catalogue
from bot.diagnosis.collected import Reading
from bot.diagnosis.plan import metrics_in
from bot.diagnosis.request import DiagnosisPorts
from bot.diagnosis.symptoms import find_incident
from bot.domain.evidence import Sample, Series
from bot.domain.finding import ProbeResult
from bot.domain.instant import Window
from bot.inventory import Inventory, Node
from bot.learning.cases import Case
from bot.learning.drills.answers import (
    clean_finding,
    not_played,
    probe_result,
    refused,
    volume_of,
    volume_samples,
)
from bot.learning.drills.playing import PlayedChanges, PlayedMetrics
from bot.learning.drills.tracks import Track, Tracks
from bot.source import Answer, LogLine, Span

_LOOP = timedelta(minutes=10)
"""The stretch of the recording that repeats once its end is reached. Basis: long enough for a rate and its noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How moments of the exercise map to moments of the recording.

    end: of the recording; onset: in it. began / recovered: of the exercise.
    """

    end: datetime
    onset: datetime
    began: datetime
    recovered: datetime | None

    def recorded(self, at: datetime) -> datetime:
        """The moment of the recording that stands for `at`: sick minutes repeat, after the fix the calm ones do."""
        if self.recovered is not None and at >= self.recovered:
            return self.onset - _LOOP - timedelta(minutes=2) + (at - self.recovered) % _LOOP
        then = self.end + (at - self.began)
        return then if then <= self.end else self.end - _LOOP + (then - self.end) % _LOOP

    def shown(self, at: datetime) -> datetime:
        """The moment of the exercise at which something of the recording happened."""
        return self.began + (at - self.end)


def recorded_ports(
    case: Case,
    real: DiagnosisPorts,
    *,
    began: datetime,
    recovered: datetime | None,
    clock: Callable[[], datetime],
) -> DiagnosisPorts:
    """The doors of an exercise that replays `case`; the catalogue is the real one, nothing else is."""
    collected = case.collected
    onset = find_incident(collected, real.catalogue).window.start
    times = Times(end=collected.request.at, onset=onset, began=began, recovered=recovered)
    service = replace(case.service, nodes=collected.nodes)
    changes = tuple(replace(item, at=times.shown(item.at)) for item in collected.changes)
    return replace(
        real,
        inventory=Inventory(
            nodes={name: Node(name=name, url=None) for name in collected.nodes},
            services={service.name: service},
        ),
        metrics=PlayedMetrics(_tracks(case, times), collected.resolution_seconds),
        logs=_RecordedLogs(case, times),
        traces=_RecordedTraces(collected.spans, times) if collected.spans else None,
        changes=PlayedChanges(changes),
        cluster=None,
        probes=_RecordedProbes(case, times, real.catalogue, clock),
    )


def _tracks(case: Case, times: Times) -> Tracks:
    collected = case.collected
    readings: list[Reading] = [
        *collected.now.values(),
        *(one for many in collected.history.values() for one in many),
        *collected.trends.values(),
    ]
    merged: dict[str, dict[tuple[tuple[str, str], ...], list[Series]]] = {}
    for reading in readings:
        by_labels = merged.setdefault(reading.query, {})
        for series in reading.series:
            by_labels.setdefault(tuple(sorted(series.labels.items())), []).append(series)
    by_query = {
        query: tuple(Track(dict(labels), _curve(many, times)) for labels, many in found.items())
        for query, found in merged.items()
    }
    names = {name for query in by_query for name in metrics_in(query)}
    return Tracks(by_query=by_query, names=frozenset(names | {"up"}))


def _curve(many: Sequence[Series], times: Times) -> Callable[[datetime], float | None]:
    samples: list[Sample] = sorted(
        (item for series in many for item in series.samples), key=lambda item: item.at
    )
    moments = [item.at for item in samples]
    reach = timedelta(seconds=1.5 * max(series.step_seconds for series in many))

    def value(at: datetime) -> float | None:
        then = times.recorded(at)
        place = bisect_left(moments, then)
        near = [samples[index] for index in (place - 1, place) if 0 <= index < len(samples)]
        best = min(near, key=lambda item: abs(item.at - then), default=None)
        return best.value if best is not None and abs(best.at - then) <= reach else None

    return value


@dataclass(frozen=True, slots=True)
class _RecordedLogs:
    """The lines of the recording, moved; volumes by the kind of question."""

    case: Case
    times: Times

    async def lines(
        self, query: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[LogLine]:
        """Lines of the service, of the node, or those that were logged once."""
        del timeout_seconds
        collected = self.case.collected
        many = collected.node_lines if query.startswith("{node") else collected.service_lines
        if "|~" in query:
            many = collected.old_lines
        shift = (self.times.began - self.times.end) // timedelta(microseconds=1) * 1_000
        first = round(window.start.timestamp() * 1e9)
        last = round(window.end.timestamp() * 1e9)
        found = [
            replace(line, at_ns=line.at_ns + shift)
            for line in many
            if first <= line.at_ns + shift <= last
        ]
        return Answer(items=tuple(found[-limit:]), query=query, window=window)

    async def volume(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        """The volumes that were asked for then."""
        del timeout_seconds
        reading = self.case.collected.now.get(volume_of(query))
        found = []
        for series in reading.series if reading else ():
            samples = volume_samples(_curve([series], self.times), window, step_seconds)
            found.append(replace(series, samples=samples, step_seconds=step_seconds))
        return Answer(
            items=tuple(item for item in found if item.samples), query=query, window=window
        )


@dataclass(frozen=True, slots=True)
class _RecordedTraces:
    """The spans of the recording, moved."""

    spans_then: tuple[Span, ...]
    times: Times

    async def spans(
        self, service: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[Span]:
        """Spans that began in the window."""
        del limit, timeout_seconds
        shift = (self.times.began - self.times.end) // timedelta(microseconds=1)
        first = round(window.start.timestamp() * 1e6)
        last = round(window.end.timestamp() * 1e6)
        found = tuple(
            replace(span, start_us=span.start_us + shift)
            for span in self.spans_then
            if first <= span.start_us + shift <= last
        )
        return Answer(items=found, query=f"traces of {service}", window=window)


@dataclass(frozen=True, slots=True)
class _RecordedProbes:
    """Nodes that answer as they did then, and clean after the fix."""

    case: Case
    times: Times
    catalogue: Catalogue
    clock: Callable[[], datetime]

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
        """One run; a heavy probe needs its approval here too."""
        del args, subject, timeout_seconds
        now = self.clock()
        if (denied := refused(node, probe, now, approved_by)) is not None:
            return denied
        then = next(
            (
                item
                for item in self.case.collected.probes
                if (item.node, item.probe) == (node, probe)
            ),
            None,
        )
        if then is None:
            return not_played(node, probe, now)
        if self.times.recovered is None or now < self.times.recovered:
            return replace(then, started_at=now)
        good = clean_finding(self.catalogue, probe)
        return probe_result(node, probe, now, findings=[good] if good else [])
