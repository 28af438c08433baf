"""Remembers: earlier incidents that look like a new one, and how often the same thing happened before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.domain.incident import Incident
from bot.domain.precedent import Precedent, Recurrence
from bot.domain.text import Localized, listed
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.learning.members import readable_in
from bot.learning.past import Past, past_of
from bot.learning.similar import recurrence_by_cause, recurrence_by_signature, similar_to
from bot.locales import say
from bot.message import Message
from bot.store.queue import Claim, Job

_SOURCE = "memory"


class Recalling:
    """Handler of the recall job."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def recall(self, claim: Claim) -> Done | Later:
        """Records and shows what is alike, and what is a recurrence; nothing where the past has nothing to say."""
        incident_id = str(claim.job.payload["incident"])
        ledger = await self._services.journal.load(incident_id)
        incident = ledger.incident
        if incident.drill is not None:
            # An exercise is to be worked out, not looked up, and it is no recurrence of anything.
            return Done()
        pasts = await readable_in(
            incident.channel, await self._services.archive.pasts(), self._services.members
        )
        now = past_of(ledger)
        by_id = {past.id: past for past in pasts}
        found: tuple[Precedent, ...] = ()
        if claim.job.payload["reason"] == "opened":
            found = similar_to(now, pasts)
        counted = [
            item
            for item in (recurrence_by_signature(now, pasts), recurrence_by_cause(now, pasts))
            if item.count and item not in incident.recurrences
        ]
        if not found and not counted:
            return Done()
        drafts = [*([self._similar(found)] if found else []), *map(self._recurs, counted)]
        message = Message(
            view="similar",
            context={
                "incidents": [_shown(item, by_id[item.id]) for item in found],
                "recurrences": [
                    {
                        "by": item.by,
                        "count": item.count,
                        "days": item.days,
                        "incidents": list(item.incidents[:5]),
                    }
                    for item in counted
                ],
            },
        )
        via = Via(by=SYSTEM_AUTHOR, at=self._services.clock(), key=claim.job.id, source=_SOURCE)

        def jobs(after: Incident) -> Sequence[Job]:
            return (outbox.thread_post(after, message),)

        await self._services.responding.write(
            incident_id, via, lambda _: drafts, step="recall", jobs=jobs
        )
        return Done()

    def _similar(self, found: Sequence[Precedent]) -> Draft:
        names = listed(item.id for item in found)
        data = {"op": "similar", "similar": [item.to_json() for item in found]}
        return self._draft(say("learning.similar_recorded", incidents=names), data)

    def _recurs(self, item: Recurrence) -> Draft:
        text = say(
            f"learning.recurrence_{item.by}",
            count=item.count,
            days=item.days,
            incidents=listed(item.incidents[:5]),
        )
        data = {
            "op": "recurrences",
            "by": item.by,
            "days": item.days,
            "incidents": list(item.incidents),
        }
        return self._draft(text, data)

    def _draft(self, text: Localized, data: Mapping[str, object]) -> Draft:
        return Draft(
            kind=EntryKind.SYSTEM,
            at=self._services.clock(),
            text=text,
            source=_SOURCE,
            data=dict(data),
        )


def _shown(item: Precedent, past: Past) -> dict[str, object]:
    cause = past.cause_title or (Localized.verbatim(past.cause) if past.cause else None)
    return {
        "id": past.id,
        "title": past.title,
        "channel": past.channel,
        "thread_ts": past.thread_ts,
        "opened_at": past.opened_at.isoformat(),
        "service": past.service,
        "cause": cause.to_json() if past.is_established and cause else None,
        "why": [say(f"learning.why_{name}").to_json() for name in item.why],
    }


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {requests.RECALL: Recalling(services).recall}
