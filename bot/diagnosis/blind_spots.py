"""What was not seen, and why: sources that were down, probes that could not look, gaps in time and in coverage."""

from __future__ import annotations

from collections import defaultdict

from bot.diagnosis.collected import Collected
from bot.diagnosis.facts import Facts
from bot.diagnosis.trace_gaps import clock_skews, orphans, unfinished
from bot.diagnosis.wording import gap_of, not_answered, quantity, shared_gap
from bot.domain.evidence import BlindSpot, SourceState
from bot.domain.finding import ProbeStatus
from bot.domain.text import Localized
from bot.locales import say

_MOST_NAMED = 4
"""Signals that one sentence names."""


def find_blind_spots(collected: Collected, facts: Facts) -> tuple[BlindSpot, ...]:
    """Ordered: sources, probes, granularity, lateness, values that are none, traces, partial answers."""
    spots: list[BlindSpot] = []
    gaps = {gap.plugin: gap for gap in collected.gaps}
    for name, state in collected.states.items():
        if state is SourceState.OK:
            continue
        if state is not SourceState.UNREACHABLE:
            why = say("diagnosis.blind.empty")
        elif name == "probes" and (gap := shared_gap(collected.probes)):
            why = say(f"diagnosis.unread.{gap}")
        else:
            why = not_answered(gaps.get(name))
        spots.append(BlindSpot(what=say(f"diagnosis.source.{name}"), why=why))
    if collected.states.get("probes") is SourceState.OK:
        spots.extend(_probes(collected))
    if collected.now:
        spots.append(
            BlindSpot(
                what=say("diagnosis.blind.between", seconds=f"{collected.resolution_seconds:g}"),
                why=say("diagnosis.blind.interval"),
            )
        )
    if facts.is_stale and facts.results:
        spots.append(
            BlindSpot(what=say("diagnosis.blind.late_probes"), why=say("diagnosis.blind.over"))
        )
    spots.extend(_values(collected))
    spots.extend(_spans(collected))
    partial = sorted({note for reading in collected.now.values() for note in reading.partial})
    spots.extend(
        BlindSpot(what=say("diagnosis.blind.partial"), why=Localized.verbatim(note))
        for note in partial
    )
    return tuple(spots)


def _values(collected: Collected) -> list[BlindSpot]:
    odd = {name: reading.dropped for name, reading in collected.now.items() if reading.dropped}
    if not odd:
        return []
    names = sorted(odd, key=lambda name: (-odd[name], name))[:_MOST_NAMED]
    what = say("diagnosis.blind.not_finite", count=str(sum(odd.values())), signals=", ".join(names))
    return [BlindSpot(what=what, why=say("diagnosis.blind.no_denominator"))]


def _spans(collected: Collected) -> list[BlindSpot]:
    spots = [
        BlindSpot(
            what=say("diagnosis.blind.clocks", caller=caller, callee=callee),
            why=say("diagnosis.blind.skewed", by=quantity(seconds, "s")),
        )
        for (caller, callee), seconds in clock_skews(collected.spans).items()
    ]
    if lost := orphans(collected.spans):
        what = say("diagnosis.blind.orphans", count=str(lost))
        spots.append(BlindSpot(what=what, why=say("diagnosis.blind.parent_missing")))
    if endless := unfinished(collected.spans):
        what = say("guards.blind.unfinished", count=str(endless))
        spots.append(BlindSpot(what=what, why=say("guards.blind.no_end")))
    return spots


def _probes(collected: Collected) -> list[BlindSpot]:
    failed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for result in collected.probes:
        if result.status is not ProbeStatus.OK:
            failed[(result.node, gap_of(result))].append(result.probe)
    return [
        BlindSpot(
            what=say("diagnosis.blind.probes", node=node, probes=", ".join(sorted(names))),
            why=say(f"diagnosis.unread.{gap}"),
        )
        for (node, gap), names in sorted(failed.items())
    ]
