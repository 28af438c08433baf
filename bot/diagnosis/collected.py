"""Everything that one pass read, before anything is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.cause import Catalogue, Signal
from bot.diagnosis.request import DiagnosisRequest
from bot.domain.change import Change
from bot.domain.evidence import Gap, Series, SourceState
from bot.domain.finding import ProbeResult
from bot.domain.instant import Window
from bot.source import LogLine, Span

DECLARED = "declared."
"""Begins the names of signals that people declared, `declared.<symptom id>`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The series that answered a signal, and the query that they answer.

    dropped: values that were not finite and became gaps.
    beyond: of a quantile, the largest finite bucket and the share of requests above it: the quantile is capped there.
    """

    query: str
    window: Window
    series: tuple[Series, ...]
    partial: tuple[str, ...] = ()
    dropped: int = 0
    beyond: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Raw answers.

    resolution_seconds: scrape interval of the service's metrics.
    rate_seconds: window of the rates, by which an onset may be late.
    now: signal name to the reading of the incident's window.
    history: signal name to the readings of the same hour yesterday and a week ago.
    trends: signal name to the reading of the last hours.
    log_window: from when on log lines were read.
    old_lines: lines since the start of the process that match a pattern which is logged once.
    states: `metrics`, `logs`, `traces`, `events`, `probes`.
    """

    request: DiagnosisRequest
    nodes: tuple[str, ...]
    window: Window
    resolution_seconds: float
    rate_seconds: float
    now: Mapping[str, Reading] = field(default_factory=dict)
    history: Mapping[str, tuple[Reading, ...]] = field(default_factory=dict)
    trends: Mapping[str, Reading] = field(default_factory=dict)
    service_lines: tuple[LogLine, ...] = ()
    node_lines: tuple[LogLine, ...] = ()
    old_lines: tuple[LogLine, ...] = ()
    log_window: Window | None = None
    spans: tuple[Span, ...] = ()
    changes: tuple[Change, ...] = ()
    probes: tuple[ProbeResult, ...] = ()
    states: Mapping[str, SourceState] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    declared: Mapping[str, Signal] = field(default_factory=dict)

    def signal(self, name: str, catalogue: Catalogue) -> Signal | None:
        """The signal of a reading: one of the catalogue, or a metric that people named."""
        return catalogue.signals.get(name) or self.declared.get(name)
