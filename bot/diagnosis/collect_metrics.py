"""Finds the resolution of the metrics and reads the series of the signals."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from statistics import median

from bot.cause import Signal
from bot.diagnosis.collect_logs import LogAnswers
from bot.diagnosis.collected import Reading
from bot.diagnosis.plan import Scope, metrics_in
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.change import Change
from bot.domain.evidence import EvidenceSource, Gap, Series
from bot.domain.finding import ProbeResult
from bot.domain.instant import Window
from bot.errors import EvidenceError
from bot.source import MetricsSource, Span

_QUANTILE = re.compile(r"histogram_quantile\([\d.]+, (sum by \(le\) \(.+\))\)")
_USUAL_RESOLUTION = 15.0
"""Taken where nobody can tell the scrape interval. Source: the interval of Prometheus' example configuration."""

_MOST_POINTS = 720
"""Points per series that are enough to see an onset and to draw it."""

_DAY = 86_400.0
_HISTORY_STEP = 300.0
_HISTORY_RATE = 600.0
_TREND_SECONDS = 6 * 3_600.0
"""Other days are read by five-minute levels over ten-minute rates; growth over six hours. Basis: judgement: a
leak that kills within a shift shows.
"""

_FEWEST_GAPS = 3
_SHORT_HISTORY = 0.8
_MOST_RECORDED = 3
"""Recording rules that are tried for one signal."""


@dataclass(slots=True)
class Progress:
    """What has arrived so far; filled by the tasks, read when the deadline has passed.

    pods_only: nothing with the service's own matchers is up, so its series may carry only their pods.
    """

    window: Window
    resolution: float = _USUAL_RESOLUTION
    rate: float = 4 * _USUAL_RESOLUTION
    pods_only: bool = False
    now: dict[str, Reading] = field(default_factory=dict)
    history: dict[str, list[Reading]] = field(default_factory=dict)
    trends: dict[str, Reading] = field(default_factory=dict)
    logs: LogAnswers = field(default_factory=LogAnswers)
    spans: list[Span] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    probes: list[ProbeResult] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    gaps: list[Gap] = field(default_factory=list)


async def find_resolution(
    source: MetricsSource, request: DiagnosisRequest, ports: DiagnosisPorts, progress: Progress
) -> None:
    """Finds the scrape interval and since when there is history at all."""
    scope = Scope(service=ports.service(request.service), nodes=(), rate_seconds=60)
    timeout = request.deadline_seconds
    window = progress.window
    gaps: list[float] = []
    own = scope.fill("up{$service}")
    for selector in (
        own,
        *scope.by_pod("up{$service}"),
        'up{job!=""}',
        # Where nothing says `up`, the rules' own rhythm is the resolution.
        scope.fill('{__name__=~".+:.+",$service}'),
    ):
        for reach in ("2m", "30m"):
            raw = await source.instant(f"{selector}[{reach}]", request.at, timeout_seconds=timeout)
            for series in raw.items:
                times = [sample.at.timestamp() for sample in series.samples]
                gaps.extend(b - a for a, b in pairwise(times))
            if len(gaps) >= _FEWEST_GAPS:
                break
        if selector == own:
            progress.pods_only = not gaps
        if len(gaps) >= _FEWEST_GAPS:
            break
    if gaps:
        progress.resolution = max(1.0, round(median(gaps)))
    progress.rate = 4 * progress.resolution
    coarse = max(1.0, window.seconds / 300)
    history = await source.range(
        scope.fill("up{$service}"), window, step_seconds=coarse, timeout_seconds=timeout
    )
    firsts = [series.samples[0].at for series in history.items if series.samples]
    if firsts:
        first = min(firsts) - timedelta(seconds=coarse)
        if (request.at - first).total_seconds() < _SHORT_HISTORY * window.seconds:
            progress.window = Window(max(first, window.start), request.at)


async def read_metrics(
    source: MetricsSource,
    request: DiagnosisRequest,
    ports: DiagnosisPorts,
    progress: Progress,
    signals: Sequence[Signal],
) -> None:
    """Reads each signal by the first of its queries that answers, with other days and the last hours where it asks.

    Raises:
        EvidenceError: not even the names of the metrics can be read.
    """
    week = Window.before(request.at, 1.5 * _DAY)
    names = await source.names(week, timeout_seconds=request.deadline_seconds)
    progress.answered.add("metrics")
    service = ports.service(request.service)
    reader = _Reader(
        source=source,
        request=request,
        progress=progress,
        names=names,
        scope=Scope(service=service, nodes=service.nodes, rate_seconds=progress.rate),
        slow=Scope(service=service, nodes=service.nodes, rate_seconds=_HISTORY_RATE),
    )
    await asyncio.gather(*(reader.read(signal) for signal in signals))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Asks one source for signals; `slow` has the wider rate window of the older, coarser data."""

    source: MetricsSource
    request: DiagnosisRequest
    progress: Progress
    names: frozenset[str]
    scope: Scope
    slow: Scope

    async def read(self, signal: Signal) -> None:
        """The first query that answers: as it stands, by other labels, then from recording rules."""
        for query in signal.queries:
            if not metrics_in(query) <= self.names:
                continue
            by_instance = self.scope.by_instance(query)
            by_pod = (
                (*self.scope.by_pod(query), *self.scope.by_model(query))
                if self.progress.pods_only
                else ()
            )
            texts = (self.scope.fill(query), *((by_instance,) if by_instance else ()), *by_pod)
            if await self._first(signal, texts):
                await self._more(signal, query)
                return
        for name in _recorded(signal, self.names):
            if await self._first(signal, self.scope.recorded(name)):
                return

    async def _first(self, signal: Signal, texts: Iterable[str]) -> bool:
        window = self.progress.window
        step = max(self.progress.resolution, round(window.seconds / _MOST_POINTS))
        for text in texts:
            reading = await self._ask(text, window, step)
            if reading is not None and reading.series:
                beyond = await self._beyond(text)
                self.progress.now[signal.name] = replace(reading, beyond=beyond)
                return True
        return False

    async def _beyond(self, query: str) -> tuple[float, float] | None:
        """Where a quantile over classic buckets is capped, and the share of requests above that."""
        buckets = _QUANTILE.fullmatch(query)
        if buckets is None:
            return None
        try:
            answer = await self.source.instant(
                buckets[1], self.request.at, timeout_seconds=self.request.deadline_seconds
            )
        except EvidenceError:
            return None
        return share_beyond(answer.items)

    async def _more(self, signal: Signal, query: str) -> None:
        """Other days and the last hours, where the signal asks for them."""
        at, asked = self.request.at, self.slow.fill(query)
        for back in (_DAY, 7 * _DAY) if signal.seasonal else ():
            then = at - timedelta(seconds=back)
            window = Window(then - timedelta(seconds=1_800), then + timedelta(seconds=900))
            reading = await self._ask(asked, window, _HISTORY_STEP)
            if reading is not None and reading.series:
                self.progress.history.setdefault(signal.name, []).append(reading)
        if signal.trend:
            step = max(self.progress.resolution, _HISTORY_STEP)
            reading = await self._ask(asked, Window.before(at, _TREND_SECONDS), step)
            if reading is not None and reading.series:
                self.progress.trends[signal.name] = reading

    async def _ask(self, query: str, window: Window, step: float) -> Reading | None:
        timeout = self.request.deadline_seconds
        return await _read(self.source, query, window, step, timeout, self.progress)


def _recorded(signal: Signal, names: frozenset[str]) -> list[str]:
    """Recording rules that hold a signal, by name; rules are named `level:metric:operations`.

    Source: Prometheus' advice on the naming of recording rules.
    """
    if signal.recorded is None:
        return []
    pattern = re.compile(signal.recorded)
    return sorted(name for name in names if ":" in name and pattern.search(name))[:_MOST_RECORDED]


async def _read(
    source: MetricsSource,
    query: str,
    window: Window,
    step: float,
    seconds: float,
    progress: Progress,
) -> Reading | None:
    try:
        answer = await source.range(query, window, step_seconds=step, timeout_seconds=seconds)
    except EvidenceError as error:
        progress.gaps.append(
            Gap(
                source=EvidenceSource.METRICS, plugin="metrics", query=query,
                reason=error.reason.value, detail=str(error),
            )
        )  # fmt: skip
        return None
    return Reading(
        query=query, window=window, series=answer.items, partial=answer.partial, dropped=answer.dropped,
    )  # fmt: skip


def share_beyond(buckets: Sequence[Series]) -> tuple[float, float] | None:
    """The largest finite bucket of a histogram and the share of requests above it; None without requests."""
    counts = {
        float(one.labels["le"]): one.samples[-1].value
        for one in buckets
        if "le" in one.labels and one.samples and one.samples[-1].value is not None
    }
    total = counts.pop(math.inf, None)
    if not total or not counts:
        return None
    largest = max(counts)
    return largest, max(0.0, 1 - (counts[largest] or 0.0) / total)
