"""Finds the resolution of the metrics and reads the series of the signals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from statistics import median

from bot.cause import Signal
from bot.diagnosis.collect_logs import LogAnswers
from bot.diagnosis.collected import Reading
from bot.diagnosis.plan import Scope, metrics_in
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.change import Change
from bot.domain.evidence import EvidenceSource, Gap
from bot.domain.finding import ProbeResult
from bot.domain.instant import Window
from bot.errors import EvidenceError
from bot.source import MetricsSource, Span

_USUAL_RESOLUTION = 15.0
_MOST_POINTS = 720
"""Points per series that are enough to see an onset and to draw it."""

_DAY = 86_400.0
_HISTORY_STEP = 300.0
_HISTORY_RATE = 600.0
_TREND_SECONDS = 6 * 3_600.0
_FEWEST_GAPS = 3
_SHORT_HISTORY = 0.8


@dataclass(slots=True)
class Progress:
    """What has arrived so far; filled by the tasks, read when the deadline has passed."""

    window: Window
    resolution: float = _USUAL_RESOLUTION
    rate: float = 4 * _USUAL_RESOLUTION
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
    for selector in (scope.fill("up{$service}"), 'up{job!=""}'):
        for reach in ("2m", "30m"):
            raw = await source.instant(f"{selector}[{reach}]", request.at, timeout_seconds=timeout)
            for series in raw.items:
                times = [sample.at.timestamp() for sample in series.samples]
                gaps.extend(b - a for a, b in pairwise(times))
            if len(gaps) >= _FEWEST_GAPS:
                break
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
    timeout = request.deadline_seconds
    week = Window.before(request.at, 1.5 * _DAY)
    names = await source.names(week, timeout_seconds=timeout)
    progress.answered.add("metrics")
    service = ports.service(request.service)
    scope = Scope(service=service, nodes=service.nodes, rate_seconds=progress.rate)
    slow = Scope(service=service, nodes=service.nodes, rate_seconds=_HISTORY_RATE)
    step = max(progress.resolution, round(progress.window.seconds / _MOST_POINTS))
    trend_step = max(progress.resolution, _HISTORY_STEP)

    async def one(signal: Signal) -> None:
        for query in signal.queries:
            if not metrics_in(query) <= names:
                continue
            asked = scope.fill(query)
            for text in (asked, scope.by_instance(query)):
                if text is None:
                    continue
                reading = await _read(source, text, progress.window, step, timeout, progress)
                if reading is not None and reading.series:
                    progress.now[signal.name] = reading
                    await more(signal, query)
                    return

    async def more(signal: Signal, query: str) -> None:
        if signal.seasonal:
            for back in (_DAY, 7 * _DAY):
                shift = timedelta(seconds=back)
                then = Window(
                    request.at - shift - timedelta(seconds=1_800),
                    request.at - shift + timedelta(seconds=900),
                )
                reading = await _read(
                    source, slow.fill(query), then, _HISTORY_STEP, timeout, progress
                )
                if reading is not None and reading.series:
                    progress.history.setdefault(signal.name, []).append(reading)
        if signal.trend:
            span = Window.before(request.at, _TREND_SECONDS)
            reading = await _read(source, slow.fill(query), span, trend_step, timeout, progress)
            if reading is not None and reading.series:
                progress.trends[signal.name] = reading

    await asyncio.gather(*(one(signal) for signal in signals))


async def _read(
    source: MetricsSource, query: str, window: Window, step: float, seconds: float, progress: Progress
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
    return Reading(query=query, window=window, series=answer.items, partial=answer.partial)
