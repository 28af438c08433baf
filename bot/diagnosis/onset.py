"""Since when a component misbehaves, by the clearest of its own series."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.diagnosis.observation import find_shift, points
from bot.diagnosis.robust import spread
from bot.domain.evidence import Series

_CLEAR = 6.0
"""Robust deviations by which the level after a shift must differ from that before. Basis: judgement."""

_FEWEST = 5
"""Values on either side, below which nobody can speak of a level. Basis: judgement."""


def earliest_onset(series: Iterable[Series], component: str, until: datetime) -> datetime | None:
    """The earliest clear shift of a series of `component` (its label `service`), None when none is clear.

    A slow rise counts from its middle, which is late rather than early: a change is then not let off by mistake.
    One step is granted, since a sample stands for the step before it.
    """
    found: list[datetime] = []
    for one in series:
        if one.labels.get("service") != component:
            continue
        known = [pair for pair in points(one) if pair[0] <= until.timestamp()]
        shift = find_shift(known)
        if shift is None:
            continue
        at = shift.onset.timestamp()
        before = spread([value for when, value in known if when < at])
        after = spread([value for when, value in known if when >= at])
        if before is None or after is None or before.count < _FEWEST:
            continue
        noise = max(before.sigma, 0.05 * abs(before.middle), 1e-9)
        if abs(after.middle - before.middle) >= _CLEAR * noise:
            found.append(shift.onset + timedelta(seconds=one.step_seconds))
    return min(found, default=None)
