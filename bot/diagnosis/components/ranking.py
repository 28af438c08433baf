"""Ranks the components of a dependency graph: every rule adds log-odds to the component it accuses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from bot.diagnosis.components.events import blame_events, blame_waiting
from bot.diagnosis.components.evidence import Blame, ComponentEvidence, RankedComponent, Reason
from bot.diagnosis.components.gauges import blame_calls, blame_gauges
from bot.diagnosis.components.lost import blame_lost

_RULES: tuple[Callable[[ComponentEvidence], Blame], ...] = (
    blame_lost,
    blame_gauges,
    blame_calls,
    blame_events,
    blame_waiting,
)


def rank_components(evidence: ComponentEvidence) -> tuple[RankedComponent, ...]:
    """All candidates, guiltiest first.

    Ties: the one deeper below the entry first, since a callee explains its callers; then by name.
    """
    found: dict[str, list[Reason]] = defaultdict(list)
    for rule in _RULES:
        for name, reasons in rule(evidence).items():
            found[name].extend(reasons)
    depth = evidence.graph.depth_from(evidence.entry)
    ranked = [
        RankedComponent(
            name=name,
            score=sum(reason.weight for reason in found[name]),
            reasons=tuple(sorted(found[name], key=lambda r: (-r.weight, r.kind, r.detail))),
        )
        for name in sorted(evidence.candidates or evidence.graph.nodes)
    ]
    return tuple(
        sorted(
            ranked, key=lambda item: (-round(item.score, 9), -depth.get(item.name, -1), item.name)
        )
    )
