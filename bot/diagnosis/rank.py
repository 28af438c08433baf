"""From log-odds to probabilities that sum to one, `not_established` among the candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bot.cause import Catalogue
from bot.diagnosis.chain import Chain, find_chains, is_established, late_links, undecided
from bot.diagnosis.facts import Facts
from bot.diagnosis.lost_work import lost_work
from bot.diagnosis.priors import Priors, shifted
from bot.diagnosis.weigh import Weighed, weigh
from bot.domain.hypothesis import NOT_ESTABLISHED

LIKELY = 0.7
"""Probability that needs the independent families of a cause. Basis: design rule."""

_ONE_FAMILY = 0.65
_NO_FAMILY = 0.3
_REFUTED_SHARE = 0.05
"""Most that a cause may have with fewer independent families than it asks for, with none, and with a live
refuter. Basis: judgement: the first is just below `LIKELY`, the last is what a mistaken refuter should cost.
"""

_UNDECIDED = 0.0
"""Log-odds of `not_established` while a symptom is seen; a cause with its prior needs about three to pass it.

Basis: judgement; three are one strong witness and one weak one.
"""

_NOTHING_SEEN = 3.0
"""Log-odds of `not_established` while nothing that users notice deviates and nobody says that it does.

Basis: judgement; twenty to one that there is no incident where nobody notices one.
"""

_BENEATH = 2.0
"""How far the other links of a chain stay beneath its root, in log-odds. Basis: judgement; one witness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One candidate with its share; `weighed` is None for `not_established`.

    most: the share at which a guard held it back, None where none did.
    """

    cause: str
    probability: float
    weighed: Weighed | None
    chain: Chain
    most: float | None = None


def rank(facts: Facts, catalogue: Catalogue, priors: Priors | None = None) -> tuple[Ranked, ...]:
    """All candidates, likeliest first; equal shares are ordered by support, then by id.

    priors: the team's own past, which may shift a cause within bounds; None leaves the catalogue's priors alone.
    """
    weighed = {name: weigh(cause, facts, catalogue) for name, cause in catalogue.causes.items()}
    weighed = shifted(weighed, catalogue.causes, priors)
    chains = find_chains(weighed, facts, catalogue)
    scores = _with_chains({name: item.log_odds for name, item in weighed.items()}, weighed, chains)
    for effect, late in late_links(weighed, facts, catalogue):
        # What began after an effect that it is known for may follow from it; it does not come before it.
        scores[late] = min(scores[late], scores[effect] - _BENEATH)
    seen = facts.incident.is_seen or facts.is_declared or lost_work(facts, catalogue) is not None
    scores[NOT_ESTABLISHED] = _UNDECIDED if seen else _NOTHING_SEEN
    shares = _softmax(scores)
    limits = _limits(weighed, undecided(weighed, facts, catalogue))
    held = {name: most for name, most in limits.items() if shares[name] > most}
    shares = _capped(shares, held)
    ranked = [
        Ranked(
            cause=name,
            probability=share,
            weighed=weighed.get(name),
            chain=chains.get(name, Chain(links=(name,))),
            most=held.get(name),
        )
        for name, share in shares.items()
    ]
    return tuple(
        sorted(
            ranked,
            key=lambda item: (
                -round(item.probability, 9),
                -(item.weighed.support if item.weighed else 0.0),
                item.cause,
            ),
        )
    )


def _with_chains(
    scores: Mapping[str, float], weighed: Mapping[str, Weighed], chains: Mapping[str, Chain]
) -> dict[str, float]:
    """The root of a chain speaks for all its links, so it takes their weight and they stay beneath it."""
    raised = dict(scores)
    for name, chain in chains.items():
        root = chain.links[-1]
        if name == root and len(chain.links) > 1 and is_established(weighed[root]):
            raised[root] = max(scores[link] for link in chain.links)
    for name, chain in chains.items():
        root = chain.links[-1]
        if name != root and is_established(weighed[name]):
            raised[name] = min(raised[name], raised[root] - _BENEATH)
    return raised


def _softmax(scores: Mapping[str, float]) -> dict[str, float]:
    most = max(scores.values())
    parts = {name: math.exp(score - most) for name, score in sorted(scores.items())}
    total = math.fsum(parts.values())
    return {name: part / total for name, part in parts.items()}


def _limits(weighed: Mapping[str, Weighed], open_below: frozenset[str]) -> dict[str, float]:
    """The most that each cause may have where something is missing that would carry more."""
    limits: dict[str, float] = {}
    for name, item in weighed.items():
        if item.is_refuted:
            limits[name] = _REFUTED_SHARE
        elif len(item.families) < item.cause.families:
            limits[name] = _ONE_FAMILY if item.families else _NO_FAMILY
        elif name in open_below:
            limits[name] = _ONE_FAMILY
    return limits


def _capped(shares: Mapping[str, float], held: Mapping[str, float]) -> dict[str, float]:
    """Holds back what is not carried; the surplus goes to `not_established`."""
    kept = dict(shares)
    for name, most in held.items():
        kept[NOT_ESTABLISHED] += kept[name] - most
        kept[name] = most
    return kept
