"""Walks from an effect down to the deepest cause that is established beneath it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from bot.cause import Catalogue, DeeperLink
from bot.diagnosis.facts import Facts
from bot.diagnosis.judge import Bench, Verdict
from bot.diagnosis.weigh import Weighed
from bot.domain.instant import Window

ESTABLISHED_SUPPORT = 3.0
"""Log-odds that must speak for a link of a chain. Basis: judgement; one strong witness and one weak one."""

_LEAST_LOG_ODDS = -2.5
"""Log-odds below which a cause is no link, whatever speaks for it: what speaks against it is worth more. Basis: judgement."""

_UNSEEN = 2.0
"""Log-odds of a deeper cause that nobody could look at, from which on it stays open. Basis: one strong witness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Cause ids, effect first, root last.

    unordered: pairs whose order the scrape interval cannot show.
    """

    links: tuple[str, ...]
    unordered: tuple[tuple[str, str], ...] = ()


def find_chains(
    weighed: Mapping[str, Weighed], facts: Facts, catalogue: Catalogue
) -> dict[str, Chain]:
    """For every cause the longest chain that it is part of; a cause without links is its own chain."""
    deepest: dict[str, Chain] = {}

    def down(name: str, above: tuple[str, ...]) -> Chain:
        best = Chain(links=(name,))
        for link in catalogue.causes[name].deeper:
            if link.cause in above or link.cause not in weighed:
                continue
            order = _joined(weighed[name], weighed[link.cause], link, facts, catalogue)
            if order is None:
                continue
            rest = down(link.cause, (*above, name))
            if len(rest.links) + 1 > len(best.links):
                pair = ((name, link.cause),) if not order else ()
                best = Chain(links=(name, *rest.links), unordered=(*pair, *rest.unordered))
        return best

    chains = {name: down(name, ()) for name in weighed}
    for name in weighed:
        candidates = [
            chain
            for chain in chains.values()
            if name in chain.links and is_established(weighed[chain.links[0]])
        ]
        own = chains[name]
        deepest[name] = max(
            [*candidates, own],
            key=lambda chain: (
                len(chain.links), weighed[chain.links[-1]].support, chain.links
            ),
        )  # fmt: skip
    return deepest


def undecided(weighed: Mapping[str, Weighed], facts: Facts, catalogue: Catalogue) -> frozenset[str]:
    """Causes beneath which a deeper one is likely but could not be looked at: they must not be called sure."""
    found: set[str] = set()
    for name, item in weighed.items():
        for link in catalogue.causes[name].deeper:
            below = weighed.get(link.cause)
            if below is None or below.is_refuted or link.test is None:
                continue
            if _joined(item, below, link, facts, catalogue) is not None:
                continue
            bench = Bench(facts, catalogue, item.node)
            unseen = sum(rule.weight for rule in below.unseen)
            # Where not even the link could be looked at, nobody can say that the chain ends here.
            if unseen >= _UNSEEN and bench.judge(link.test).verdict is not Verdict.FALSE:
                found.add(name)
    return frozenset(found)


def is_established(item: Weighed) -> bool:
    """Whether enough speaks for a cause, and nothing excludes it, to be a link of a chain."""
    return (
        item.support >= ESTABLISHED_SUPPORT
        and not item.is_refuted
        and item.log_odds > _LEAST_LOG_ODDS
    )


def late_links(
    weighed: Mapping[str, Weighed], facts: Facts, catalogue: Catalogue
) -> tuple[tuple[str, str], ...]:
    """Pairs of an effect and what would be its cause, or lie beneath that, had it not begun clearly later."""
    slack = timedelta(seconds=facts.resolution_seconds)
    found: dict[tuple[str, str], None] = {}
    for name, item in weighed.items():
        waiting = [
            link.cause
            for link in catalogue.causes[name].deeper
            if link.cause in weighed
            and _order(item, weighed[link.cause], link, facts, catalogue) is _Order.LATE
        ]
        while waiting:
            late = waiting.pop(0)
            if (name, late) in found or late == name:
                continue
            found[name, late] = None
            for link in catalogue.causes[late].deeper:
                below = weighed.get(link.cause)
                if below is None or below.onset is None or item.onset is None:
                    continue
                if below.onset.start > item.onset.end + slack:
                    waiting.append(link.cause)
    return tuple(found)


class _Order(Enum):
    """How what joins two causes lies in time."""

    SHOWN = "shown"
    UNSEEN = "unseen"
    LATE = "late"


def _joined(
    effect: Weighed, cause: Weighed, link: DeeperLink, facts: Facts, catalogue: Catalogue
) -> bool | None:
    """None when there is no link; else whether the order of the two could be shown."""
    order = _order(effect, cause, link, facts, catalogue)
    return None if order in (None, _Order.LATE) else order is _Order.SHOWN


def _order(
    effect: Weighed, cause: Weighed, link: DeeperLink, facts: Facts, catalogue: Catalogue
) -> _Order | None:
    """None where nothing joins the two."""
    if not (is_established(effect) and is_established(cause)):
        return None
    if effect.node is not None and cause.node is not None and effect.node != cause.node:
        return None
    slack = timedelta(seconds=facts.resolution_seconds)
    if link.test is not None:
        node = cause.node or effect.node
        between = Bench(facts, catalogue, node).judge(link.test)
        if between.verdict is not Verdict.TRUE:
            return None
        if between.onset and effect.onset and between.onset.start > effect.onset.end + slack:
            # What joins the two began after the effect: it is another effect, or a bystander.
            return _Order.LATE
    began = _own_onset(cause, effect)
    if effect.onset is None or began is None:
        return _Order.UNSEEN
    if began.start > effect.onset.end + slack:
        # What began clearly later cannot have caused what was there before.
        return _Order.LATE
    return _Order.SHOWN if began.end <= effect.onset.start + slack else _Order.UNSEEN


def _own_onset(cause: Weighed, effect: Weighed) -> Window | None:
    """When a cause began by what speaks for it alone: what it shares with its effect dates the effect.

    Where all of it is shared, or none of its own has a time, nothing better is known than the earliest of all.
    """
    shared = {
        item.id for move in effect.moves if move.weight > 0 for item in move.judgement.evidence
    }
    own = [
        move.judgement.onset
        for move in cause.moves
        if move.weight > 0
        and move.judgement.onset is not None
        and not shared & {item.id for item in move.judgement.evidence}
    ]
    return min(own, key=lambda window: (window.end, window.start), default=cause.onset)
