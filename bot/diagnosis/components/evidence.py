"""What is known of components: gauges, calls, counted lines and spans, each before and during the incident."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from bot.diagnosis.components.graph import DependencyGraph
from bot.diagnosis.robust import Spread, spread


class Aspect(StrEnum):
    """What a gauge measures; the closed set that the ranking knows how to read."""

    LATENCY = "latency"
    REQUESTS = "requests"
    FAILURES = "failures"
    CPU = "cpu"


class CallSide(StrEnum):
    """Where a call was measured: at the one who waits, or at the one who answers."""

    CALLER = "caller"
    CALLEE = "callee"


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One measure in equal steps.

    usual: healthy values, however long ago.
    recent: the steps right before the incident; empty when there are none.
    during: the steps from its onset on; None where nothing was measured.
    """

    usual: tuple[float | None, ...]
    recent: tuple[float | None, ...]
    during: tuple[float | None, ...]

    @property
    def before(self) -> Spread | None:
        """The spread of all healthy values."""
        return spread([value for value in (*self.usual, *self.recent) if value is not None])

    @property
    def settled(self) -> float | None:
        """The level during the incident; its first step still mixes both levels, so it counts only if alone."""
        later = [value for value in self.during[1:] if value is not None]
        found = later or [value for value in self.during if value is not None]
        return median(found) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One aspect of one component: seconds, requests a step, share 0..1, or percent of its limit.

    statistic: which one where there are several, for example `p50`.
    """

    component: str
    aspect: Aspect
    statistic: str
    track: Track


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Seconds that a call between two components takes, as one side measures it."""

    caller: str
    callee: str
    side: CallSide
    track: Track


class EventKind(StrEnum):
    """What was counted."""

    LINE = "line"
    SPAN = "span"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCount:
    """How often a component wrote a line or opened a span of one kind.

    event: masked text or operation, unique in the component.
    usual: count in one healthy step.
    during: counts of the steps of the incident.
    """

    component: str
    kind: EventKind
    event: str
    is_error: bool
    usual: float
    during: tuple[int, ...]


class SpanRole(StrEnum):
    """Work of a component's own, a call that it waits for, or a call that it answers."""

    OWN = "own"
    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTime:
    """Seconds that the spans of one operation took in all: (count, total seconds) of a healthy step and of the incident's.

    caller: who asked, for server spans.
    """

    component: str
    caller: str | None
    operation: str
    role: SpanRole
    usual: tuple[float, float]
    during: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentEvidence:
    """Everything that speaks of the components of one incident.

    candidates: those that may be named; empty is all of the graph.
    entry: where the trouble was noticed, None when nobody knows.
    symptom: what was noticed there.
    """

    graph: DependencyGraph
    candidates: tuple[str, ...] = ()
    entry: str | None = None
    symptom: Aspect | None = None
    gauges: tuple[Gauge, ...] = ()
    calls: tuple[Call, ...] = ()
    events: tuple[EventCount, ...] = ()
    spans: tuple[SpanTime, ...] = ()

    def gauge(self, component: str, aspect: Aspect) -> Gauge | None:
        """The first gauge of an aspect by statistic: means before percentiles."""
        found = [g for g in self.gauges if g.component == component and g.aspect is aspect]
        return min(found, key=lambda g: g.statistic) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that speaks for a component: `kind` names the rule, `weight` is in log-odds."""

    kind: str
    detail: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedComponent:
    """One candidate with its score in log-odds and the reasons, heaviest first."""

    name: str
    score: float
    reasons: tuple[Reason, ...] = field(default=())


Blame = Mapping[str, tuple[Reason, ...]]
"""Component to what speaks for it."""
