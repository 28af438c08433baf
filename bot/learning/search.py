"""Full-text search over titles, symptoms, causes and notes, ranked, in English and Chinese."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.learning.past import Past
from bot.learning.words import words_of

_FIELDS: Mapping[str, float] = {
    "title": 3.0,
    "cause": 3.0,
    "symptom": 2.0,
    "service": 2.0,
    "note": 1.0,
}
"""How much an occurrence counts by where it stands. Basis: judgement."""

_K, _B = 1.2, 0.75
"""Usual constants of BM25. Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009."""

_ENOUGH = 0.6
"""Share of the rarity of the asked words that stand anywhere which an incident must have. Basis: judgement."""


_KNOWN = 0.5
"""Share of the asked words that must stand somewhere at all. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One incident that was found; `fields` says where, best place first."""

    past: Past
    score: float
    fields: tuple[str, ...]


def search(text: str, pasts: Sequence[Past]) -> tuple[Hit, ...]:
    """The incidents that hold the asked words, best first; equal ones newest first."""
    asked = list(dict.fromkeys(words_of(text)))
    if not asked or not pasts:
        return ()
    holds = Counter(word for past in pasts for word in asked if past.words.get(word))
    rarity = {
        word: math.log(1 + (len(pasts) - holds[word] + 0.5) / (holds[word] + 0.5)) for word in asked
    }
    mean = math.fsum(_length(past) for past in pasts) / len(pasts) or 1.0
    # A word that stands nowhere says nothing of where to look; where most are such, there is nothing to be found.
    known = [word for word in asked if holds[word]]
    if len(known) < _KNOWN * len(asked):
        return ()
    whole = math.fsum(rarity[word] for word in known)
    hits = []
    for past in pasts:
        have = [word for word in asked if past.words.get(word)]
        if math.fsum(rarity[word] for word in have) < _ENOUGH * whole:
            continue
        score = math.fsum(
            rarity[word] * _saturated(_weight(past, word), _length(past) / mean) for word in have
        )
        hits.append(Hit(past=past, score=score, fields=_places(past, have)))
    hits.sort(key=lambda hit: (-round(hit.score, 9), -hit.past.opened_at.timestamp(), hit.past.id))
    return tuple(hits)


def _weight(past: Past, word: str) -> float:
    return math.fsum(
        weight * past.texts.get(name, {}).get(word, 0) for name, weight in _FIELDS.items()
    )


def _saturated(weight: float, length: float) -> float:
    return weight * (_K + 1) / (weight + _K * (1 - _B + _B * length))


def _length(past: Past) -> float:
    return float(past.words.total())


def _places(past: Past, words: Sequence[str]) -> tuple[str, ...]:
    counts = {
        name: sum(past.texts.get(name, {}).get(word, 0) for word in words) for name in _FIELDS
    }
    return tuple(name for name in _FIELDS if counts[name])
