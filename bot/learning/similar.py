"""Earlier incidents that look like a new one: a likeness with its reasons, never a claim about the cause."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from bot.domain.precedent import Precedent, Recurrence
from bot.learning.past import Past
from bot.learning.words import likeness

MOST_SHOWN = 3
RECURRENCE_DAYS = 30

_SIGNATURE, _SERVICE, _WORDS = 0.45, 0.2, 0.35
"""Shares of the score: the same alert rule tells most, the same service alone tells little. Basis: judgement."""

_LEAST = 0.3
"""Below this two incidents have no more in common than a service. Basis: judgement."""


def similar_to(
    now: Past, pasts: Sequence[Past], *, most: int = MOST_SHOWN
) -> tuple[Precedent, ...]:
    """The incidents that are most like `now`, opened before it; equal ones newest first.

    The score is 0.45 for a shared alert rule, 0.2 for the same service, and up to 0.35 for shared words.
    """
    earlier = [past for past in pasts if past.opened_at < now.opened_at and past.id != now.id]
    rarity = rarity_of(earlier)
    found = []
    for past in earlier:
        if past.is_drill:
            continue
        alike = likeness(now.shape, past.shape, rarity)
        parts = {
            "signature": _SIGNATURE if now.signature & past.signature else 0.0,
            "service": _SERVICE if set(now.services) & set(past.services) else 0.0,
            "words": _WORDS * alike,
        }
        score = math.fsum(parts.values())
        if score < _LEAST:
            continue
        why = tuple(
            name for name, part in parts.items() if part >= (0.1 if name == "words" else 0.01)
        )
        found.append(
            (score, past.opened_at, Precedent(id=past.id, score=score, why=why, cause=past.cause))
        )
    found.sort(key=lambda item: (-round(item[0], 6), -item[1].timestamp(), item[2].id))
    return tuple(item for _, _, item in found[:most])


def rarity_of(pasts: Sequence[Past]) -> Mapping[str, float]:
    """Inverse document frequency of every word: `ln(1 + N / n)`."""
    seen: Counter[str] = Counter()
    for past in pasts:
        seen.update(past.shape.keys())
    return {word: math.log(1 + len(pasts) / count) for word, count in seen.items()}


def recurrence_by_signature(
    now: Past, pasts: Sequence[Past], *, days: int = RECURRENCE_DAYS
) -> Recurrence:
    """Earlier incidents of the same alert rule on the same service within `days` before `now`."""
    earlier = _earlier(now, pasts, days)
    same = [past.id for past in earlier if now.signature & past.signature]
    return Recurrence(by="signature", days=days, incidents=tuple(same))


def recurrence_by_cause(
    now: Past, pasts: Sequence[Past], *, days: int = RECURRENCE_DAYS
) -> Recurrence:
    """Earlier incidents with the same confirmed cause on the same service within `days` before `now`."""
    earlier = _earlier(now, pasts, days)
    same = [
        past.id
        for past in earlier
        if now.is_established and past.cause == now.cause and set(now.services) & set(past.services)
    ]
    return Recurrence(by="cause", days=days, incidents=tuple(same))


def recurring(pasts: Sequence[Past], *, days: int = RECURRENCE_DAYS) -> frozenset[str]:
    """Every incident that is a recurrence by alert rule or by cause, in one pass over all of them."""
    reach = timedelta(days=days)
    last: dict[tuple[str, str], datetime] = {}
    found: set[str] = set()
    ordered = sorted((past for past in pasts if not past.is_drill), key=lambda past: past.opened_at)
    for _, group in groupby(ordered, key=lambda past: past.opened_at):
        together = list(group)
        for past in together:
            if any(past.opened_at - last[key] <= reach for key in _marks(past) if key in last):
                found.add(past.id)
        # Incidents of the same moment are not each other's recurrence.
        last.update({key: past.opened_at for past in together for key in _marks(past)})
    return frozenset(found)


def _marks(past: Past) -> list[tuple[str, str]]:
    marks = [("signature", name) for name in past.signature]
    if past.is_established:
        marks += [(f"cause:{past.cause}", service) for service in past.services]
    return marks


def _earlier(now: Past, pasts: Sequence[Past], days: int) -> list[Past]:
    since: datetime = now.opened_at - timedelta(days=days)
    return sorted(
        (
            past
            for past in pasts
            if since <= past.opened_at < now.opened_at and past.id != now.id and not past.is_drill
        ),
        key=lambda past: (past.opened_at, past.id),
        reverse=True,
    )
