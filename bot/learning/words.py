"""Splits text into words that can be compared, English and Chinese alike, without a dictionary."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

_LATIN = re.compile(r"[a-z0-9]+")
_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_LONGEST = 20_000
"""Characters of one text that are read; an incident's titles and notes are far below. Basis: judgement."""

# Words that say nothing about what went wrong.
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "has",
        "have",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "were",
        "will",
        "with",
        "not",
    ]
)


def words_of(text: str) -> list[str]:
    """Lower-case words of Latin text (plural `s` dropped), and pairs of neighbouring Chinese characters.

    >>> words_of("P99 latency spikes / 延迟升高")
    ['p99', 'latency', 'spike', '延迟', '迟升', '升高']
    """
    plain = unicodedata.normalize("NFKC", text[:_LONGEST]).casefold()
    found = [(match.start(), _stem(match[0])) for match in _LATIN.finditer(plain)]
    kept = [(at, word) for at, word in found if word not in _COMMON]
    for match in _CJK.finditer(plain):
        run = match[0]
        pairs = [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]
        kept += [(match.start() + at, pair) for at, pair in enumerate(pairs)]
    return [word for _, word in sorted(kept, key=lambda item: item[0])]


def _stem(word: str) -> str:
    """Without the plural `s`, so that `spikes` finds `spike`; `gpus` is `gpu`, `class` stays."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return "gpu" if word == "gpus" else word


def counted(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs in all of the texts."""
    found: Counter[str] = Counter()
    for text in texts:
        found.update(words_of(text))
    return found


def likeness(
    one: Mapping[str, int], other: Mapping[str, int], rarity: Mapping[str, float]
) -> float:
    """Weighted Jaccard index of two bags of words, 0..1; a rare word counts for more than a common one.

    rarity: inverse document frequency by word; a word that is not listed counts 1.
    """
    shared = sum(rarity.get(word, 1.0) for word in one.keys() & other.keys())
    every = sum(rarity.get(word, 1.0) for word in one.keys() | other.keys())
    return shared / every if every else 0.0
