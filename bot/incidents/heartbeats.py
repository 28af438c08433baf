"""Alerts that fire for ever to prove that the path works: recorded when they come, reported when they stay away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.domain.alert import Alert, AlertGroup, AlertStatus
from bot.domain.incident import IncidentStatus
from bot.domain.instant import to_rfc3339
from bot.incidents.journal import Clock
from bot.locales import translate
from bot.settings import Settings
from bot.store import alert_memory, index, queue
from bot.store.alert_memory import Heartbeat
from bot.store.queue import Job
from bot.store.transaction import Batch, Store

HEARTBEAT_JOB = "followup.heartbeat"
SOURCE = "heartbeat"


class Heartbeats:
    """Records heartbeats and sets the timer that notices their absence."""

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

    async def beat(self, alerts: Sequence[Alert]) -> list[AlertGroup]:
        """Records what came; gives the reports of missing heartbeats that are over by it.

        A resolved heartbeat is none: its clock runs on.

        Raises:
            StoreError: Redis is not reachable.
        """
        now = self._clock()
        over: list[AlertGroup] = []
        step = Batch()
        for alert in alerts:
            if alert.status is AlertStatus.RESOLVED:
                continue
            beat = Heartbeat(
                fingerprint=alert.fingerprint,
                name=alert.name,
                labels=dict(alert.labels),
                last_at=now,
            )
            step.extend(alert_memory.keep_heartbeat(beat))
            if job := watch(beat, self._settings):
                step.extend(queue.enqueue(job, now))
            if await self._is_reported(beat):
                over.append(missing(beat, self._settings, ended_at=now))
        await self._store.commit(step, doing="record a heartbeat")
        return over

    async def _is_reported(self, beat: Heartbeat) -> bool:
        """Whether an incident says that this heartbeat is missing, and does not know yet that it is back."""
        key = index.correlation_key(f"{SOURCE}:{group_key(beat)}")
        incident_id = await index.incident_of(self._store, key)
        summary = await index.summary_of(self._store, incident_id) if incident_id else None
        on = (IncidentStatus.OPEN.value, IncidentStatus.MITIGATED.value)
        return summary is not None and summary.status in on


def group_key(beat: Heartbeat) -> str:
    """Under which key the report of a missing heartbeat is found."""
    return f"missing:{beat.fingerprint}"


def watch(beat: Heartbeat, settings: Settings) -> Job | None:
    """The timer that notices when a heartbeat stays away; None where this is switched off."""
    seconds = settings.followup.heartbeat_s
    if not seconds:
        return None
    name = f"heartbeat:{beat.fingerprint}"
    return Job(
        kind=HEARTBEAT_JOB,
        lane=f"timer:{name}:{int(beat.last_at.timestamp() * 1000)}",
        payload={"heartbeat": beat.fingerprint},
        due_at=beat.last_at + timedelta(seconds=seconds),
        coalesce=name,
    )


def missing(beat: Heartbeat, settings: Settings, *, ended_at: datetime | None = None) -> AlertGroup:
    """The report that a heartbeat stays away (or, with `ended_at`, that it is back), as an alert of our own."""
    seconds = settings.followup.heartbeat_s
    since = beat.last_at.astimezone(settings.zone)
    summary = translate(
        settings.locale,
        "intake.heartbeat_missing",
        name=beat.name,
        since=f"{since:%Y-%m-%d %H:%M %Z}",
    )
    help_text = translate(
        settings.locale, "intake.heartbeat_help", name=beat.name, minutes=f"{seconds / 60:g}"
    )
    status = AlertStatus.RESOLVED if ended_at else AlertStatus.FIRING
    labels = {**beat.labels, "alertname": "AlertPathSilent", "severity": "critical"}
    alert = Alert(
        fingerprint=f"missing:{beat.fingerprint}",
        status=status,
        labels=labels,
        annotations={
            "summary": summary,
            "description": help_text,
            "last": to_rfc3339(beat.last_at),
        },
        starts_at=beat.last_at,
        ends_at=ended_at,
        has_start=ended_at is None,
    )
    return AlertGroup(
        group_key=group_key(beat),
        source=SOURCE,
        status=status,
        alerts=(alert,),
        common_labels=labels,
        common_annotations={"summary": summary},
    )
