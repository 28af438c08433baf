"""Counts the team's own confirmed causes for the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from bot.diagnosis.priors import Priors
from bot.domain.instant import Window
from bot.learning.past import Past

PRIOR_DAYS = 365
"""How far back confirmed causes count: systems change within a year. Basis: judgement."""


def priors_of(pasts: Sequence[Past], now: datetime, *, but: str | None = None) -> Priors | None:
    """What was confirmed within the last year, exercises left out; None when nothing was.

    but: the incident that is being diagnosed; it must not speak for itself.
    """
    window = Window.before(now, PRIOR_DAYS * 86_400.0)
    confirmed = Counter(
        past.cause
        for past in pasts
        if past.is_established
        and past.cause is not None
        and not past.is_drill
        and past.id != but
        and window.start <= past.opened_at <= now
    )
    if not confirmed:
        return None
    return Priors(confirmed=dict(confirmed), total=confirmed.total(), window=window)
