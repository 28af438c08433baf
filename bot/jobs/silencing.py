"""Looks whether an incident's alerts are silenced in Alertmanager, once a minute while one of them is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from bot.domain.incident import Incident
from bot.domain.silence import Hearing
from bot.domain.timeline import SYSTEM_AUTHOR, Draft
from bot.errors import EvidenceError
from bot.incidents.journal import UnknownIncidentError
from bot.incidents.responding import Via
from bot.incidents.silencing import hearing_draft, hearing_of, is_asked_about
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.message import Message
from bot.settings import Settings
from bot.store import queue
from bot.store.queue import Claim, Job

log = structlog.get_logger(__name__)

SILENCES = "silences.look"
EVERY = timedelta(seconds=60)
ASK_SECONDS = 3.0
PATIENCE = 3
"""Looks in a row that must fail before what was known is given up; a restart of Alertmanager takes less. Basis: judgement."""


def look_at(incident_id: str, at: datetime, *, failed: int = PATIENCE - 1) -> Job:
    """The next look, one at a time for an incident; `failed`: how many before it came to nothing."""
    job = Job(
        kind=SILENCES,
        lane="",
        payload={"incident": incident_id, "failed": failed},
        due_at=at,
        coalesce=f"silences:{incident_id}",
    )
    return replace(job, lane=f"timer:{job.id}")


def looks_of(incident: Incident, settings: Settings, now: datetime) -> tuple[Job, ...]:
    """The look that an incident wants after news."""
    if settings.alertmanager_url is None or not is_asked_about(incident):
        return ()
    return (look_at(incident.id, now + EVERY, failed=0),)


class Silencing:
    """Asks, and records what has changed."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def learn(self, incident: Incident, *, key: str, is_patient: bool = False) -> Incident:
        """The incident with what Alertmanager says now; unchanged where it is not asked.

        is_patient: what was known stands when Alertmanager does not answer.

        Raises:
            EvidenceError: it did not answer, and the caller is patient.
        """
        source = self._services.ports.silences
        if source is None or not is_asked_about(incident):
            return incident
        try:
            hearing = hearing_of(incident, await source.alerts(timeout_seconds=ASK_SECONDS))
        except EvidenceError as error:
            log.warning("silences.unknown", incident=incident.id, error=str(error))
            if is_patient:
                raise
            hearing = Hearing(is_known=False)
        if hearing == (incident.hearing or Hearing()):
            return incident
        return await self._record(incident, hearing, key)

    async def _record(self, incident: Incident, hearing: Hearing, key: str) -> Incident:
        now = self._services.clock()
        draft = hearing_draft(incident, hearing, now, self._services.settings.zone)

        is_news = False

        def make(newest: Incident) -> Sequence[Draft]:
            nonlocal is_news
            is_news = hearing != (newest.hearing or Hearing())
            return [draft] if is_news else []

        def said(after: Incident) -> Sequence[Job]:
            before = incident.hearing or Hearing()
            if not is_news or not hearing.is_known or hearing.silenced == before.silenced:
                # That a look failed is the anchor's to say, not the thread's.
                return ()
            message = Message(view="followup_note", context={"notes": [draft.text.to_json()]})
            return (outbox.thread_post(after, message),)

        via = Via(by=SYSTEM_AUTHOR, at=now, key=key, source="alertmanager")
        recorded = await self._services.responding.write(
            incident.id, via, make, step="hearing", jobs=said
        )
        self._services.wake()
        return recorded.incident

    async def look(self, claim: Claim) -> Done | Later:
        """One look, and the next one while an alert is on."""
        services = self._services
        try:
            incident = (await services.journal.load(str(claim.job.payload["incident"]))).incident
        except UnknownIncidentError:
            return Done()
        if services.settings.alertmanager_url is None or not is_asked_about(incident):
            return Done()
        failed = int(claim.job.payload["failed"])
        try:
            is_patient = failed + 1 < PATIENCE
            incident = await self.learn(incident, key=claim.job.id, is_patient=is_patient)
            failed = 0 if incident.hearing is None or incident.hearing.is_known else PATIENCE - 1
        except EvidenceError:
            failed += 1
        now = services.clock()
        return Done(step=queue.enqueue(look_at(incident.id, now + EVERY, failed=failed), now))


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {SILENCES: Silencing(services).look}
