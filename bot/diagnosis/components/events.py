"""What lines and spans say: a step that used to follow every call and no longer comes, and waiting between two spans."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from bot.diagnosis.components.evidence import (
    Blame,
    ComponentEvidence,
    EventCount,
    EventKind,
    Reason,
    SpanRole,
)

_LEAST_EXPECTED = 3.0
"""Occurrences that must be missed before silence says anything: by chance that is exp(-3), one in twenty."""

_ALIKE = 0.15
"""Share by which two counts may differ and still be the same traffic. Basis: judgement."""

_VANISHED, _ERRORS, _WAIT = 3.0, 1.0, 3.0
"""Log-odds of each in full. Basis: judgement; half or twice as much is measured in the table of decisions."""

_FULL_EXPECTED = 12.0
"""Missed occurrences at which silence counts in full: by chance that is exp(-12), once in 160,000 times."""

_WAITING_SECONDS = 0.1
_WAITING_TIMES = 3.0
_BELOW = 0.5
"""What is left of a reason where a callee has the same one. Basis: judgement; callers stumble over their callees."""


def blame_events(evidence: ComponentEvidence) -> Blame:
    """Components whose flow breaks off in the middle, and those that write errors they never wrote."""
    by_component: dict[str, list[EventCount]] = defaultdict(list)
    for event in evidence.events:
        by_component[event.component].append(event)
    missing = {name: _vanished(events) for name, events in by_component.items()}
    errors = {name: _new_errors(events) for name, events in by_component.items()}
    blame: dict[str, list[Reason]] = defaultdict(list)
    for name in sorted(by_component):
        expected, missed = missing[name]
        if expected >= _LEAST_EXPECTED:
            weight = _VANISHED * min(1.0, expected / _FULL_EXPECTED)
            if _any_below(
                evidence, name, {n for n, (e, _) in missing.items() if e >= _LEAST_EXPECTED}
            ):
                weight *= _BELOW
            detail = f"{expected:.0f} times expected, never seen: {missed[:80]}"
            blame[name].append(Reason(kind="vanished", detail=detail, weight=weight))
        count, text = errors[name]
        if count >= _LEAST_EXPECTED:
            weight = _ERRORS * min(1.0, math.log2(1 + count) / 4)
            if _any_below(
                evidence, name, {n for n, (c, _) in errors.items() if c >= _LEAST_EXPECTED}
            ):
                weight *= _BELOW
            detail = f"{count:.0f} errors never written before: {text[:80]}"
            blame[name].append(Reason(kind="errors", detail=detail, weight=weight))
    return {name: tuple(reasons) for name, reasons in blame.items()}


def blame_waiting(evidence: ComponentEvidence) -> Blame:
    """The component at one end of every call that waits longer than the other side works.

    A delay on the way to a component shows at all its callers and, when its sending is slow, in its own calls; one
    that sits elsewhere shows at some of them only.
    """
    gaps = _waiting(evidence)
    waiting = {name: gap for name, gap in gaps.items() if gap > 0}
    if not waiting:
        return {}
    total = math.fsum(waiting.values())
    calls: dict[tuple[str, str], float] = defaultdict(float)
    for span in evidence.spans:
        if span.role is SpanRole.SERVER and span.caller is not None:
            calls[span.caller, span.component] += max(
                span.usual[0], max((count for count, _ in span.during), default=0.0)
            )
    blame: dict[str, tuple[Reason, ...]] = {}
    for name in evidence.graph.nodes:
        callers = {caller for caller, callee in calls if callee == name}
        ends = {end for end in callers if end in gaps}
        if not ends:
            continue
        consistent = sum(end in waiting for end in ends) / len(ends)
        covered = math.fsum(waiting.get(end, 0.0) for end in {*ends, name}) / total
        weight = _WAIT * consistent * covered
        if weight > 0:
            blame[name] = (
                Reason(
                    kind="waiting",
                    detail=f"{covered:.0%} of the waiting between spans is at its calls",
                    weight=weight,
                ),
            )
    return blame


def _vanished(events: list[EventCount]) -> tuple[float, str]:
    """The event that should have come most often and did not come at all, with how often."""
    alive = [event for event in events if not event.is_error]
    best = (0.0, "")
    for event in alive:
        if event.kind is not EventKind.LINE or event.usual <= 0 or _later(event):
            continue
        companions = [
            other
            for other in alive
            if other.event != event.event
            and abs(other.usual - event.usual) <= max(_ALIKE * event.usual, 1.0)
        ]
        counts = sorted(_later(other) for other in companions)
        # The lower middle: half of what usually comes along must still come.
        expected = float(counts[(len(counts) - 1) // 2]) if len(counts) > 1 else 0.0
        best = max(best, (expected, event.event))
    return best


def _new_errors(events: list[EventCount]) -> tuple[float, str]:
    return max(
        (
            (float(_later(event)), event.event)
            for event in events
            if event.is_error and event.kind is EventKind.LINE and event.usual <= 0
        ),
        default=(0.0, ""),
    )


def _later(event: EventCount) -> int:
    """Occurrences after the first step, which still mixes both states."""
    return sum(event.during[1:]) if len(event.during) > 1 else sum(event.during)


def _any_below(evidence: ComponentEvidence, name: str, others: set[str]) -> bool:
    seen: set[str] = set()
    wave = list(evidence.graph.callees.get(name, ()))
    while wave:
        node = wave.pop()
        if node in seen or node == name:
            continue
        seen.add(node)
        if node in others:
            return True
        wave.extend(evidence.graph.callees.get(node, ()))
    return False


def _waiting(evidence: ComponentEvidence) -> Mapping[str, float]:
    """Seconds a call by which a component waits longer beyond its callees' work than in healthy times; 0 if not clearly."""
    sums: dict[str, list[float]] = {}
    for span in evidence.spans:
        if span.role is SpanRole.CLIENT:
            side, name = 0, span.component
        elif span.role is SpanRole.SERVER and span.caller is not None:
            side, name = 2, span.caller
        else:
            continue
        entry = sums.setdefault(name, [0.0] * 6)
        later = span.during[1:] or span.during
        if side == 0:
            entry[0] += span.usual[0]
            entry[1] += span.usual[1]
            entry[3] += sum(count for count, _ in later)
            entry[4] += sum(seconds for _, seconds in later)
        else:
            entry[2] += span.usual[1]
            entry[5] += sum(seconds for _, seconds in later)
    gaps: dict[str, float] = {}
    for name, (usual_count, usual_wait, usual_work, count, wait, work) in sums.items():
        if usual_count <= 0 or count <= 0:
            continue
        before = max(0.0, usual_wait - usual_work) / usual_count
        now = max(0.0, wait - work) / count
        gaps[name] = now - before if now >= max(_WAITING_SECONDS, _WAITING_TIMES * before) else 0.0
    return gaps
