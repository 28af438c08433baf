"""Automatic follow-ups: durable timers that look at the incident when they run, and say only what still holds.

A timer is set in the transaction of what makes it wanted. When it runs it asks the incident what is due now, so that
nothing has to be taken back: an answer, a snooze or a stop simply makes it end. Sending one sets the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.domain.incident import Incident
from bot.domain.instant import to_rfc3339
from bot.domain.responder import Role
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.errors import CommandError, EvidenceError, Reason
from bot.incidents.due import (
    SOURCE_GIVE_UP,
    Due,
    FollowupKind,
    due_of,
    followups_due,
    quiet_until,
)
from bot.incidents.heartbeats import HEARTBEAT_JOB, missing, watch
from bot.incidents.journal import UnknownIncidentError
from bot.incidents.responding import Via
from bot.incidents.silencing import silent_until
from bot.jobs import outbox
from bot.jobs.followup_words import Told, Wording
from bot.jobs.services import Services
from bot.jobs.silencing import Silencing
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Button, Message
from bot.settings import Settings
from bot.store import alert_memory, queue
from bot.store.queue import Claim, Job

log = structlog.get_logger(__name__)

FOLLOWUP = "followup.incident"
SNOOZE_SECONDS = 3600.0
# A silence that is taken off early lets reminders through again within this time.
LOOK_AGAIN = timedelta(minutes=5)


def timer(incident_id: str, due: Due, at: datetime | None = None) -> Job:
    """The timer of one follow-up; one that waits already is not set again."""
    job = Job(
        kind=FOLLOWUP,
        lane="",
        payload={"incident": incident_id, "followup": due.kind.value},
        due_at=at or due.at,
        coalesce=f"followup:{incident_id}:{due.name}",
    )
    return replace(job, lane=f"timer:{job.id}")


def timers_of(incident: Incident, settings: Settings) -> tuple[Job, ...]:
    """The timers of everything that an incident still wants."""
    return tuple(timer(incident.id, due) for due in followups_due(incident, settings))


def first_timers(incident_id: str, settings: Settings, opened_at: datetime) -> tuple[Job, ...]:
    """The timers of an incident that is just being opened."""
    return tuple(
        timer(incident_id, Due(kind=kind, anchor="opened", at=at, count=1, every_seconds=every))
        for kind, every in (
            (FollowupKind.UNACKNOWLEDGED, settings.followup.unacknowledged_s),
            (FollowupKind.STEP_IDLE, settings.followup.step_idle_s),
        )
        if every and (at := opened_at + timedelta(seconds=every))
    )


async def snooze(
    services: Services,
    incident_id: str,
    followup: str,
    via: Via,
    *,
    seconds: float = SNOOZE_SECONDS,
) -> Localized:
    """Keeps one kind of follow-up quiet in an incident for a while; gives the words for whoever asked.

    Raises:
        CommandError: there is no follow-up of this name.
        UnknownIncidentError: no such incident.
        StoreError: Redis is not reachable; try again with the same key.
    """
    kind = _kind(followup)
    until = via.at + timedelta(seconds=seconds)
    shown = f"{until.astimezone(services.settings.zone):%Y-%m-%d %H:%M %Z}"
    text = say("followup.snoozed", until=shown, kind=say(f"followup.kind_{kind.value}"))
    await _decide(services, incident_id, via, text, "snoozed", kind, until=to_rfc3339(until))
    return text


async def stop(services: Services, incident_id: str, followup: str, via: Via) -> Localized:
    """Ends one kind of follow-up in an incident for good; gives the words for whoever asked.

    Raises:
        CommandError: there is no follow-up of this name.
        UnknownIncidentError: no such incident.
        StoreError: Redis is not reachable; try again with the same key.
    """
    kind = _kind(followup)
    text = say("followup.stopped", kind=say(f"followup.kind_{kind.value}"))
    await _decide(services, incident_id, via, text, "stopped", kind)
    return text


def _kind(name: str) -> FollowupKind:
    if name not in set(FollowupKind):
        raise CommandError(say("followup.unknown", name=name[:60]), reason=Reason.NOT_FOUND)
    return FollowupKind(name)


async def _decide(
    services: Services,
    incident_id: str,
    via: Via,
    text: Localized,
    op: str,
    kind: FollowupKind,
    **data: str,
) -> None:
    draft = Draft(
        kind=EntryKind.FOLLOWUP,
        at=via.at,
        text=text,
        author=via.by,
        source=via.source,
        permalink=via.permalink,
        data={"op": op, "followup": kind.value, **data},
    )
    await services.responding.write(incident_id, via, lambda _: [draft], step=f"{op}:{kind.value}")
    services.wake()


@dataclass(frozen=True, slots=True)
class _Wait:
    """Not now: ask again at `until`."""

    until: datetime
    why: str


class Followups:
    """Handlers of the timers."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._wording = Wording(services)
        self._silencing = Silencing(services)

    async def followup(self, claim: Claim) -> Done | Later:
        """Sends a follow-up that is still wanted, once; else sets its timer anew or ends."""
        services = self._services
        incident_id = str(claim.job.payload["incident"])
        kind = FollowupKind(claim.job.payload["followup"])
        try:
            incident = (await services.journal.load(incident_id)).incident
        except UnknownIncidentError:
            return Done()
        due = due_of(incident, services.settings, kind)
        if due is None:
            return Done()
        now = services.clock()
        wait = self._waits(incident, due, now) or await self._silent(incident, claim, now)
        if wait is None:
            told = await self._wording.tell(incident, due)
            if told is None and now - due.at > SOURCE_GIVE_UP:
                return Done()
            if told is None:
                wait = _Wait(now + timedelta(seconds=due.every_seconds), "nothing to say yet")
            elif free := await self._no_slot(incident, claim, now):
                wait = _Wait(free, "the channel's hourly limit")
            else:
                await self._send(incident, due, told, claim)
                return Done()
        log.info("followup.waits", incident=incident_id, followup=kind.value, why=wait.why)
        again = timer(incident_id, due, max(wait.until, due.at))
        return Done(step=queue.enqueue(again, now))

    def _waits(self, incident: Incident, due: Due, now: datetime) -> _Wait | None:
        if due.at > now:
            return _Wait(due.at, "not due yet")
        quiet = quiet_until(now, incident.severity, self._services.settings)
        return _Wait(quiet, "quiet hours") if quiet else None

    async def _silent(self, incident: Incident, claim: Claim, now: datetime) -> _Wait | None:
        """Waits while nobody hears any of its alerts; a silence may also end before its time."""
        try:
            incident = await self._silencing.learn(incident, key=claim.job.id, is_patient=True)
        except EvidenceError:
            log.info("followup.silences_unknown", incident=incident.id)
        until = silent_until(incident)
        if until is None or until <= now:
            return None
        return _Wait(min(until, now + LOOK_AGAIN), "its alerts are silenced")

    async def _no_slot(self, incident: Incident, claim: Claim, now: datetime) -> datetime | None:
        """When the channel takes a follow-up again; None: now, and this one has its place."""
        return await alert_memory.take_slot(
            self._services.store,
            incident.channel,
            claim.job.id,
            now,
            self._services.settings.posts_per_channel_per_hour,
        )

    async def _send(self, incident: Incident, due: Due, told: Told, claim: Claim) -> None:
        now = self._services.clock()
        draft = Draft(
            kind=EntryKind.FOLLOWUP,
            at=now,
            text=told.text,
            source="engine",
            data={"op": "due", "followup": due.kind.value, "anchor": due.anchor, **told.data},
        )

        is_wanted = False

        def make(newest: Incident) -> Sequence[Draft]:
            nonlocal is_wanted
            wanted = due_of(newest, self._services.settings, due.kind)
            # Somebody may have answered while the words were made, or another timer was faster.
            is_wanted = wanted is not None and wanted.at <= now and wanted.count == due.count
            return (*told.drafts, draft) if is_wanted else ()

        def jobs(after: Incident) -> Sequence[Job]:
            if not is_wanted:
                return ()
            return (outbox.thread_post(after, self._message(after, due, told)), *told.jobs)

        via = Via(by=SYSTEM_AUTHOR, at=now, key=claim.job.id, source="engine")
        await self._services.responding.write(incident.id, via, make, step="followup", jobs=jobs)

    def _message(self, incident: Incident, due: Due, told: Told) -> Message:
        payload = {"incident": incident.id, "followup": due.kind.value}
        buttons = tuple(
            Button(
                action_id=f"rca.followup.{what}",
                label=say(f"followup.button_{what}"),
                payload=payload,
            )
            for what in ("snooze", "stop")
        )
        context: dict[str, Any] = {
            "text": told.text.to_json(),
            "reminder": told.reminder.to_json() if told.reminder else None,
            "asks_step": due.kind is FollowupKind.STEP_IDLE,
        }
        if due.kind is FollowupKind.UNACKNOWLEDGED:
            context["group"] = self._services.settings.on_call_group
        elif told.asks_lead:
            context["ask"] = incident.roles.get(Role.LEAD)
        return Message(view="followup_due", context=context, buttons=buttons)

    async def heartbeat(self, claim: Claim) -> Done | Later:
        """Reports a heartbeat that stays away as an incident of its own; one that came sets the timer anew."""
        services = self._services
        beat = await alert_memory.heartbeat(services.store, str(claim.job.payload["heartbeat"]))
        job = watch(beat, services.settings) if beat else None
        if beat is None or job is None or job.due_at is None:
            return Done()
        now = services.clock()
        if job.due_at > now:
            return Done(step=queue.enqueue(job, now))
        route = services.settings.route(beat.labels)
        log.warning("heartbeat.missing", name=beat.name, last_at=to_rfc3339(beat.last_at))
        if route is None:
            return Done()
        await services.openings.receive(
            missing(beat, services.settings), channel=route.channel, severity=route.severity
        )
        services.wake()
        return Done()


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    followups = Followups(services)
    return {FOLLOWUP: followups.followup, HEARTBEAT_JOB: followups.heartbeat}
