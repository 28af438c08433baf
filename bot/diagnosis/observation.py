"""Signals as values: what a series was before the incident, what it is during it, and since when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import fmean

from bot.cause import EPOCH, Movement, Signal
from bot.diagnosis.robust import Spread, change_point, spread
from bot.domain.evidence import Sample, Series
from bot.domain.instant import Window

FEWEST_BEFORE = 5
FEWEST_DURING = 3
"""Samples below which a level is unknown. Basis: judgement: five give a median with quartiles, three outvote one
stray.
"""

_SIGNIFICANT = 4.0
"""Robust standard deviations that a shift must exceed. Basis: judgement; three is passed by daily rhythm."""


_STOPPED_RATIO = 0.03
"""What may be left of something that has stopped. Basis: judgement: a retry now and then."""

_FEWEST_LINES = 12.0
"""Lines that must have been due before their absence says something: by chance none comes once in 160,000 times.

Source: Poisson's law.
"""

_FORERUN_SECONDS = 1_800.0
"""How long before the symptom what brought it about may have begun to move within one window. Basis: judgement."""

_SMOOTHED = 4
"""Samples of a gauge that are taken together for its noise, as many as a rate spans, so that both are judged alike."""


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """Whose value it is; what does not apply is empty."""

    node: str = ""
    part: str = ""

    @property
    def label(self) -> str:
        """For people, for example `gpu-1 nvme0n1`."""
        return " ".join(text for text in (self.node, self.part) if text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A lasting change of level inside a series: from `onset` to `end`, or to the end of the series."""

    onset: datetime
    earliest: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One signal of one entity, before against during.

    during is None where there are too few samples to say anything; `ended` says that they stopped coming.
    usual: least and most of the same hour on other days, None without history.
    growth: change over the last hours by a robust slope, in the signal's unit, None without trend.
    noise: standard deviation of the time before, None where that of its samples is meant.
    beyond: of a quantile, the largest finite bucket and the share of requests above it.
    """

    signal: Signal
    entity: Entity
    query: str
    source: str
    window: Window
    samples: int
    before: Spread | None
    during: Spread | None
    onset: Window | None
    usual: tuple[float, float] | None = None
    growth: tuple[float, float] | None = None
    ended: bool = False
    partial: tuple[str, ...] = ()
    series: Series | None = None
    noise: float | None = None
    beyond: tuple[float, float] | None = None

    @property
    def is_known(self) -> bool:
        """Whether both sides of the comparison are there."""
        return self.before is not None and self.during is not None

    @property
    def is_capped(self) -> bool:
        """Whether the value stands at the largest bucket, so that the truth may be any more."""
        return (
            self.beyond is not None
            and self.during is not None
            and self.beyond[1] > 0
            and self.during.middle >= self.beyond[0] * (1 - 1e-6)
        )

    @property
    def ratio(self) -> float:
        """During over before; a base near zero is lifted to a tenth of the floor."""
        if self.before is None or self.during is None:
            return 1.0
        base = max(abs(self.before.middle), self.signal.floor / 10, 1e-12)
        return self.during.middle / base

    @property
    def delta(self) -> float:
        """During minus before, in the signal's unit."""
        if self.before is None or self.during is None:
            return 0.0
        return self.during.middle - self.before.middle

    @property
    def deviation(self) -> float:
        """The shift in robust standard deviations of the time before; flat series have the floor as their noise."""
        if self.before is None:
            return 0.0
        sigma = self.before.sigma if self.noise is None else self.noise
        # A date is far from zero by its calendar alone: a hundredth of it would be half a year.
        size = 0.0 if self.signal.unit == EPOCH else abs(self.before.middle)
        return self.delta / max(sigma, size * 0.01, self.signal.floor / 8, 1e-12)

    def moved(self, *, ratio: float | None = None, delta: float | None = None) -> Movement | None:
        """`UP`, `DOWN` or `FLAT` by the signal's own marks or those given; None when unknown."""
        if not self.is_known:
            return None
        step = ratio if ratio is not None else self.signal.ratio
        step = step if step >= 1 else 1 / max(step, 1e-9)
        least = delta if delta is not None else self.signal.floor
        if abs(self.delta) < max(least, 1e-12) or abs(self.deviation) < _SIGNIFICANT:
            return Movement.FLAT
        if self.delta > 0 and self.ratio >= step:
            return Movement.UP
        if self.delta < 0 and self.ratio <= 1 / step:
            return Movement.DOWN
        return Movement.FLAT

    def is_lost_in_noise(self, ratio: float | None = None, delta: float | None = None) -> bool:
        """Whether only the noise of the time before keeps a step from counting as a move."""
        if not self.is_known:
            return False
        step = ratio if ratio is not None else self.signal.ratio
        step = step if step >= 1 else 1 / max(step, 1e-9)
        least = max(delta if delta is not None else self.signal.floor, 1e-12)
        large = abs(self.delta) >= least and (self.ratio >= step or self.ratio <= 1 / step)
        return large and abs(self.deviation) < _SIGNIFICANT

    def has_stopped(self) -> bool | None:
        """Whether next to nothing is left of what was there; None when unknown."""
        if self.ended:
            return True
        if self.before is None or self.during is None:
            return None
        if self.signal.unit == "lines" and self.before.middle >= 1:
            # Few lines each minute are many in an hour: that none came is then no chance.
            expected = self.before.mean * self.during.count
            return (
                expected >= _FEWEST_LINES and self.during.mean <= _STOPPED_RATIO * self.before.mean
            )
        return self.before.middle > self.signal.floor / 2 and (
            self.during.middle <= _STOPPED_RATIO * self.before.middle
        )

    def is_usual(self) -> bool | None:
        """Whether other days at this hour looked the same; None without history.

        A tenth is granted on both sides, since two days are never equal.
        """
        if self.usual is None or self.during is None:
            return None
        low, high = self.usual
        return low * 0.9 <= self.during.middle <= high * 1.1


def points(series: Series) -> list[tuple[float, float]]:
    """(seconds since the epoch, value) of the samples that have one; what is no number is above and below nothing."""
    return [
        (sample.at.timestamp(), sample.value)
        for sample in series.samples
        if sample.value is not None and math.isfinite(sample.value)
    ]


def entity_of(series: Series) -> Entity:
    """Node and part from the labels; exporters spell them differently."""
    labels = series.labels
    node = labels.get("node") or labels.get("Hostname") or ""
    if not node and "instance" in labels:
        node = labels["instance"].rsplit(":", 1)[0]
    keys: tuple[str, ...] = (
        "gpu",
        "device",
        "peer",
        "container",
        "mountpoint",
        "pool",
        "version",
        "zone",
    )
    workload = labels.get("exported_pod") or labels.get("pod")
    if workload and not node and "instance" not in labels and "gpu" not in labels:
        return Entity("", workload)
    if "instance" not in labels:
        # Streams of a log store: there these name the program, on a scraped series they name the scrape.
        keys = (*keys, "service", "app", "job", "unit")
    for key in keys:
        if labels.get(key):
            part = labels[key]
            return Entity(node, f"GPU {part}" if key == "gpu" else part)
    return Entity(node)


def find_shift(values: Sequence[tuple[float, float]]) -> Shift | None:
    """The strongest lasting shift, and its end when the level came back."""
    levels = [value for _, value in values]
    at = change_point(levels)
    if at is None:
        return None
    start, end = at, len(levels)
    before = _middle(levels[:at])
    back = change_point(levels[at:])
    early = change_point(levels[:at])
    if back is not None and _returned(
        before, _middle(levels[at : at + back]), _middle(levels[at + back :])
    ):
        end = at + back
    elif early is not None and _returned(
        _middle(levels[:early]), _middle(levels[early:at]), _middle(levels[at:])
    ):
        start, end = early, at
    return Shift(
        onset=_moment(values[start][0]),
        earliest=_moment(values[start - 1][0]),
        end=_moment(values[end][0]) if end < len(levels) else None,
    )


def observe(
    signal: Signal,
    series: Series,
    *,
    query: str,
    source: str,
    window: Window,
    incident: Window,
    settle_seconds: float,
    partial: tuple[str, ...] = (),
    beyond: tuple[float, float] | None = None,
) -> Observation:
    """Compares the time before the incident with the time in it.

    settle_seconds: rate window; that long after the onset a rate still mixes both levels.
    """
    found = points(series)
    start, end = incident.start.timestamp(), incident.end.timestamp()
    before = [value for at, value in found if at < start - settle_seconds]
    during = [value for at, value in found if start + settle_seconds <= at <= end]
    if len(during) < FEWEST_DURING:
        during = [value for at, value in found if start <= at <= end]
    last = found[-1][0] if found else None
    ended = last is not None and last < start + settle_seconds and last < end - 4 * settle_seconds
    observation = Observation(
        signal=signal,
        entity=entity_of(series),
        query=query,
        source=source,
        window=window,
        samples=len(found),
        before=spread(before) if len(before) >= FEWEST_BEFORE else None,
        during=spread(during) if len(during) >= FEWEST_DURING else None,
        onset=None,
        ended=ended,
        partial=partial,
        series=series,
        noise=_noise_of_gauge(before, during, query) if source == "metrics" else None,
        beyond=beyond,
    )
    if observation.is_lost_in_noise() and (own := _own_start(found, start, end)) is not None:
        # It moved before the symptom did, so the time before the symptom mixes both of its levels.
        earlier = [value for at, value in found if at < own - settle_seconds]
        if len(earlier) >= FEWEST_BEFORE:
            noise = _noise_of_gauge(earlier, during, query) if source == "metrics" else None
            observation = replace(observation, before=spread(earlier), noise=noise)
    if observation.moved() in (Movement.UP, Movement.DOWN):
        return _with_onset(observation, found, end, settle_seconds)
    return observation


def _own_start(found: list[tuple[float, float]], start: float, end: float) -> float | None:
    """Since when a series stands where it stands now, if that is shortly before the incident; else None."""
    shift = find_shift([pair for pair in found if pair[0] <= end])
    if shift is None or shift.end is not None:
        return None
    own = shift.onset.timestamp()
    return own if start - _FORERUN_SECONDS <= own < start else None


def _noise_of_gauge(before: list[float], during: list[float], query: str) -> float | None:
    """What is left of a gauge's noise when as many samples as a rate spans are taken together, given enough of both."""
    if "rate(" in query or min(len(before), len(during)) < 3 * _SMOOTHED:
        return None
    blocks = [
        fmean(before[at : at + _SMOOTHED])
        for at in range(0, len(before) - _SMOOTHED + 1, _SMOOTHED)
    ]
    found = spread(blocks)
    return found.sigma if found else None


def is_log_signal(signal: Signal) -> bool:
    """Whether a signal is a volume that the engine asks of the log store."""
    return signal.name.startswith("logs.") and not signal.queries


def zero_filled(series: Series, window: Window) -> Series:
    """A log store leaves a step out when there was no line; here that is a true zero."""
    step = series.step_seconds or 60.0
    have = {round(sample.at.timestamp() / step): sample.value for sample in series.samples}
    first, last = round(window.start.timestamp() / step) + 1, round(window.end.timestamp() / step)
    origin = series.samples[0].at if series.samples else window.start
    offset = round(origin.timestamp() / step)
    return replace(
        series,
        samples=tuple(
            Sample(
                at=origin + timedelta(seconds=(index - offset) * step),
                value=have.get(index) or 0.0,
            )
            for index in range(first, last + 1)
        ),
    )


def _with_onset(
    observation: Observation, found: list[tuple[float, float]], end: float, settle: float
) -> Observation:
    upto = [pair for pair in found if pair[0] <= end]
    shift = find_shift(upto)
    if shift is None:
        return observation
    # A rate moves up to one window after its counter did, so the interval opens that much earlier.
    onset = Window(shift.earliest - timedelta(seconds=settle), shift.onset)
    return replace(observation, onset=onset)


def _returned(before: float, during: float, after: float) -> bool:
    return abs(after - before) < 0.35 * abs(during - before)


def _middle(values: Sequence[float]) -> float:
    found = spread(values)
    return found.middle if found else 0.0


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
