"""Samples integral counters many times a second, so that a stall shorter than a scrape shows."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from bot.device.proc import ProcRoot
from bot.errors import ProbeError

HERTZ = 20
"""Source: bursts of 10 to 20 Hz are enough for stalls of a tenth of a second."""
BIN_SAMPLES = 5
"""A quarter of a second at 20 Hz."""
RESOURCES = ("cpu", "io", "memory")


@dataclass(frozen=True, slots=True)
class BurstSeries:
    """Waiting share of one resource: over the whole time, in the middle and the worst quarter second, and bad ones."""

    mean_ratio: float
    median_ratio: float
    peak_ratio: float
    bad_bins: int
    bins: int


def sample_bursts(
    proc: ProcRoot,
    seconds: float,
    bad_ratio: float,
    wait: Callable[[float], None],
    monotonic: Callable[[], float],
) -> dict[str, BurstSeries]:
    """Reads the pressure totals, which cannot miss an event, 20 times a second; a resource that is not told is left out.

    Raises:
        ProbeError: the kernel tells no pressure of any resource.
    """
    rows: list[tuple[float, dict[str, float]]] = []
    started = monotonic()
    while True:
        rows.append((monotonic(), _totals(proc)))
        left = seconds - (monotonic() - started)
        if left <= 0:
            break
        wait(min(left, 1 / HERTZ))
    return {name: _series(name, rows, bad_ratio) for name in rows[0][1]}


def _totals(proc: ProcRoot) -> dict[str, float]:
    totals: dict[str, float] = {}
    failure: ProbeError | None = None
    for name in RESOURCES:
        try:
            totals[name] = proc.pressure(name).some_total_seconds
        except ProbeError as error:
            failure = error
    if not totals and failure is not None:
        raise failure
    return totals


def _series(name: str, rows: list[tuple[float, dict[str, float]]], bad_ratio: float) -> BurstSeries:
    edges = [*rows[::BIN_SAMPLES], rows[-1]]
    shares: list[float] = []
    for (start, before), (end, after) in itertools.pairwise(edges):
        if end > start and name in before and name in after:
            shares.append(min(1.0, (after[name] - before[name]) / (end - start)))
    whole = rows[-1][0] - rows[0][0]
    spent = rows[-1][1].get(name, 0.0) - rows[0][1][name]
    return BurstSeries(
        mean_ratio=spent / whole if whole > 0 else 0.0,
        median_ratio=statistics.median(shares) if shares else 0.0,
        peak_ratio=max(shares, default=0.0),
        bad_bins=sum(1 for share in shares if share >= bad_ratio),
        bins=len(shares),
    )
