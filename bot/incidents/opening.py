"""Opens incidents, and takes alerts into the ones that are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from bot.domain.alert import Alert, AlertGroup, AlertStatus
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.errors import BotError, Reason, StoreError
from bot.incidents import storms
from bot.incidents.alert_words import (
    first_drafts,
    notes_of,
    severity_of,
    status_draft,
    system_draft,
    texts,
    title_of,
)
from bot.incidents.beginning import FIRST_STEP, Opening, Taken, first_entries, symptom_draft
from bot.incidents.grouping import Decision, Grouping, Rule, is_heartbeat, keys_of, labels_of
from bot.incidents.heartbeats import Heartbeats
from bot.incidents.joining import Joining
from bot.incidents.journal import Clock, Journal, UnknownIncidentError
from bot.inventory import Inventory
from bot.locales import say
from bot.settings import Settings
from bot.store import alert_memory, index
from bot.store.alert_memory import Sighting
from bot.store.queue import Job
from bot.store.transaction import Batch, Outcome, Store

__all__ = ["FIRST_STEP", "Opening", "Openings", "Received", "Taken", "status_draft"]

log = structlog.get_logger(__name__)

_ATTEMPTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What became of a notification: the rule that decided, the incident if there is one, whether it is new."""

    rule: Rule
    incident_id: str | None = None
    is_new: bool = False


def _nothing(*_: object) -> Sequence[Job]:
    return ()


class Openings:
    """The door through which incidents begin.

    jobs_for_new, jobs_for_news, jobs_for_recovery and jobs_for_words say what is to be done when one opens, changes, when
    all its alerts are over, and what is said of the alerts that joined; they are queued in the same transaction.
    """

    def __init__(
        self,
        store: Store,
        journal: Journal,
        inventory: Inventory,
        settings: Settings,
        clock: Clock,
        jobs_for_new: Callable[[str, Opening], Sequence[Job]],
        jobs_for_news: Callable[[Incident], Sequence[Job]],
        jobs_for_recovery: Callable[[Incident], Sequence[Job]] = _nothing,
        jobs_for_words: Callable[[Incident, Sequence[Localized]], Sequence[Job]] = _nothing,
    ) -> None:
        self._store = store
        self._journal = journal
        self._inventory = inventory
        self._settings = settings
        self._clock = clock
        self._jobs_for_new = jobs_for_new
        self._opening_now = 0
        self._grouping = Grouping(store, journal, inventory)
        self._joining = Joining(
            store, journal, clock, jobs_for_news, jobs_for_recovery, jobs_for_words
        )
        self._heartbeats = Heartbeats(store, settings, clock)

    async def open(self, opening: Opening, *, once: str, incident_id: str | None = None) -> Taken:
        """Opens an incident at most once under the name `once`; a repeat answers the first one's id.

        incident_id: a free one, where the caller has it already; without it a repeat uses no number up.

        Raises:
            StoreError: Redis is not reachable; nothing was opened, or the same call will find it.
        """
        if incident_id is None:
            known = await index.incident_of(self._store, index.once_key(once))
            if known is not None:
                return Taken(incident_id=known, is_new=False, rule="repeat")
            incident_id = await index.next_incident_id(self._store)
        step = index.once(once, incident_id)
        for key in opening.correlation:
            name = index.correlation_key(key)
            if before := opening.replaces.get(key):
                step.equals(name, before)
            else:
                step.absent(name)
            step.write("SET", name, incident_id)
        step.extend(opening.beside(incident_id))
        at = opening.at or self._clock()
        drafts = first_entries(opening, at, self._inventory)
        jobs = self._jobs_for_new(incident_id, opening)
        outcome, value = await self._journal.begin(incident_id, drafts, step, jobs)
        if outcome is Outcome.EXISTS:
            return Taken(incident_id=value, is_new=False, rule="raced")
        if outcome is Outcome.MOVED:
            raise BotError(f"{incident_id}: was opened by another writer", reason=Reason.CONFLICT)
        return Taken(incident_id=incident_id, is_new=True, rule="opened")

    async def take(
        self, group: AlertGroup, *, channel: str, severity: str | None, thread_ts: str | None = None
    ) -> Taken | None:
        """Takes a notification: into its open incident, or into a new one; None when it needs no incident.

        Raises:
            StoreError: Redis is not reachable; send the notification again, nothing is taken twice.
        """
        received = await self.receive(
            group, channel=channel, severity=severity, thread_ts=thread_ts
        )
        if received.incident_id is None:
            return None
        return Taken(
            incident_id=received.incident_id, is_new=received.is_new, rule=received.rule.value
        )

    async def receive(
        self,
        group: AlertGroup,
        *,
        channel: str | None,
        severity: str | None,
        thread_ts: str | None = None,
    ) -> Received:
        """Takes a notification and says by which rule.

        channel: where a new incident would open; None: nowhere is set.

        Raises:
            StoreError: Redis is not reachable, or there is no channel; send it again, nothing is taken twice.
        """
        beats = [alert for alert in group.alerts if is_heartbeat(alert)]
        if beats:
            for gone in await self._heartbeats.beat(beats):
                await self.receive(gone, channel=channel, severity=None)
            await self._note(beats, "heartbeat: recorded; its silence is what is reported")
            rest = tuple(alert for alert in group.alerts if not is_heartbeat(alert))
            if not rest:
                return Received(rule=Rule.HEARTBEAT)
            group = replace(group, alerts=rest)
        for attempt in range(_ATTEMPTS):
            decision = await self._grouping.decide(group)
            if not decision.opens:
                return await self._without_new(group, decision)
            if channel is None:
                raise StoreError(
                    "alert: no channel is set for it; set RCA_ALERT_CHANNEL or a route in RCA_CONFIG"
                )
            self._opening_now += 1
            # Others that open now would move the number on which a guess rests.
            is_guess = attempt == 0 and self._opening_now == 1
            try:
                incident_id = await self._open_for(
                    group, decision, channel, severity, thread_ts, is_guess=is_guess
                )
            finally:
                self._opening_now -= 1
            if incident_id is not None:
                return Received(rule=decision.rule, incident_id=incident_id, is_new=True)
        raise StoreError(
            f"alert: {_ATTEMPTS} other deliveries of it were faster; send it again",
            reason=Reason.CONFLICT,
        )

    async def _without_new(self, group: AlertGroup, decision: Decision) -> Received:
        incident_id = decision.incident_id
        if incident_id is not None:
            own = decision.key if decision.rule is Rule.TWIN else None
            await self._joining.join(incident_id, group, keys_of(group, self._inventory), own)
        elif decision.rule is Rule.OVER:
            step = Batch()
            for alert in group.alerts:
                if alert.status is AlertStatus.RESOLVED:
                    step.extend(alert_memory.over(alert.fingerprint, alert.starts_at))
            await self._store.commit(step, doing="remember what is over")
        await self._note(group.alerts, decision.words)
        return Received(rule=decision.rule, incident_id=incident_id)

    async def _open_for(
        self,
        group: AlertGroup,
        decision: Decision,
        channel: str,
        severity: str | None,
        thread_ts: str | None,
        *,
        is_guess: bool,
    ) -> str | None:
        """The new incident, or None when another delivery was faster: then the group is decided on again."""
        opening = self._opening(group, decision, channel, severity, thread_ts)
        free_id = None
        if thread_ts is None:
            guessed = await self._without_storm(opening, group) if is_guess else None
            opening, free_id = guessed or await self._in_storm(opening, group)
        keys = keys_of(group, self._inventory)
        begins = min(alert.starts_at for alert in group.alerts)
        episode = f"{keys.own}:{begins.isoformat()}:{opening.at and opening.at.isoformat()}"
        try:
            once = f"open:{index.correlation_key(episode)}"
            taken = await self.open(opening, once=once, incident_id=free_id)
        except BotError as error:
            if error.reason is Reason.CONFLICT:
                return None
            raise
        if not taken.is_new:
            return None
        if decision.rule is Rule.RECURRENCE and decision.incident_id is not None:
            await self._link(decision.incident_id, taken.incident_id)
        return taken.incident_id

    async def _link(self, before: str, after: str) -> None:
        try:
            await self._joining.link(before, after)
        except UnknownIncidentError as error:
            # Its keys outlived it. The alert is safe in the new one; the loss is for the operator.
            log.error("incident.lost", incident=before, error=str(error))

    def _opening(
        self,
        group: AlertGroup,
        decision: Decision,
        channel: str,
        severity: str | None,
        thread_ts: str | None,
    ) -> Opening:
        now = self._clock()
        labels = labels_of(group)
        keys = keys_of(group, self._inventory)
        service = self._inventory.service_of(labels)
        notes = notes_of(group, now)
        if decision.rule is Rule.RECURRENCE and decision.incident_id is not None:
            text = say("intake.recurrence", incident=decision.incident_id)
            before = decision.incident_id
            notes.append(system_draft("recurrence", text, now, recurrence_of=before))
        title = title_of(group)

        def also(incident_id: str) -> Batch:
            """Other senders of the same alert find it; one that is just opening for them makes this one wait."""
            step = Batch()
            for key in keys.others:
                if key in decision.free:
                    step.absent(index.correlation_key(key))
            for name in filter(None, (keys.mine, keys.general)):
                step.write("SET", index.correlation_key(name), incident_id)
            words = f"{incident_id}: {decision.words}"
            return step.extend(alert_memory.note(_sightings(group.alerts, now, words)))

        return Opening(
            title=title.in_locale(self._settings.locale_of(channel)),
            channel=channel,
            severity=severity_of(severity or labels.get("severity", "")),
            locale=self._settings.locale_of(channel),
            source=group.source,
            services=(service.name,) if service else (),
            thread_ts=thread_ts,
            labels=labels,
            drafts=(*first_drafts(group, now), *notes, symptom_draft(group, title, labels, now)),
            correlation=(keys.own,),
            at=now,
            replaces=decision.ended,
            notes=texts(notes),
            beside=also,
        )

    async def _without_storm(
        self, opening: Opening, group: AlertGroup
    ) -> tuple[Opening, str] | None:
        """The opening with its count and number in its own step, and the number; None where a storm may be on."""
        now = opening.at or self._clock()
        own = f"{group.source}:{group.group_key}"
        seen = await alert_memory.foresee(self._store, opening.channel, own, now)
        if seen is None or seen.count > storms.MOST_NEW_GROUPS:
            return None

        def beside(incident_id: str) -> Batch:
            return opening.beside(incident_id).extend(seen.step)

        return replace(opening, beside=beside), seen.free_id

    async def _in_storm(self, opening: Opening, group: AlertGroup) -> tuple[Opening, str]:
        """The opening as part of a storm, when too many groups are new in its channel; and a free id for it."""
        now = opening.at or self._clock()
        own = f"{group.source}:{group.group_key}"
        count, free_id = await alert_memory.new_group(self._store, opening.channel, own, now)
        if count <= storms.MOST_NEW_GROUPS:
            return opening, free_id
        key = storms.key_of(opening.channel)
        held = await index.incident_of(self._store, index.correlation_key(key))
        if held is None or not (await self._journal.load(held)).incident.is_open:
            begun = storms.opening_of(opening, now, held)
            try:
                held = (await self.open(begun, once=f"{key}:{held}:{now.isoformat()}")).incident_id
            except BotError as error:
                if error.reason is not Reason.CONFLICT:
                    raise
                held = await index.incident_of(self._store, index.correlation_key(key))
        return (storms.listed(opening, held, now) if held else opening), free_id

    async def _note(self, alerts: Sequence[Alert], words: str) -> None:
        step = alert_memory.note(_sightings(alerts, self._clock(), words))
        await self._store.commit(step, doing="note what became of an alert")


def _sightings(alerts: Sequence[Alert], at: datetime, words: str) -> list[Sighting]:
    return [
        Sighting(fingerprint=item.fingerprint, at=at, labels=item.labels, rule=words)
        for item in alerts
    ]
