"""An alert storm: over ten new groups a minute in one channel, and one anchor lists the rest.

Each of the rest is an incident of its own, durable and in the list; it gets its message when somebody takes it up.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.domain.instant import to_rfc3339
from bot.domain.responder import Severity
from bot.domain.timeline import Draft, EntryKind
from bot.incidents.alert_words import system_draft
from bot.incidents.beginning import Opening
from bot.locales import say
from bot.store import alert_memory, index
from bot.store.transaction import Batch

MOST_NEW_GROUPS = 10
"""New groups a minute in one channel that each get a message. The figure is the product's own promise."""

SOURCE = "storm"
# A storm that nobody joined for half an hour is over; the next one gets an anchor of its own. Basis: judgement.
QUIET_SECONDS = 1800


def key_of(channel: str) -> str:
    """Under which key a channel's storm is found."""
    return f"storm:{channel}"


def opening_of(first: Opening, now: datetime, before: str | None) -> Opening:
    """The storm itself, in the channel of the first group that it lists.

    before: a storm that is resolved and still holds the key.
    """
    title = say("intake.storm_title", most=MOST_NEW_GROUPS)
    key = key_of(first.channel)
    symptom = Draft(
        kind=EntryKind.SYMPTOM,
        at=now,
        text=title,
        source=SOURCE,
        data={"id": "S-1", "since": to_rfc3339(now), "scope": None, "metric": None},
    )
    return Opening(
        title=title.in_locale(first.locale),
        channel=first.channel,
        severity=Severity.SEV2,
        locale=first.locale,
        source=SOURCE,
        drafts=(symptom,),
        correlation=(key,),
        replaces={key: before} if before else {},
        at=now,
        beside=lambda _: _stays(key),
    )


def listed(opening: Opening, storm_id: str, now: datetime) -> Opening:
    """The opening as one that the storm lists."""
    text = say("intake.storm_member", incident=storm_id)
    entry = system_draft("storm_member", text, now, storm=storm_id)

    def beside(incident_id: str) -> Batch:
        step = opening.beside(incident_id)
        step.extend(alert_memory.join_storm(storm_id, incident_id, opening.title[:200]))
        return step.extend(_stays(key_of(opening.channel)))

    return replace(
        opening, drafts=(*opening.drafts, entry), storm_of=storm_id, notes=(), beside=beside
    )


def _stays(key: str) -> Batch:
    # The key itself is written by the opening of the storm; who joins only makes it last.
    return Batch().write("EXPIRE", index.correlation_key(key), QUIET_SECONDS)
