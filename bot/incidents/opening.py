"""Opens incidents, and takes alerts into the ones that are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.domain.alert import Alert, AlertGroup, AlertStatus
from bot.domain.incident import Incident, IncidentStatus
from bot.domain.instant import to_rfc3339
from bot.domain.projection import all_resolved
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.errors import BotError, Reason
from bot.incidents.journal import Clock, Journal, Ledger
from bot.inventory import Inventory
from bot.locales import say
from bot.settings import Settings
from bot.store import index
from bot.store.queue import Job
from bot.store.transaction import Batch, Outcome, Store

FIRST_STEP = "symptom"
# Alertmanager's severity words, and what most teams mean by them.
_SEVERITIES = {"critical": Severity.SEV2, "page": Severity.SEV2, "warning": Severity.SEV3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What an incident begins with.

    thread_ts: set when the incident lives in the thread of another message. since: when the symptom began, if known.
    correlation: keys under which later alerts find this incident while it is open. at: when; now by default.
    """

    title: str
    channel: str
    severity: Severity
    locale: Locale
    by: str = SYSTEM_AUTHOR
    source: str = "slack"
    services: tuple[str, ...] = ()
    thread_ts: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    drafts: tuple[Draft, ...] = ()
    correlation: tuple[str, ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of an alert group: the incident, and whether it was opened by it."""

    incident_id: str
    is_new: bool
    rule: str


class Openings:
    """The door through which incidents begin.

    jobs_for_new and jobs_for_news say what is to be done when one opens or changes; they are queued in the same
    transaction.
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
    ) -> None:
        self._store = store
        self._journal = journal
        self._inventory = inventory
        self._settings = settings
        self._clock = clock
        self._jobs_for_new = jobs_for_new
        self._jobs_for_news = jobs_for_news

    async def open(self, opening: Opening, *, once: str) -> Taken:
        """Opens an incident at most once under the name `once`; a repeat answers the first one's id.

        Raises:
            StoreError: Redis is not reachable; nothing was opened, or the same call will find it.
        """
        incident_id = await self._claimed(once)
        if incident_id is not None:
            return Taken(incident_id=incident_id, is_new=False, rule="repeat")
        incident_id = await index.next_incident_id(self._store)
        step = index.once(once, incident_id)
        for key in opening.correlation:
            step.absent(index.correlation_key(key))
            step.write("SET", index.correlation_key(key), incident_id)
        drafts = self._first_entries(opening)
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
        """Takes a notification: into its open incident, or into a new one; None when it only says that nothing is on.

        Raises:
            StoreError: Redis is not reachable; send the notification again, nothing is taken twice.
        """
        taken = await self._take(group, channel, severity, thread_ts)
        await self._note(group, taken)
        return taken

    async def _note(self, group: AlertGroup, taken: Taken | None) -> None:
        words = (
            f"{taken.incident_id}: {taken.rule}"
            if taken
            else "ignored: it only says that something is over that is not open"
        )
        step = Batch()
        for alert in group.alerts:
            step.extend(index.sighting(alert.fingerprint, self._clock(), words))
        await self._store.commit(step, doing="note what became of an alert")

    async def _take(
        self, group: AlertGroup, channel: str, severity: str | None, thread_ts: str | None
    ) -> Taken | None:
        for key in self._keys(group):
            open_id = await index.incident_of(self._store, index.correlation_key(key))
            if open_id is not None and await self._accepts(open_id, group):
                await self._join(open_id, group)
                return Taken(incident_id=open_id, is_new=False, rule=f"joined by {key}")
        if group.status is AlertStatus.RESOLVED:
            return None
        taken = await self._open_for(group, channel, severity, thread_ts)
        if not taken.is_new:
            await self._join(taken.incident_id, group)
        return taken

    async def _open_for(
        self, group: AlertGroup, channel: str, severity: str | None, thread_ts: str | None
    ) -> Taken:
        labels = dict(group.common_labels) or dict(group.alerts[0].labels)
        service = self._inventory.service_of(labels)
        word = severity or labels.get("severity", "")
        level = (
            Severity(word)
            if word in set(Severity)
            else _SEVERITIES.get(word.lower(), Severity.SEV3)
        )
        starts = min(alert.starts_at for alert in group.alerts)
        now = self._clock()
        drafts = [_alert_draft(alert, group, now, "firing") for alert in group.alerts]
        drafts.append(
            Draft(
                kind=EntryKind.SYMPTOM,
                at=now,
                text=Localized.verbatim(group.title),
                source=group.source,
                data={
                    "id": "S-1",
                    "since": to_rfc3339(min(starts, now)),
                    "scope": _scope_words(labels),
                    "metric": None,
                },
            )
        )
        opening = Opening(
            title=group.title,
            channel=channel,
            severity=level,
            locale=self._settings.locale,
            source=group.source,
            services=(service.name,) if service else (),
            thread_ts=thread_ts,
            labels=labels,
            drafts=tuple(drafts),
            correlation=self._keys(group),
            at=now,
        )
        for key in opening.correlation:
            await self._release(key)
        episode = f"{group.group_key}:{starts.isoformat()}:{now.isoformat()}"
        return await self.open(opening, once=f"open:{index.correlation_key(episode)}")

    async def _release(self, key: str) -> None:
        """Frees a correlation key whose incident takes no more alerts, so that a new episode opens its own."""
        held = await index.incident_of(self._store, index.correlation_key(key))
        if held is not None:
            step = Batch().equals(index.correlation_key(key), held)
            step.write("DEL", index.correlation_key(key))
            await self._store.commit(step, doing="end an episode")

    async def _accepts(self, incident_id: str, group: AlertGroup) -> bool:
        incident = (await self._journal.load(incident_id)).incident
        if incident.is_open:
            return True
        # A late notification of the episode that was resolved is noted there; a new start is a new episode.
        return group.status is AlertStatus.RESOLVED or all(
            incident.resolved_at is not None and alert.starts_at < incident.resolved_at
            for alert in group.alerts
        )

    async def _join(self, incident_id: str, group: AlertGroup) -> None:
        now = self._clock()

        def news(ledger: Ledger) -> list[Draft]:
            incident = ledger.incident
            drafts = []
            alerts = dict(incident.alerts)
            for alert in group.alerts:
                if op := _what_is_new(alerts.get(alert.fingerprint), alert):
                    drafts.append(_alert_draft(alert, group, now, op))
                alerts[alert.fingerprint] = alert
            if drafts:
                drafts.extend(_status_drafts(incident, alerts, now))
            return drafts

        if news(await self._journal.load(incident_id)):
            await self._journal.record(incident_id, news, jobs=self._jobs_for_news)

    def _keys(self, group: AlertGroup) -> tuple[str, ...]:
        return correlation_keys(group, self._inventory)

    async def _claimed(self, once: str) -> str | None:
        return await index.incident_of(self._store, index.once_key(once))

    def _first_entries(self, opening: Opening) -> list[Draft]:
        now = opening.at or self._clock()
        service = opening.services[0] if opening.services else None
        nodes = [node.name for node in self._inventory.nodes_of(service)] if service else []
        first = Draft(
            kind=EntryKind.SYSTEM,
            at=now,
            text=say("incident.opened", title=opening.title),
            author=opening.by,
            source=opening.source,
            data={
                "op": "opened",
                "title": opening.title,
                "severity": opening.severity.value,
                "services": list(opening.services),
                "nodes": nodes,
                "channel": opening.channel,
                "thread_ts": opening.thread_ts,
                "locale": opening.locale.value,
                "labels": dict(opening.labels),
                "source": opening.source,
            },
        )
        entered = Draft(
            kind=EntryKind.STEP,
            at=now,
            text=say("incident.step_entered", step=FIRST_STEP),
            data={"op": "entered", "step": FIRST_STEP},
        )
        return [first, *opening.drafts, entered]


def correlation_keys(group: AlertGroup, inventory: Inventory) -> tuple[str, ...]:
    """What finds the open incident of a notification: the sender's own group, then alert name and service.

    The second key joins what two senders say of one alert.
    """
    labels = dict(group.common_labels) or (dict(group.alerts[0].labels) if group.alerts else {})
    service = inventory.service_of(labels)
    keys = [f"{group.source}:{group.group_key}"]
    if (name := labels.get("alertname")) and service:
        keys.append(f"alert:{name}:{service.name}")
    return tuple(keys)


def _what_is_new(known: Alert | None, alert: Alert) -> str | None:
    if known is None:
        return "firing" if alert.status is AlertStatus.FIRING else "resolved"
    if known.status is alert.status:
        return None if known.starts_at == alert.starts_at else "repeated"
    if alert.status is AlertStatus.RESOLVED:
        return "resolved"
    # Notifications may overtake each other: an older episode's firing after its resolve is no new fire.
    if known.ends_at is not None and alert.starts_at <= known.starts_at:
        return None
    return "refired"


def _status_drafts(incident: Incident, alerts: Mapping[str, Alert], now: datetime) -> list[Draft]:
    after = replace(incident, alerts=alerts)
    if all_resolved(after) and incident.status in (IncidentStatus.OPEN, IncidentStatus.MITIGATED):
        return [status_draft(IncidentStatus.RECOVERED, now)]
    if not all_resolved(after) and incident.status is IncidentStatus.RECOVERED:
        return [status_draft(IncidentStatus.OPEN, now)]
    return []


def status_draft(status: IncidentStatus, at: datetime, by: str = SYSTEM_AUTHOR) -> Draft:
    """The entry that moves an incident to `status`."""
    return Draft(
        kind=EntryKind.SYSTEM,
        at=at,
        text=say(f"incident.status_{status.value}"),
        author=by,
        data={"op": "status", "status": status.value},
    )


def _alert_draft(alert: Alert, group: AlertGroup, now: datetime, op: str) -> Draft:
    return Draft(
        kind=EntryKind.ALERT,
        at=now,
        text=say(f"incident.alert_{op}", alert=alert.summary),
        source=group.source,
        data={
            "op": op,
            "alert": alert.to_json(),
            "group_key": group.group_key,
            "source": group.source,
        },
    )


def _scope_words(labels: Mapping[str, str]) -> str | None:
    """The labels that say where: node, replica, model, tenant, cluster and the like."""
    names = ("service", "cluster", "namespace", "node", "instance", "replica", "model", "tenant")
    words = [f"{name}={labels[name]}" for name in names if labels.get(name)]
    return ", ".join(words) or None
