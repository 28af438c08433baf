"""Ranks recorded changes by what they can have done, with "no change did it" among the candidates.

What a change is able to do counts most, whose words the errors repeat comes next, when it went out counts least: the
newest deploy is not preferred for being new.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.diagnosis.changes.diff import parts_of, read_diff
from bot.diagnosis.changes.effects import effects_of, is_inert
from bot.diagnosis.changes.trouble import troubles_of
from bot.diagnosis.components.evidence import Reason
from bot.diagnosis.onset import earliest_onset
from bot.domain.evidence import Series

NO_CHANGE = "none"

_NO_CHANGE = 2.2
"""What a change must reach before it is believed rather than nothing. Basis: judgement; one strong, fitting effect does."""

_EFFECT, _WORDS, _OUTSIDE = 3.0, 1.5, 2.0
"""In full: an ability that fits the trouble, words that it shares with it, a provider that reports trouble
itself. Basis: judgement.
"""

_OWN, _ROLLED_OUT = 0.4, 0.3
"""A change of the failing component itself, one that was rolled out. Basis: judgement: they break ties and
decide nothing.
"""

_INERT = -2.0
"""A change of tests, documents or looks cannot break what runs. Basis: judgement; as strong as one witness."""

_LEAD = timedelta(minutes=15)
"""How long before the onset a change may count as made at the onset. Basis: judgement: the time of a rollout."""

_COMMON = frozenset({
    "the", "and", "for", "with", "from", "not", "was", "are", "has", "error", "errors", "fail",
    "failed", "failing", "failure", "service", "request", "requests", "response", "call", "calls",
    "http", "get", "post", "api", "func", "return", "err", "nil", "var", "const", "true", "false",
    "string", "int", "ratio", "total", "rate", "count", "seconds", "above", "below", "under",
    "over", "this", "that", "into", "per", "new", "name",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One recorded change.

    at: when it went out; for a commit without rollout of its own, when it was made.
    service: whose rollout carried it, None when nobody knows.
    """

    id: str
    at: datetime
    service: str | None
    rolled_out: bool
    summary: str
    files: tuple[str, ...] = ()
    diff: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """What is seen to go wrong.

    texts: errors and alerts in their own words.
    services: those that fail, `alerting` among them.
    alerted_at: when somebody noticed; nothing later can have set it off.
    series: what was measured, with the label `service`; they may show that it began earlier.
    outside: reports that something outside is degraded, with their start.
    """

    texts: tuple[str, ...]
    services: frozenset[str]
    alerting: str
    alerted_at: datetime
    series: tuple[Series, ...] = ()
    outside: tuple[tuple[datetime, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guilty:
    """One candidate with its score in log-odds and its reasons, heaviest first."""

    id: str
    score: float
    reasons: tuple[Reason, ...] = field(default=())


def rank_changes(changes: Sequence[Candidate], failing: Failing) -> tuple[Guilty, ...]:
    """All candidates and `none`, guiltiest first.

    Ties: the older change first, since the newer one has the better excuse; then by id.
    """
    onset = earliest_onset(failing.series, failing.alerting, failing.alerted_at)
    onset = onset or failing.alerted_at
    rarity = _rarity(changes)
    spoken = parts_of(failing.texts) - _COMMON - parts_of(failing.services)
    scored = [
        (change.at, Guilty(id=change.id, score=sum(r.weight for r in reasons), reasons=reasons))
        for change in changes
        if change.at <= onset
        for reasons in (_reasons(change, failing, spoken, rarity),)
    ]
    later = [
        (change.at, Guilty(id=change.id, score=-10.0, reasons=(
            Reason(kind="too_late", detail="made after the onset", weight=-10.0),)))
        for change in changes
        if change.at > onset
    ]  # fmt: skip
    nothing = _no_change(failing, onset)
    ranked = [*scored, *later, (onset, nothing)]
    return tuple(
        item
        for _, item in sorted(
            ranked, key=lambda pair: (-round(pair[1].score, 9), pair[0], pair[1].id)
        )
    )


def _no_change(failing: Failing, onset: datetime) -> Guilty:
    reasons = [Reason(kind="none", detail="no change has to be guilty", weight=_NO_CHANGE)]
    for at, text in failing.outside:
        if abs(at - onset) <= _LEAD:
            reasons.append(
                Reason(kind="outside", detail=f"reported outside: {text[:80]}", weight=_OUTSIDE)
            )
            break
    return Guilty(id=NO_CHANGE, score=sum(r.weight for r in reasons), reasons=tuple(reasons))


def _reasons(
    change: Candidate, failing: Failing, spoken: frozenset[str], rarity: dict[str, float]
) -> tuple[Reason, ...]:
    found: list[Reason] = []
    if is_inert(change.files):
        found.append(Reason(kind="inert", detail="touches nothing that runs", weight=_INERT))
    difference = read_diff(change.diff or "")
    seen = troubles_of(failing.texts)
    fitting = [
        effect for effect in effects_of(difference, change.files, spoken) if effect.troubles & seen
    ]
    if fitting:
        best = max(fitting, key=lambda effect: (effect.strength, effect.detail))
        found.append(Reason(kind=best.kind, detail=best.detail, weight=_EFFECT * best.strength))
    if not is_inert(change.files):
        changed = parts_of([*difference.gone, *difference.came])
        repeated = sorted(changed & spoken, key=lambda word: (-rarity.get(word, 0.0), word))
        weight = sum(rarity.get(word, 0.0) for word in repeated[:3]) / 3
        if weight > 0:
            found.append(
                Reason(
                    kind="words", detail=f"errors repeat {', '.join(repeated[:3])}",
                    weight=_WORDS * weight,
                )
            )  # fmt: skip
    if change.service in failing.services:
        found.append(Reason(kind="own", detail="of a service that fails", weight=_OWN))
    if change.rolled_out:
        found.append(
            Reason(kind="rolled_out", detail="went out before the onset", weight=_ROLLED_OUT)
        )
    return tuple(sorted(found, key=lambda r: (-r.weight, r.kind, r.detail)))


def _rarity(changes: Iterable[Candidate]) -> dict[str, float]:
    """1 for a word that one change alone touches, towards 0 for one that most touch."""
    counts: Counter[str] = Counter()
    total = 0
    for change in changes:
        difference = read_diff(change.diff or "")
        words = parts_of([*difference.gone, *difference.came]) - _COMMON
        if words:
            total += 1
            counts.update(words)
    if total < 2:
        return dict.fromkeys(counts, 1.0)
    return {word: 1 - math.log(count) / math.log(total) for word, count in counts.items()}
