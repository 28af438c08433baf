"""Who says nothing: peers without a series or a span, paths that no trace takes, nodes that no series names."""

from __future__ import annotations

from bot.diagnosis.collected import Collected
from bot.diagnosis.facts import Facts
from bot.domain.evidence import BlindSpot, SourceState
from bot.inventory import Service
from bot.locales import say

_MOST_NAMED = 5


def find_silences(collected: Collected, facts: Facts, service: Service) -> tuple[BlindSpot, ...]:
    """Blind spots of those that should speak; a source that is down is another blind spot and accuses nobody."""
    spots: list[BlindSpot] = []
    has_metrics = collected.states.get("metrics") is SourceState.OK
    parts = {
        item.entity.part
        for name, items in facts.observations.items()
        if name.startswith(("peer.", "trace.peer"))
        for item in items
    }
    traced = {span.service for span in collected.spans}
    for peer in service.depends_on[:_MOST_NAMED]:
        if traced and peer not in traced:
            what = say("guards.blind.path", caller=service.name, callee=peer)
            spots.append(BlindSpot(what=what, why=say("guards.blind.no_trace")))
        if has_metrics and peer not in parts and peer not in traced:
            what = say("guards.blind.peer", peer=peer)
            spots.append(BlindSpot(what=what, why=say("guards.blind.silent")))
    named = {item.entity.node for items in facts.observations.values() for item in items} - {""}
    if has_metrics and named:
        silent = [node for node in collected.nodes if node not in named]
        if silent:
            what = say("guards.blind.nodes", nodes=", ".join(silent[:_MOST_NAMED]))
            spots.append(BlindSpot(what=what, why=say("guards.blind.unnamed")))
    return tuple(spots)
