"""What the incidents of a span add up to; every figure with its n, and none where n is too small to mean anything."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

from bot.domain.postmortem import DurationName
from bot.domain.text import Localized
from bot.learning.past import Past
from bot.learning.similar import recurring

LEAST_FOR_MEDIAN = 3
LEAST_FOR_P90 = 10
"""Below these a figure would be one incident's, not a tendency. Basis: a tenth needs ten."""

SHOWN_TIMINGS = (
    DurationName.ACKNOWLEDGE,
    DurationName.SYMPTOM,
    DurationName.FIRST_EVIDENCE,
    DurationName.HYPOTHESES,
    DurationName.MITIGATE,
    DurationName.CONFIRMED_CAUSE,
    DurationName.VERIFIED_FIX,
    DurationName.RESOLVE,
)
_MOST_LISTED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a milestone took, in seconds from the opening; None where n is too small."""

    name: DurationName
    n: int
    median_s: float | None
    p90_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`part` of `n`."""

    part: int
    n: int

    @property
    def ratio(self) -> float | None:
        """0..1; None without any."""
        return self.part / self.n if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindSpotCount:
    """Something that could not be seen, in how many incidents of which service."""

    service: str
    what: Localized
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """An open action item whose date has passed."""

    incident: str
    due: date
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The figures of one span.

    causes: confirmed cause, its title, how often. weeks: Monday and how many opened then, without gaps.
    """

    since: datetime
    until: datetime
    count: int
    open: int
    drills: int
    severities: tuple[tuple[str, int], ...]
    timings: tuple[Timing, ...]
    causes: tuple[tuple[str, Localized, int], ...]
    wasted: Share
    first_guess: Share
    recurrence: Share
    blind_spots: tuple[BlindSpotCount, ...]
    overdue: tuple[Overdue, ...]
    weeks: tuple[tuple[date, int], ...]


def statistics_of(pasts: Sequence[Past], since: datetime, until: datetime) -> Statistics:
    """The figures of the incidents that were opened in the span; exercises are only counted as such.

    pasts: all that are remembered; those before the span tell what recurs.
    """
    inside = [past for past in pasts if since <= past.opened_at <= until]
    real = [past for past in inside if not past.is_drill]
    return Statistics(
        since=since,
        until=until,
        count=len(real),
        open=sum(past.status != "resolved" for past in real),
        drills=len(inside) - len(real),
        severities=tuple(sorted(Counter(past.severity for past in real).items())),
        timings=tuple(_timing(name, real) for name in SHOWN_TIMINGS),
        causes=_causes(real),
        wasted=Share(
            part=sum(past.probes.wasted for past in real),
            n=sum(past.probes.asked for past in real),
        ),
        first_guess=_first_guess(real),
        recurrence=Share(part=len(recurring(pasts) & {past.id for past in real}), n=len(real)),
        blind_spots=_blind_spots(real),
        overdue=_overdue(real, until.date()),
        weeks=_weeks(real, since.date(), until.date()),
    )


def _timing(name: DurationName, pasts: Sequence[Past]) -> Timing:
    spans = sorted(value for past in pasts if (value := past.durations.get(name)) is not None)
    n = len(spans)
    return Timing(
        name=name,
        n=n,
        median_s=median(spans) if n >= LEAST_FOR_MEDIAN else None,
        # Nearest rank: a value that really occurred.
        p90_s=spans[math.ceil(0.9 * n) - 1] if n >= LEAST_FOR_P90 else None,
    )


def _causes(pasts: Sequence[Past]) -> tuple[tuple[str, Localized, int], ...]:
    counts = Counter(past.cause for past in pasts if past.cause is not None)
    titles = {past.cause: past.cause_title for past in pasts if past.cause_title is not None}
    found = [
        (cause, titles.get(cause) or Localized.verbatim(cause), count)
        for cause, count in counts.items()
        if cause is not None
    ]
    return tuple(sorted(found, key=lambda item: (-item[2], item[0])))


def _first_guess(pasts: Sequence[Past]) -> Share:
    known = [past for past in pasts if past.is_established and past.first_guess is not None]
    return Share(part=sum(past.first_guess == past.cause for past in known), n=len(known))


def _blind_spots(pasts: Sequence[Past]) -> tuple[BlindSpotCount, ...]:
    counts = Counter(
        (past.service or "–", spot) for past in pasts for spot in dict.fromkeys(past.blind_spots)
    )
    found = [
        BlindSpotCount(service=service, what=what, count=count)
        for (service, what), count in counts.items()
    ]
    found.sort(key=lambda item: (-item.count, item.service, item.what.en))
    return tuple(found[:_MOST_LISTED])


def _overdue(pasts: Sequence[Past], today: date) -> tuple[Overdue, ...]:
    found = [
        Overdue(incident=past.id, due=due, days=(today - due).days)
        for past in pasts
        for due, _ in past.actions
        if due is not None and due < today
    ]
    return tuple(sorted(found, key=lambda item: (item.due, len(item.incident), item.incident)))


def _weeks(pasts: Sequence[Past], first: date, last: date) -> tuple[tuple[date, int], ...]:
    monday = first - timedelta(days=first.weekday())
    counts = Counter(
        past.opened_at.date() - timedelta(days=past.opened_at.date().weekday()) for past in pasts
    )
    weeks = []
    while monday <= last:
        weeks.append((monday, counts[monday]))
        monday += timedelta(days=7)
    return tuple(weeks)
