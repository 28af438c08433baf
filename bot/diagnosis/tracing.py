"""Where the time of a request goes: self time per phase from traces, before the incident against during it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.cause import Catalogue, Signal
from bot.diagnosis.awaited import awaited, trace_key
from bot.diagnosis.observation import Entity, Observation
from bot.diagnosis.robust import spread
from bot.domain.instant import Window
from bot.source import Span

_PHASES = (
    (
        "h2d",
        re.compile(r"h2d|copy|to_device|host.?to.?device|memcpy|pinned|staging", re.IGNORECASE),
    ),
    ("queue", re.compile(r"queue|wait|slot|schedul|batch", re.IGNORECASE)),
    (
        "frontend",
        re.compile(
            r"preproc|token|read|load|fetch|decode_input|resize|feature|parse", re.IGNORECASE
        ),
    ),
    (
        "compute",
        re.compile(
            r"compute|infer|forward|exec|generate|generation|prefill|decode|engine|model",
            re.IGNORECASE,
        ),
    ),
)
_FEWEST_BEFORE = 3
_FEWEST_DURING = 3
"""Traces on either side below which a path is not compared. Basis: judgement; one stray is outvoted."""

_LEAST_TRACES = 1.5
"""Traces that must have been due for their number to be compared. Basis: judgement; one is chance."""

_FEWEST_FOR_RHYTHM, _DUE, _SILENCE_SECONDS = 12, 12, 600.0
"""Traces from which a rhythm is told, traces that must have been due, and a silence that is no late delivery.

Source: by Poisson's law none of twelve comes once in 160,000 times; ten minutes are a judgement.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePath:
    """One trace: seconds of self time by phase and by peer, and its length."""

    start_us: int
    seconds: Mapping[str, float]
    peers: Mapping[str, float]
    has_service: bool


def trace_paths(spans: Iterable[Span], service: str) -> tuple[TracePath, ...]:
    """The traces that `service` took part in, by start."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in awaited(spans):
        traces[trace_key(span)].append(span)
    return tuple(
        sorted(
            (_path(members, service) for members in traces.values()),
            key=lambda path: path.start_us,
        )
    )


def silent_since(paths: Sequence[TracePath], until: datetime) -> datetime | None:
    """When the last trace of the service began, if by their usual rhythm many more were due since; else None."""
    starts = [path.start_us / 1e6 for path in paths if path.has_service]
    if len(starts) < _FEWEST_FOR_RHYTHM:
        return None
    rhythm = (starts[-1] - starts[0]) / (len(starts) - 1)
    if until.timestamp() - starts[-1] < max(_DUE * rhythm, _SILENCE_SECONDS):
        return None
    return datetime.fromtimestamp(starts[-1], UTC)


def phase_of(operation: str) -> str:
    """The phase that an operation's name tells of, `other` when it tells of none.

    >>> phase_of("copy_to_device"), phase_of("tokenize"), phase_of("handle")
    ('h2d', 'frontend', 'other')
    """
    return next((phase for phase, pattern in _PHASES if pattern.search(operation)), "other")


def observe_traces(
    paths: Sequence[TracePath],
    catalogue: Catalogue,
    *,
    incident: Window,
    window: Window,
    query: str,
) -> tuple[Observation, ...]:
    """Observations `trace.<phase>`, `trace.peer` for each peer, and `traces.count`."""
    start, end = incident.start.timestamp() * 1e6, incident.end.timestamp() * 1e6
    own = [path for path in paths if path.has_service]
    before = [path for path in own if path.start_us < start]
    during = [path for path in own if start <= path.start_us <= end]
    found: list[Observation] = []

    def add(signal: Signal | None, part: str, old: list[float], new: list[float]) -> None:
        if signal is None:
            return
        found.append(
            Observation(
                signal=signal,
                entity=Entity("", part),
                query=query,
                source="traces",
                window=window,
                samples=len(old) + len(new),
                before=spread(old) if len(old) >= _FEWEST_BEFORE else None,
                during=spread(new) if len(new) >= _FEWEST_DURING else None,
                onset=None,
            )
        )

    for phase in ("frontend", "queue", "h2d", "compute", "outside"):
        if any(phase in path.seconds for path in own):
            add(
                catalogue.signals.get(f"trace.{phase}"),
                "",
                [path.seconds.get(phase, 0.0) for path in before],
                [path.seconds.get(phase, 0.0) for path in during],
            )
    for peer in sorted({peer for path in own for peer in path.peers}):
        add(
            catalogue.signals.get("trace.peer"),
            peer,
            [path.peers[peer] for path in before if peer in path.peers],
            [path.peers[peer] for path in during if peer in path.peers],
        )
    found.extend(
        _count(catalogue.signals.get("traces.count"), before, during, incident, window, query)
    )
    return tuple(found)


def _count(
    signal: Signal | None,
    before: Sequence[TracePath],
    during: Sequence[TracePath],
    incident: Window,
    window: Window,
    query: str,
) -> Iterable[Observation]:
    quiet = (incident.start - window.start).total_seconds()
    if signal is None or len(before) < _FEWEST_BEFORE or quiet <= 0:
        return
    expected = len(before) / quiet * incident.seconds
    if expected < _LEAST_TRACES:
        return
    level = spread([expected])
    yield Observation(
        signal=signal,
        entity=Entity(),
        query=query,
        source="traces",
        window=window,
        samples=len(before) + len(during),
        before=level,
        during=spread([float(len(during))]),
        onset=None,
        ended=not during,
    )


def _path(spans: Sequence[Span], service: str) -> TracePath:
    children: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        if span.parent is not None:
            children[span.parent].append(span)
    seconds: dict[str, float] = defaultdict(float)
    peers: dict[str, float] = defaultdict(float)
    for span in spans:
        own = max(0, span.duration_us - _covered(span, children[span.span_id])) / 1e6
        peer = span.tags.get("peer.service") or span.tags.get("net.peer.name")
        if span.service == service and peer:
            # What the peer itself took is part of the wait for it.
            peers[peer] += span.duration_us / 1e6
        elif span.service == service:
            seconds[phase_of(span.operation)] += own
        elif span.parent is None or any(
            child.service == service for child in children[span.span_id]
        ):
            seconds["outside"] += own
    return TracePath(
        start_us=min(span.start_us for span in spans),
        seconds=dict(seconds),
        peers=dict(peers),
        has_service=any(span.service == service for span in spans),
    )


def _covered(span: Span, children: Sequence[Span]) -> int:
    """Microseconds of a span that its children account for; parallel children count once.

    Children of another host whose clock puts them outside the span are moved into it together, so that their order
    and gaps stay as that host saw them.
    """
    first, last = span.start_us, span.start_us + span.duration_us
    moved: dict[str, int] = {}
    for service in {child.service for child in children} - {span.service}:
        there = [child for child in children if child.service == service]
        early = first - min(child.start_us for child in there)
        late = max(child.start_us + child.duration_us for child in there) - last
        moved[service] = early if early > 0 else min(0, -late)
    intervals = sorted(
        (
            max(child.start_us + moved.get(child.service, 0), first),
            min(child.start_us + child.duration_us + moved.get(child.service, 0), last),
        )
        for child in children
    )
    total, upto = 0, first
    for begin, finish in intervals:
        if finish > upto:
            total += finish - max(begin, upto)
            upto = finish
    return total
