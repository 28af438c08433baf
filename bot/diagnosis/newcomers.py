"""Parts of a service that are too young to have a time before: their baseline is what their peers do meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.cause import Catalogue, Movement, Signal
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.observation import FEWEST_BEFORE, FEWEST_DURING, Observation, observe, points
from bot.diagnosis.robust import spread
from bot.domain.evidence import Series
from bot.domain.instant import Window

_LASTING_SHARE = 0.9
"""Share of its samples with which a newcomer stands apart, from the first that does. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A part that began within the window and has stood apart from its peers since `since`.

    earliest: it did not stand apart before this.
    peers: least and most of the peers' medians since then, in the signal's unit.
    """

    observation: Observation
    since: datetime
    earliest: datetime
    peers: tuple[float, float]


def find_newcomers(collected: Collected, catalogue: Catalogue) -> tuple[Newcomer, ...]:
    """The newcomers among what people notice, the earliest first."""
    found: list[Newcomer] = []
    for name, reading in collected.now.items():
        signal = collected.signal(name, catalogue)
        if signal is None or signal.symptom is None or len(reading.series) < 2:
            continue
        for series in reading.series:
            others = tuple(one for one in reading.series if one is not series)
            if (newcomer := _compared(signal, series, others, reading, collected)) is not None:
                found.append(newcomer)
    return tuple(
        sorted(
            found, key=lambda one: (one.since, one.observation.signal.name, one.observation.entity)
        )
    )


def _compared(
    signal: Signal,
    series: Series,
    others: tuple[Series, ...],
    reading: Reading,
    collected: Collected,
) -> Newcomer | None:
    values = points(series)
    peers = [one for one in others if _still_tells(one, collected.request.at)]
    if len(values) < FEWEST_DURING or not peers:
        return None
    levels = [found.middle for one in peers if (found := spread([v for _, v in points(one)]))]
    low, high = min(levels), max(levels)
    apart = [_is_apart(signal, value, low, high) for _, value in values]
    first = apart.index(True) if True in apart else len(apart)
    since = values[first:]
    # With enough of a time before it is no newcomer; and what stands apart only now and then is no level.
    if first >= FEWEST_BEFORE or len(since) < FEWEST_DURING:
        return None
    if sum(apart[first:]) < _LASTING_SHARE * len(since):
        return None
    if first == 0 and not _is_younger(values[0][0], peers):
        # It has been apart for as long as anything is known of it: that may be what it is like.
        return None
    window = Window(_moment(since[0][0]), collected.request.at)
    observation = observe(
        signal, series, query=reading.query, source="metrics", window=reading.window,
        incident=window, settle_seconds=0.0, partial=reading.partial, beyond=reading.beyond,
    )  # fmt: skip
    return Newcomer(
        observation=observation,
        since=window.start,
        earliest=_moment(values[max(0, first - 1)][0]),
        peers=(low, high),
    )


def _is_apart(signal: Signal, value: float, low: float, high: float) -> bool:
    """Whether a value is beyond every peer by the signal's own marks, on the side that hurts."""
    step = signal.ratio if signal.ratio >= 1 else 1 / signal.ratio
    if signal.direction is Movement.DOWN:
        return value <= low / step and low - value >= signal.floor
    return value >= high * step and value - high >= signal.floor


def _still_tells(series: Series, until: datetime) -> bool:
    """Whether a peer has a level and told it lately; one that fell silent is no measure of now."""
    values = points(series)
    lately = 4 * max(series.step_seconds, 15.0)
    return len(values) >= FEWEST_BEFORE and until.timestamp() - values[-1][0] <= lately


def _is_younger(began: float, peers: Sequence[Series]) -> bool:
    """Whether all the peers were there for a while before."""
    return all(sum(at < began for at, _ in points(one)) >= FEWEST_BEFORE for one in peers)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
