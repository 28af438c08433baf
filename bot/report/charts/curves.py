"""Series as curves: times as matplotlib counts them, breaks where nothing is known, round moments for the axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from bot.domain.evidence import Series

DAY = 86400.0
"""Seconds of one."""

_MOST_TICKS = 8
_STEPS = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
)  # fmt: skip


def ticks(start: datetime, end: datetime, zone: ZoneInfo) -> list[float]:
    """Seconds since 1970 of round moments of the zone's clock, nine at most.

    matplotlib's own locator of dates asks a calendar for each tick and costs a tenth of the whole drawing.
    """
    first, last = start.timestamp(), end.timestamp()
    longest = math.ceil((last - first) / _MOST_TICKS / DAY) * DAY
    step: float = next((one for one in _STEPS if (last - first) / one <= _MOST_TICKS), longest)
    offset = (start.astimezone(zone).utcoffset() or timedelta()).total_seconds()
    at = math.ceil((first + offset) / step) * step - offset
    return [at + n * step for n in range(int((last - at) // step) + 1)]


def days(at: datetime) -> float:
    """Days since 1970: the form that matplotlib's axes of dates count in."""
    return at.timestamp() / DAY


def known_values(series: Series) -> list[float]:
    """The values that a line can be drawn through."""
    return [s.value for s in series.samples if s.value is not None and math.isfinite(s.value)]


def points(series: Series, factor: float) -> tuple[list[float], list[float]]:
    """Times in days and scaled values, with a NaN in every gap so that no line crosses it."""
    times: list[float] = []
    values: list[float] = []
    step = series.step_seconds / DAY
    for sample in series.samples:
        at = days(sample.at)
        if times and step and at - times[-1] > 2.5 * step:
            times.append(times[-1] + step)
            values.append(math.nan)
        times.append(at)
        value = sample.value
        values.append(math.nan if value is None or not math.isfinite(value) else value * factor)
    return times, values


def is_alone(values: Sequence[float], index: int) -> bool:
    """Whether a value has a gap on both sides, so that no line shows it."""

    def is_gap(position: int) -> bool:
        return not 0 <= position < len(values) or math.isnan(values[position])

    return not math.isnan(values[index]) and is_gap(index - 1) and is_gap(index + 1)


def gaps(series: Sequence[Series]) -> Iterator[tuple[float, float]]:
    """Beginning and end, in days, of each span in which none of the series knows anything."""
    known = sorted(
        {
            sample.at
            for item in series
            for sample in item.samples
            if sample.value is not None and math.isfinite(sample.value)
        }
    )
    step = max((item.step_seconds for item in series), default=0.0)
    for before, after in pairwise(known):
        if step and (after - before).total_seconds() > 2.5 * step:
            yield days(before), days(after)
