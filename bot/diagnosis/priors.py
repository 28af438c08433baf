"""What the team's own confirmed causes add to the priors of the catalogue: bounded, shown, and open to any evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.cause import Cause
from bot.diagnosis.weigh import Weighed
from bot.domain.evidence import Evidence, EvidenceSource, digest_of
from bot.domain.hypothesis import Contribution
from bot.domain.instant import Window
from bot.locales import say

MOST_SHIFT = 0.7
"""Log-odds that the past may add or take: less than one ordinary piece of evidence. Basis: design rule."""

PSEUDO_INCIDENTS = 100.0
"""Incidents that the catalogue's priors are worth beside the team's own. Basis: judgement."""

_LEAST_SHOWN = 0.05
"""A shift below this many log-odds changes no digit that people see; it is not shown. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """How often each cause was confirmed here: `confirmed` of `total` incidents within `window`."""

    confirmed: Mapping[str, int]
    total: int
    window: Window

    def shift(self, cause: Cause, causes: Mapping[str, Cause]) -> float:
        """Log-odds that the past adds to a cause, within `MOST_SHIFT` either way.

        The catalogue's share p of the cause is worth 100 incidents beside the N of the team's own, n of which ended
        in it: `ln((n + 100 p) / ((N + 100) p))`, cut off at 0.7.
        """
        if not self.total:
            return 0.0
        share = cause.prior / math.fsum(other.prior for other in causes.values())
        seen = self.confirmed.get(cause.id, 0)
        ratio = (seen + PSEUDO_INCIDENTS * share) / ((self.total + PSEUDO_INCIDENTS) * share)
        return max(-MOST_SHIFT, min(MOST_SHIFT, math.log(ratio)))


def shifted(
    weighed: Mapping[str, Weighed], causes: Mapping[str, Cause], priors: Priors | None
) -> dict[str, Weighed]:
    """The causes with what the past adds; a refuted one stays where its refuter holds it."""
    if priors is None:
        return dict(weighed)
    return {
        name: item
        if item.is_refuted
        else replace(item, log_odds=item.log_odds + priors.shift(item.cause, causes))
        for name, item in weighed.items()
    }


def contribution_of(
    weighed: Weighed, causes: Mapping[str, Cause], priors: Priors | None
) -> tuple[Contribution, Evidence] | None:
    """What the past added, to be shown beside the evidence; None where it moved nothing."""
    if priors is None or weighed.is_refuted:
        return None
    shift = priors.shift(weighed.cause, causes)
    if abs(shift) < _LEAST_SHOWN:
        return None
    seen = priors.confirmed.get(weighed.cause.id, 0)
    days = _days(priors.window)
    evidence = _cited(priors, days)
    contribution = Contribution(
        source=EvidenceSource.PERSON,
        summary=say("learning.prior", seen=seen, total=priors.total, days=days),
        ref=evidence.id,
        weight=shift,
    )
    return contribution, evidence


def _cited(priors: Priors, days: int) -> Evidence:
    """One piece of evidence for all causes: what was confirmed, and how often."""
    ordered = sorted(priors.confirmed.items(), key=lambda item: (-item[1], item[0]))
    return Evidence(
        source=EvidenceSource.PERSON,
        plugin="history",
        summary=say(
            "learning.history",
            total=priors.total,
            days=days,
            causes=", ".join(f"{name} × {count}" for name, count in ordered[:5]),
        ),
        query="confirmed causes of this team",
        window=priors.window,
        samples=priors.total,
        digest=digest_of(ordered),
        is_abnormal=False,
    )


def _days(window: Window) -> int:
    return round(window.seconds / 86_400)
