"""What follows when Slack does not take a message: later again, or a word to whoever can help."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog

from bot.domain.incident import Incident
from bot.domain.responder import Role
from bot.domain.timeline import Draft, EntryKind
from bot.errors import DeliveryError
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.jobs.worker import Done, Later
from bot.locales import say
from bot.message import Message
from bot.slack.web import SlackRefusalError
from bot.store import surface
from bot.store.queue import Claim

log = structlog.get_logger(__name__)

LONGEST_WAIT_SECONDS = 60.0
# A message that nobody could have seen for a day is no news any more.
GIVE_UP_AFTER = timedelta(hours=24)


class Undelivered:
    """Decides about messages that were not sent. An archived channel is left alone until it is open again."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def failed(
        self, claim: Claim, error: DeliveryError, incident_id: str | None
    ) -> Done | Later:
        """Tries again later, or, where that is pointless, says so in the incident's own record."""
        now = self._services.clock()
        is_permanent = isinstance(error, SlackRefusalError) and (
            error.is_permanent or error.is_about_content
        )
        is_too_late = now - await self._since(claim, now) > GIVE_UP_AFTER
        if is_permanent or is_too_late:
            log.error("slack.undelivered", id=claim.job.id, incident=incident_id, error=str(error))
            if incident_id is not None:
                await self._tell(claim, incident_id, error)
                if _why(error) == "is_archived":
                    await self._close_channel(incident_id)
                if claim.job.kind == outbox.CARD:
                    await self._tell_opener(claim, incident_id, error)
            return Done()
        wait = min(LONGEST_WAIT_SECONDS, 2.0 ** min(claim.attempt - 1, 6))
        if error.retry_after_seconds is not None:
            wait = max(0.1, error.retry_after_seconds)
        log.warning(
            "slack.later", id=claim.job.id, reason=error.reason.value, error=str(error), wait=wait
        )
        return Later(until=now + timedelta(seconds=wait), why=str(error))

    async def is_archived(self, incident: Incident) -> bool:
        """Nothing is sent into an archived channel: the record and the report go on without it."""
        if not await surface.is_archived(self._services.store, incident.channel):
            return False
        log.info("slack.archived", incident=incident.id, channel=incident.channel)
        return True

    async def _close_channel(self, incident_id: str) -> None:
        """Stops talking into the channel, and tells whoever leads, once."""
        ledger = await self._services.journal.load(incident_id)
        incident = ledger.incident
        step = surface.remember_archived(incident.channel)
        await self._services.store.commit(step, doing="record that a channel is archived")
        owner = incident.roles.get(Role.LEAD) or ledger.entries[0].author
        if not owner.startswith(("U", "W")):
            return
        text = say("slack.channel_archived", incident=incident_id)
        message = Message(view="error", context={"text": text.to_json()})
        # The "channel" is the person: a direct message.
        job = outbox.private_post(owner, owner, message, thread_ts=None, response_url=None)
        await self._services.outbox.send(job, once=f"archived:{incident_id}:{incident.channel}")

    async def _tell_opener(self, claim: Claim, incident_id: str, error: DeliveryError) -> None:
        """An incident without a place in the channel: who opened it can invite the bot."""
        ledger = await self._services.journal.load(incident_id)
        opener = ledger.entries[0].author
        if not opener.startswith(("U", "W")):
            return
        text = say("slack.invite_me", incident=incident_id, why=_why(error))
        job = outbox.private_post(
            ledger.incident.channel,
            opener,
            Message(view="error", context={"text": text.to_json()}),
            thread_ts=None,
            response_url=None,
        )
        await self._services.outbox.send(job, once=f"{claim.job.id}:opener")

    async def _since(self, claim: Claim, now: datetime) -> datetime:
        """When this job was tried first."""
        key = f"{claim.job.id}:tried"
        state = await surface.post_state(self._services.store, key)
        if state is not None:
            return state.since
        step = surface.post_progress(key, surface.PostState(since=now))
        await self._services.store.commit(step, doing="record a try")
        return now

    async def _tell(self, claim: Claim, incident_id: str, error: DeliveryError) -> None:
        why = _why(error)
        draft = Draft(
            kind=EntryKind.SYSTEM,
            at=self._services.clock(),
            text=say("slack.undelivered", why=why),
            data={"op": "undelivered", "why": why},
        )
        await self._services.journal.record(
            incident_id, lambda _: [draft], once=f"{claim.job.id}:undelivered"
        )


def _why(error: DeliveryError) -> str:
    return error.code if isinstance(error, SlackRefusalError) else error.reason.value
