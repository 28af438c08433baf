"""Follows what is lost, time or requests, from where it is noticed down to where it arises.

Loss is counted, not averaged: requests times latency, or requests times the share that fails. A callee can only
explain what its caller lost if it lost about as much in the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bot.diagnosis.components.evidence import Aspect, Blame, ComponentEvidence, Gauge, Reason, Track
from bot.diagnosis.robust import spread

_EXPLAINS = 0.5
"""Share of the caller's loss that a callee must have lost as well. Basis: judgement; less is a bystander."""

_ENTRY_EXPLAINS = 0.3
"""The same below the entry, whose own reading is the noisiest: many paths meet there. Basis: judgement."""

_SIGNIFICANT = 2.5
"""Robust deviations of the steps before by which the worst step must stand out. Basis: judgement."""

_LEAST_SHARE = 0.001
"""Noise of one request's loss where nobody counts them: a millisecond, or one failure in a thousand. Basis: judgement."""

_DEEPEST = 3.0
_SIDE = 0.8
_UPSTREAM = 1.0
"""Log-odds of the deepest component of the walk, of one beside it, and of its callers. Basis: judgement; only
their order matters.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a component lost in each step beyond its usual loss.

    deviation: of the worst step, in robust standard deviations.
    is_new: nobody called the component in healthy times.
    """

    excess: tuple[float, ...]
    deviation: float
    is_new: bool

    @property
    def total(self) -> float:
        """All that was lost, in request seconds or requests."""
        return math.fsum(max(0.0, step) for step in self.excess)


def find_losses(evidence: ComponentEvidence, symptom: Aspect) -> Mapping[str, Loss]:
    """Loss by component, for those whose requests and symptom are both known."""
    found: dict[str, Loss] = {}
    gauges: dict[tuple[str, Aspect], Gauge] = {}
    for gauge in sorted(evidence.gauges, key=lambda g: g.statistic, reverse=True):
        gauges[gauge.component, gauge.aspect] = gauge
    is_counted = any(aspect is Aspect.REQUESTS for _, aspect in gauges)
    for name in evidence.graph.nodes:
        requests = gauges.get((name, Aspect.REQUESTS))
        per_request = gauges.get((name, symptom))
        if requests is None and (is_counted or per_request is None):
            continue
        if requests is None and per_request is not None:
            # Nobody counts requests anywhere: what one request loses stands for what all of them lose.
            loss = _loss(_each_once(per_request.track), per_request.track, symptom, counted=False)
        elif requests is not None:
            loss = _loss(requests.track, per_request.track if per_request else None, symptom)
        if loss is not None:
            found[name] = loss
    return found


def blame_lost(evidence: ComponentEvidence) -> Blame:
    """The walk from the entry down to the deepest component that explains the loss; empty without requests."""
    symptom = evidence.symptom
    if symptom not in (Aspect.LATENCY, Aspect.FAILURES):
        return {}
    losses = find_losses(evidence, symptom)
    entry = evidence.entry or _outermost(evidence, losses)
    if entry is None or entry not in losses:
        return {}
    unit = "request seconds" if symptom is Aspect.LATENCY else "failed requests"
    path = _walk(evidence, losses, entry)
    blame: dict[str, list[Reason]] = {}
    for at, name in enumerate(path):
        weight = _DEEPEST if at == len(path) - 1 else _UPSTREAM * (at + 1) / len(path)
        blame.setdefault(name, []).append(
            Reason(
                kind="lost",
                weight=weight,
                detail=f"{losses[name].total:.3g} {unit} lost here or below",
            )
        )
    for name, loss in losses.items():
        if name in path or loss.is_new or loss.deviation < _SIGNIFICANT:
            continue
        share = _overlap(losses[entry], loss)
        if share > 0:
            weight = _SIDE * share
            detail = f"{loss.total:.3g} {unit} lost beside the path"
            blame.setdefault(name, []).append(Reason(kind="lost", weight=weight, detail=detail))
    return {name: tuple(reasons) for name, reasons in blame.items()}


def _outermost(evidence: ComponentEvidence, losses: Mapping[str, Loss]) -> str | None:
    """Where the trouble was probably noticed if nobody says: of those that nobody calls, the one that lost most."""
    outer = [name for name in losses if not evidence.graph.callers[name]]
    return max(outer, key=lambda name: (losses[name].total, name), default=None)


def _each_once(track: Track) -> Track:
    """One request in each step that was measured."""

    def ones(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
        return tuple(None if value is None else 1.0 for value in values)

    return Track(usual=ones(track.usual), recent=ones(track.recent), during=ones(track.during))


def _walk(evidence: ComponentEvidence, losses: Mapping[str, Loss], entry: str) -> tuple[str, ...]:
    path = [entry]
    while True:
        here = path[-1]
        least = _ENTRY_EXPLAINS if here == entry else _EXPLAINS
        ranked = sorted(
            (
                (
                    -round(_overlap(losses[here], losses[callee]), 6),
                    -losses[callee].deviation,
                    callee,
                )
                for callee in evidence.graph.callees[here]
                if callee in losses
                and callee not in path
                # A callee that nobody asked before and that fails is the caller asking for the wrong thing.
                and not losses[callee].is_new
                and losses[callee].deviation >= _SIGNIFICANT
            ),
        )
        if not ranked or -ranked[0][0] < least:
            return tuple(path)
        path.append(ranked[0][2])


def _overlap(caller: Loss, callee: Loss) -> float:
    """Share of the caller's loss that the callee lost in the same steps, 0..1."""
    if caller.total <= 0:
        return 0.0
    both = math.fsum(
        max(0.0, min(above, below))
        for above, below in zip(caller.excess, callee.excess, strict=False)
    )
    return both / caller.total


def _loss(
    requests: Track, per_request: Track | None, symptom: Aspect, *, counted: bool = True
) -> Loss | None:
    usual = _product(requests.usual, per_request.usual if per_request else ())
    recent = [
        value
        for value in _product(requests.recent, per_request.recent if per_request else ())
        if value is not None
    ]
    during = _product(requests.during, per_request.during if per_request else ())
    healthy = spread([value for value in usual if value is not None])
    is_new = not any(requests.usual) and not any(requests.recent)
    level = healthy.middle if healthy else 0.0
    # The quietest step before the alert: the trouble began before the alert did.
    quiet = max(level, min(recent)) if recent else level
    noise = healthy.sigma if healthy else 0.0
    if symptom is Aspect.FAILURES and counted:
        noise = max(noise, math.sqrt(max(level, 1.0)))
    else:
        noise = max(noise, 0.05 * abs(level), 1e-9 if counted else _LEAST_SHARE)
    excess = tuple((value if value is not None else level) - quiet for value in during)
    if not excess:
        return None
    return Loss(excess=excess, deviation=max(excess) / noise, is_new=is_new)


def _product(
    requests: tuple[float | None, ...] | tuple[float, ...],
    per_request: tuple[float | None, ...] | tuple[float, ...],
) -> list[float | None]:
    """Requests times what each of them lost; a step without requests lost nothing."""
    padded = [*per_request, *([None] * (len(requests) - len(per_request)))]
    return [
        None if count is None else 0.0 if not count or each is None else count * each
        for count, each in zip(requests, padded, strict=False)
    ]
