"""Which recorded change may have set a cause off; the newest one is not preferred for being new."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from bot.cause import Cause
from bot.diagnosis.changes.diff import read_diff
from bot.diagnosis.changes.effects import effects_of, is_inert
from bot.diagnosis.changes.trouble import Trouble, troubles_of
from bot.diagnosis.facts import Facts
from bot.diagnosis.wording import change_text
from bot.domain.change import Change
from bot.domain.hypothesis import Trigger
from bot.inventory import Service
from bot.locales import say

_FRESH = timedelta(minutes=30)
_ENOUGH = 2.5
"""Until when a change counts as fresh (worth least of all), and the score from which one is named. Basis:
judgement.
"""

_ABLE, _INERT = 1.5, -2.0
"""What an ability that fits adds, and what a change of tests, documents or looks loses. Basis: judgement."""

_MOST_DIFF, _MOST_LINES = 100_000, 500
"""Characters of a diff and lines of a log that are read; both come from outside."""


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
    has_diffs = any("diff" in change.details for change in facts.changes)
    troubles = troubles_of(_failing_texts(cause, facts)) if has_diffs else frozenset()
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
        score += _by_its_content(change, troubles)
        found.append(Suspicion(change=change, score=score))
    return tuple(
        sorted(found, key=lambda item: (-item.score, -item.change.at.timestamp(), item.change.id))
    )


def _by_its_content(change: Change, troubles: frozenset[Trouble]) -> float:
    """What the diff that came with a change adds: it can bring the trouble about, or touches nothing that runs."""
    files = change.details.get("files")
    names = tuple(str(name) for name in files) if isinstance(files, list | tuple) else ()
    if is_inert(names):
        return _INERT
    text = change.details.get("diff")
    if not isinstance(text, str) or not text:
        return 0.0
    fitting = [
        effect.strength
        for effect in effects_of(read_diff(text[:_MOST_DIFF]), names)
        if effect.troubles & troubles
    ]
    return _ABLE * max(fitting, default=0.0)


def _failing_texts(cause: Cause, facts: Facts) -> list[str]:
    """What fails in words: the cause's own, and the lines that the service wrote since."""
    since = facts.log_lead.timestamp() * 1e9
    lines = [line.text for line in facts.service_lines if line.at_ns >= since]
    return [cause.title.en, cause.id.replace("_", " "), *lines[:_MOST_LINES]]


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
