"""Takes notifications into an incident that is there: news become entries, repeats a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.alert import Alert, AlertGroup
from bot.domain.incident import Incident, IncidentStatus
from bot.domain.projection import all_resolved
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.incidents.alert_words import (
    acknowledged_draft,
    alert_draft,
    joined_draft,
    silenced_draft,
    status_draft,
    system_draft,
    truncated_draft,
)
from bot.incidents.grouping import GroupKeys, what_is_new
from bot.incidents.journal import Clock, Journal, Ledger
from bot.locales import say
from bot.store import alert_memory, index, queue
from bot.store.queue import Job
from bot.store.transaction import Batch, Store

# An alert that flaps does not ask for step 6 each time.
_ASK_AGAIN = timedelta(hours=1)


class Joining:
    """Writes alerts into open incidents."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        jobs_for_news: Callable[[Incident], Sequence[Job]],
        jobs_for_recovery: Callable[[Incident], Sequence[Job]],
        jobs_for_words: Callable[[Incident, Sequence[Localized]], Sequence[Job]],
    ) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock
        self._jobs_for_news = jobs_for_news
        self._jobs_for_recovery = jobs_for_recovery
        self._jobs_for_words = jobs_for_words

    async def join(
        self, incident_id: str, group: AlertGroup, keys: GroupKeys, twin: str | None
    ) -> None:
        """Notes what is new; a notification without news is counted and shown on the anchor.

        twin: the key of the other sender by which the incident was found, None where it was this sender's own.

        Raises:
            StoreError: Redis is not reachable.
        """
        now = self._clock()
        for alert in group.alerts:
            if alert.fingerprint in group.silenced:
                await self._silence(incident_id, alert, group, now)
        extra = _held_by(incident_id, keys) if twin is not None else Batch()

        said: list[Localized] = []

        def news(ledger: Ledger) -> list[Draft]:
            drafts = _news(ledger.incident, group, now, is_twin=twin is not None)
            said[:] = [draft.text for draft in drafts if draft.kind is EntryKind.ALERT]
            return drafts

        ledger = await self._journal.load(incident_id)
        if not news(ledger):
            step = alert_memory.repeated(incident_id).extend(extra)
            counted = replace(
                ledger.incident, alert_notifications=ledger.incident.alert_notifications + 1
            )
            for job in self._jobs_for_news(counted):
                step.extend(queue.enqueue(job, now))
            await self._store.commit(step, doing="count a repeated alert")
            return
        asked = _was_asked(ledger, now)

        def jobs(after: Incident) -> Sequence[Job]:
            recovered = after.status is IncidentStatus.RECOVERED
            is_now = recovered and ledger.incident.status is not IncidentStatus.RECOVERED
            more = self._jobs_for_recovery(after) if is_now and not asked else ()
            words = self._jobs_for_words(after, said)
            return (*self._jobs_for_news(after), *words, *more)

        await self._journal.record(incident_id, news, jobs=jobs, extra=extra)

    async def link(self, before: str, after: str) -> None:
        """Notes in an ended incident that its alert opened another one.

        Raises:
            StoreError: Redis is not reachable.
        """
        text = say("intake.recurred", incident=after)
        draft = system_draft("recurred", text, self._clock(), incident=after)
        await self._journal.record(before, lambda _: [draft], once=f"recurred:{after}")

    async def _silence(
        self, incident_id: str, alert: Alert, group: AlertGroup, now: datetime
    ) -> None:
        why = group.silenced[alert.fingerprint]
        known = (await self._journal.load(incident_id)).incident.alerts
        if alert.fingerprint in known:
            draft = silenced_draft(alert, group, now)
            once = f"silenced:{index.correlation_key(f'{alert.fingerprint}:{why}')}"
            await self._journal.record(incident_id, lambda _: [draft], once=once)


def _held_by(incident_id: str, keys: GroupKeys) -> Batch:
    """From now on this sender's own group finds the incident."""
    step = Batch()
    for key in (keys.own, keys.mine):
        if key is not None:
            step.write("SET", index.correlation_key(key), incident_id)
    return step


def _news(incident: Incident, group: AlertGroup, now: datetime, *, is_twin: bool) -> list[Draft]:
    drafts = []
    alerts = dict(incident.alerts)
    for alert in group.alerts:
        if alert.fingerprint in group.silenced:
            continue
        same = _as_known(incident, alert, group)
        if op := what_is_new(alerts.get(same.fingerprint), same):
            drafts.append(alert_draft(same, group, now, op))
            alerts[same.fingerprint] = same
    if drafts:
        drafts.extend(_status_drafts(incident, alerts, now))
    if is_twin and (group.intake, group.group_key) not in incident.alert_groups:
        drafts.insert(0, joined_draft(group, now))
    if group.acknowledged_by and incident.acknowledged_at is None:
        drafts.append(acknowledged_draft(group, now))
    if group.firing and group.truncated != incident.alerts_left_out:
        drafts.append(truncated_draft(group, now))
    return drafts


def _as_known(incident: Incident, alert: Alert, group: AlertGroup) -> Alert:
    """The alert under the fingerprint of the other sender's, where both can only mean the same one."""
    if alert.fingerprint in incident.alerts or len(incident.alerts) != 1 or len(group.alerts) != 1:
        return alert
    others = {way for way, _ in incident.alert_groups} - {group.intake}
    [known] = incident.alerts.values()
    if not others or known.name != alert.name:
        return alert
    return replace(alert, fingerprint=known.fingerprint)


def _status_drafts(incident: Incident, alerts: Mapping[str, Alert], now: datetime) -> list[Draft]:
    after = replace(incident, alerts=alerts)
    if all_resolved(after) and incident.status in (IncidentStatus.OPEN, IncidentStatus.MITIGATED):
        return [status_draft(IncidentStatus.RECOVERED, now)]
    if not all_resolved(after) and incident.status is IncidentStatus.RECOVERED:
        return [status_draft(IncidentStatus.OPEN, now)]
    return []


def _was_asked(ledger: Ledger, now: datetime) -> bool:
    return any(
        entry.kind is EntryKind.SYSTEM
        and entry.data.get("status") == IncidentStatus.RECOVERED.value
        and now - entry.at < _ASK_AGAIN
        for entry in ledger.entries
    )
