"""What a component's own gauges say: its processor, and the time in which it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bot.diagnosis.components.evidence import (
    Aspect,
    Blame,
    CallSide,
    ComponentEvidence,
    Reason,
    Track,
)
from bot.diagnosis.components.lost import find_losses

FLOORS = {Aspect.CPU: 2.0, Aspect.LATENCY: 0.005, Aspect.REQUESTS: 0.05}
"""Below this a value is as good as zero: percent of the limit, seconds, requests a second. Basis: judgement."""

_SIGNIFICANT = 4.0
_FULL = 3.0
"""Doublings at which a rise counts in full. Basis: judgement."""

_CPU, _LATENCY, _GAP = 2.5, 1.0, 3.0
"""Log-odds of each in full. Basis: judgement; on recorded benchmarks half or twice as much moves few ranks.

A late answer is worth least: whoever waits for the sick component answers late as well.
"""

_FEWEST = 5
"""Values before, below which nobody can speak of a usual level. Basis: judgement: five give a median and its
quartiles.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """How far a level rose: `doublings`, 0 where it did not rise clearly, and by how much in its unit."""

    doublings: float
    amount: float


def rise_of(track: Track, floor: float) -> Rise | None:
    """The rise of the settled level over the healthy values, None where there is too little to say."""
    before, now = track.before, track.settled
    if before is None or now is None or before.count < _FEWEST:
        return None
    noise = max(before.sigma, 0.05 * abs(before.middle), floor / 4)
    amount = now - before.middle
    # A level that healthy hours reach now and then is no rise.
    if amount < _SIGNIFICANT * noise or now <= _upper(track):
        return Rise(doublings=0.0, amount=0.0)
    return Rise(
        doublings=max(0.0, math.log2((now + floor) / (max(before.middle, 0.0) + floor))),
        amount=amount,
    )


def blame_gauges(evidence: ComponentEvidence) -> Blame:
    """A processor that works harder without more requests."""
    blame: dict[str, list[Reason]] = {}
    for name in evidence.graph.nodes:
        reasons = blame.setdefault(name, [])
        cpu = evidence.gauge(name, Aspect.CPU)
        requests = evidence.gauge(name, Aspect.REQUESTS)
        if cpu and (rise := rise_of(cpu.track, FLOORS[Aspect.CPU])) and rise.doublings:
            more = rise_of(requests.track, FLOORS[Aspect.REQUESTS]) if requests else None
            doublings = rise.doublings - (more.doublings if more else 0.0)
            if doublings > 0:
                reasons.append(
                    Reason(
                        kind="cpu",
                        detail=f"processor {2**rise.doublings:.1f} times its usual",
                        weight=_CPU * min(1.0, doublings / _FULL),
                    )
                )
    return {name: tuple(reasons) for name, reasons in blame.items() if reasons}


def blame_calls(evidence: ComponentEvidence) -> Blame:
    """Callees that answer late by their own clock, and callees whose answers are late only at the caller."""
    blame: dict[str, list[Reason]] = {}
    own = {name: _answering(evidence, name) for name in evidence.graph.nodes}
    # One measure speaks once: whose loss was followed through the graph is not accused again for the same lateness.
    is_late = evidence.symptom is Aspect.LATENCY
    followed = find_losses(evidence, Aspect.LATENCY) if is_late else {}
    for name, doublings in own.items():
        # What a callee of it explains is not its own.
        below = max((own[callee] for callee in evidence.graph.callees[name]), default=0.0)
        gap_below = max(
            (_gap(evidence, name, callee) or 0.0 for callee in evidence.graph.callees[name]),
            default=0.0,
        )
        rest = doublings - max(below, gap_below)
        if rest > 0 and name not in followed:
            blame.setdefault(name, []).append(
                Reason(
                    kind="answers",
                    detail=f"answers {2**doublings:.1f} times as late as usual",
                    weight=_LATENCY * min(1.0, rest / _FULL),
                )
            )
        gaps = [
            gap
            for caller in evidence.graph.callers[name]
            if (gap := _gap(evidence, caller, name)) is not None
        ]
        if gaps and max(gaps) > 0:
            share = sum(gap > 0 for gap in gaps) / len(gaps)
            blame.setdefault(name, []).append(
                Reason(
                    kind="network",
                    detail=f"its callers wait {2 ** max(gaps):.1f} times as long as it takes",
                    weight=_GAP * share * min(1.0, max(gaps) / _FULL),
                )
            )
    return {name: tuple(reasons) for name, reasons in blame.items()}


def _answering(evidence: ComponentEvidence, name: str) -> float:
    """Doublings of the time in which a component answers, by its own measure."""
    tracks = [
        g.track for g in evidence.gauges if g.component == name and g.aspect is Aspect.LATENCY
    ]
    tracks += [c.track for c in evidence.calls if c.callee == name and c.side is CallSide.CALLEE]
    rises = [rise_of(track, FLOORS[Aspect.LATENCY]) for track in tracks]
    known = sorted(rise.doublings for rise in rises if rise is not None)
    return known[len(known) // 2] if known else 0.0


def _gap(evidence: ComponentEvidence, caller: str, callee: str) -> float | None:
    """Doublings of what the caller waits beyond what the callee takes, None without a reading of the caller."""
    waits = _call(evidence, caller, callee, CallSide.CALLER)
    if waits is None:
        return None
    rise = rise_of(waits, FLOORS[Aspect.LATENCY])
    if rise is None:
        return None
    takes = _call(evidence, caller, callee, CallSide.CALLEE)
    inner = rise_of(takes, FLOORS[Aspect.LATENCY]) if takes else None
    return max(0.0, rise.doublings - (inner.doublings if inner else 0.0))


def _call(evidence: ComponentEvidence, caller: str, callee: str, side: CallSide) -> Track | None:
    for call in evidence.calls:
        if (call.caller, call.callee, call.side) == (caller, callee, side):
            return call.track
    return None


def _upper(track: Track) -> float:
    values = sorted(value for value in (*track.usual, *track.recent) if value is not None)
    return values[int(0.95 * (len(values) - 1))]
