"""Lists in a storm's thread and on its anchor which alert groups joined it, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.incidents.alert_words import system_draft
from bot.incidents.responding import Via
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.store import alert_memory, queue
from bot.store.queue import Claim, Job

LIST = "incident.storm"
PAUSE_SECONDS = 5.0
"""How long newcomers are gathered before the list grows: a storm must not become one of updates."""

MOST_LISTED = 100
_NEWEST = 4


def list_job(storm_id: str, now: datetime, *, pause_seconds: float = PAUSE_SECONDS) -> Job:
    """Bring a storm's list up to date, a little later; many in a row become one."""
    job = Job(
        kind=LIST,
        lane="",
        payload={"incident": storm_id},
        due_at=now + timedelta(seconds=pause_seconds),
        coalesce=f"storm:{storm_id}",
    )
    # A lane of its own keeps its time: in a lane that has just worked it would run at once, and list a few each time.
    return replace(job, lane=f"timer:{job.id}")


class Storms:
    """Handler of the list job."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def listing(self, claim: Claim) -> Done | Later:
        """Takes the newcomers into the storm's timeline, its symptom and its thread."""
        services = self._services
        storm_id = str(claim.job.payload["incident"])
        known = (await services.journal.load(storm_id)).incident
        members = await alert_memory.storm_members(
            services.store, storm_id, len(known.storm), MOST_LISTED
        )
        if not members:
            return Done()
        now = services.clock()
        total = len(known.storm) + len(members)
        via = Via(by=SYSTEM_AUTHOR, at=now, key=claim.job.id, source="engine")
        drafts = (
            system_draft(
                "storm", say("intake.storm_listed", count=len(members)), now, members=members
            ),
            _symptom(known, members, total, now),
        )
        message = Message(
            view="followup_storm",
            context={
                "members": members,
                "total": total,
                "url": f"{services.settings.base_url}/incidents",
            },
        )

        def jobs(after: Incident) -> Sequence[Job]:
            if len(after.storm) != total:
                return ()
            return (replace(outbox.thread_post(after, message), rank=outbox.ANCHOR),)

        def make(newest: Incident) -> Sequence[Draft]:
            # Another replica may have listed these meanwhile.
            return drafts if len(newest.storm) == len(known.storm) else ()

        await services.responding.write(storm_id, via, make, step=f"storm:{total}", jobs=jobs)
        if len(members) < MOST_LISTED:
            return Done()
        # More are waiting than one message lists: they have been gathered long enough.
        return Done(step=queue.enqueue(list_job(storm_id, now, pause_seconds=0.0), now))


def _symptom(
    storm: Incident, members: Sequence[Mapping[str, Any]], total: int, now: datetime
) -> Draft:
    newest = ", ".join(
        f"{item['id']} {item['title'][:40]}" for item in members[: -_NEWEST - 1 : -1]
    )
    since = next((item.since for item in storm.symptoms if item.since), storm.opened_at)
    text = say("intake.storm_symptom", count=total, newest=Localized.verbatim(newest))
    return Draft(
        kind=EntryKind.SYMPTOM,
        at=now,
        text=text,
        source="engine",
        data={"id": "S-1", "since": since.isoformat(), "scope": None, "metric": None},
    )


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {LIST: Storms(services).listing}
