"""Which recorded change may have set a cause off; the newest one is not preferred for being new."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from bot.cause import Cause
from bot.diagnosis.facts import Facts
from bot.diagnosis.wording import change_text
from bot.domain.change import Change
from bot.domain.hypothesis import Trigger
from bot.inventory import Service
from bot.locales import say

_FRESH = timedelta(minutes=30)
_ENOUGH = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A change and how much it is suspected."""

    change: Change
    score: float


def suspicions(
    cause: Cause, facts: Facts, service: Service, node: str | None
) -> tuple[Suspicion, ...]:
    """The changes that may have set the cause off, most suspected first.

    What a change says counts most, then whose it is; its age counts least.
    """
    guilt = cause.guilt
    if guilt is None:
        return ()
    onset = facts.incident.window.start + timedelta(seconds=facts.resolution_seconds)
    found: list[Suspicion] = []
    for change in facts.changes:
        if change.kind not in guilt.kinds or change.at > onset:
            continue
        text = change_text(change)
        says = guilt.pattern is not None and re.search(guilt.pattern, text, re.IGNORECASE)
        own = change.service == service.name
        near = change.service in service.depends_on or (node is not None and node in text)
        fresh = onset - change.at <= _FRESH
        score = 2.0 * bool(says) + 1.0 * own + 0.7 * near + 0.5 * fresh
        if says and (own or near or fresh or change.service is None):
            score += 0.5
        found.append(Suspicion(change=change, score=score))
    return tuple(
        sorted(found, key=lambda item: (-item.score, -item.change.at.timestamp(), item.change.id))
    )


def trigger_of(cause: Cause, facts: Facts, service: Service, node: str | None) -> Trigger:
    """The most suspected change, or a sentence that says that none is recorded."""
    ranked = suspicions(cause, facts, service, node)
    if ranked and ranked[0].score >= _ENOUGH:
        change = ranked[0].change
        return Trigger(
            change=change.id,
            summary=say(
                "diagnosis.trigger.change", summary=change.summary,
                at=f"{change.at:%Y-%m-%d %H:%M}Z",
            ),
        )  # fmt: skip
    if not facts.changes_read:
        return Trigger(change=None, summary=say("diagnosis.trigger.unread"))
    return Trigger(change=None, summary=say("diagnosis.trigger.none"))
