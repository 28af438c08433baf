"""Weighs one cause: log-odds with an entry for every move, its refuters, and what nobody could look at."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.cause import Catalogue, Cause, EvidenceRule, Refuter
from bot.diagnosis.facts import Facts
from bot.diagnosis.judge import Bench, Judgement, Verdict
from bot.domain.instant import Window

REFUTED = -4.0
"""Highest log-odds of a cause with a live refuter: two in a hundred. Basis: judgement."""

_WITNESS = 0.8
"""Log-odds from which a family counts as an independent witness: that something else is calm is none. Basis: judgement."""

_EQUAL_SUPPORT = 0.5
"""Log-odds by which the support of two nodes may differ and still count as equal. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One rule that moved the balance by `weight` log-odds."""

    rule: EvidenceRule
    judgement: Judgement
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One cause on one node (None: the service as a whole).

    log_odds: prior and all moves; capped while a refuter is live.
    support: the sum of what speaks for it.
    unseen: rules and refuters that nobody could look at.
    families: kinds of evidence that speak for it, each with enough to be a witness of its own.
    """

    cause: Cause
    node: str | None
    log_odds: float
    support: float
    moves: tuple[Move, ...] = ()
    refuted_by: tuple[tuple[Refuter, Judgement], ...] = ()
    unseen: tuple[EvidenceRule, ...] = ()
    families: frozenset[str] = field(default_factory=frozenset)
    onset: Window | None = None

    @property
    def is_refuted(self) -> bool:
        """Whether a refuter is live."""
        return bool(self.refuted_by)


def weigh(cause: Cause, facts: Facts, catalogue: Catalogue) -> Weighed:
    """The cause on the node where most speaks for it; without a clear first the node stays open."""
    if not cause.local or not facts.nodes:
        return _on(cause, None, facts, catalogue)
    sides = sorted(
        (_on(cause, node, facts, catalogue) for node in facts.nodes),
        key=lambda side: (-side.log_odds, -side.support, side.node or ""),
    )
    best = sides[0]
    equal = [
        side for side in sides if side.support >= best.support - _EQUAL_SUPPORT and best.support > 0
    ]
    if len(equal) > 1:
        named = [side for side in equal if side.node in facts.named_nodes]
        return named[0] if len(named) == 1 else replace(best, node=None)
    return best


def _on(cause: Cause, node: str | None, facts: Facts, catalogue: Catalogue) -> Weighed:
    bench = Bench(facts, catalogue, node)
    excluding = Bench(facts, catalogue, node, strict=True)
    moves: list[Move] = []
    unseen: list[EvidenceRule] = []
    for rule in cause.evidence:
        judgement = bench.judge(rule.test)
        match judgement.verdict:
            case Verdict.TRUE:
                moves.append(Move(rule=rule, judgement=judgement, weight=rule.weight))
            case Verdict.FALSE if rule.absent:
                moves.append(Move(rule=rule, judgement=judgement, weight=rule.absent))
            case Verdict.FALSE:
                pass
            case Verdict.UNKNOWN:
                if rule.weight > 0:
                    unseen.append(rule)
    refuted_by = tuple(
        (refuter, judgement)
        for refuter in cause.refuters
        if (judgement := excluding.judge(refuter.test)).verdict is Verdict.TRUE
    )
    log_odds = math.log(cause.prior / (1 - cause.prior)) + sum(move.weight for move in moves)
    if refuted_by:
        log_odds = min(log_odds, REFUTED)
    supporting = [move for move in moves if move.weight > 0]
    onsets = [move.judgement.onset for move in supporting if move.judgement.onset is not None]
    return Weighed(
        cause=cause,
        node=node,
        log_odds=log_odds,
        support=sum(move.weight for move in supporting),
        moves=tuple(moves),
        refuted_by=refuted_by,
        unseen=tuple(unseen),
        families=_witnesses(supporting),
        onset=min(onsets, key=lambda window: (window.end, window.start)) if onsets else None,
    )


def _witnesses(supporting: Sequence[Move]) -> frozenset[str]:
    weights: dict[str, float] = defaultdict(float)
    for move in supporting:
        weights[move.rule.family] += move.weight
    return frozenset(family for family, weight in weights.items() if weight >= _WITNESS)
