"""Robust statistics over short, noisy series; standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import median

_IQR_TO_SIGMA = 1.349
"""Inter-quartile range of a normal distribution in standard deviations. Source: any table of the normal law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What is usual: mean, middle, quartiles and range of finite values."""

    count: int
    mean: float
    middle: float
    low: float
    high: float
    least: float
    most: float

    @property
    def sigma(self) -> float:
        """A standard deviation that outliers do not move."""
        return (self.high - self.low) / _IQR_TO_SIGMA


def spread(values: Sequence[float]) -> Spread | None:
    """The spread of values, None when there are none.

    >>> spread([1.0, 2.0, 3.0, 4.0, 100.0]).middle
    3.0
    """
    if not values:
        return None
    ordered = sorted(values)
    return Spread(
        count=len(ordered),
        mean=fsum(ordered) / len(ordered),
        middle=median(ordered),
        low=quantile(ordered, 0.25),
        high=quantile(ordered, 0.75),
        least=ordered[0],
        most=ordered[-1],
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0..1) of the ordered values lie, interpolated.

    >>> quantile([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    at = share * (len(ordered) - 1)
    lower = int(at)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (ordered[upper] - ordered[lower]) * (at - lower)


def change_point(values: Sequence[float], *, margin: int = 3) -> int | None:
    """Index of the first value after the strongest lasting shift of level, None for too few or flat values.

    The split that leaves the least squared error around two means, over values cut at the 2nd and 98th percentile
    so that one spike is no shift.

    >>> change_point([1, 1, 2, 1, 1, 9, 8, 9, 9, 9])
    5
    """
    count = len(values)
    if count < 2 * margin:
        return None
    ordered = sorted(values)
    low, high = quantile(ordered, 0.02), quantile(ordered, 0.98)
    cut = [min(max(value, low), high) for value in values]
    total = sum(cut)
    best, best_gain = None, 0.0
    left = 0.0
    for at in range(1, count):
        left += cut[at - 1]
        if at < margin or count - at < margin:
            continue
        difference = left / at - (total - left) / (count - at)
        gain = difference * difference * at * (count - at) / count
        if gain > best_gain * (1 + 1e-9):
            best, best_gain = at, gain
    return best


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Theil-Sen slope of (seconds, value) pairs in units per second, None for fewer than four points.

    >>> slope([(0, 0.0), (1, 2.0), (2, 4.0), (3, 60.0), (4, 8.0)])
    2.0
    """
    if len(points) < 4:
        return None
    stride = max(1, len(points) // 60)
    few = points[::stride]
    rises = [
        (late[1] - early[1]) / (late[0] - early[0])
        for at, early in enumerate(few)
        for late in few[at + 1 :]
        if late[0] > early[0]
    ]
    return median(rises) if rises else None
