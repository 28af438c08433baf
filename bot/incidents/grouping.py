"""Which incident a notification belongs to: pure rules over what its keys find.

The sender's own group is the key. What two senders say of one alert meets under the alert's name and service; two
groups of one sender never do, since the sender itself told them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.alert import Alert, AlertGroup, AlertStatus
from bot.domain.incident import Incident, IncidentStatus
from bot.incidents.journal import Journal, UnknownIncidentError
from bot.inventory import Inventory
from bot.store import alert_memory
from bot.store.transaction import Store

INTAKES = (
    "alertmanager",
    "grafana",
    "pagerduty",
    "slack:alertmanager",
    "slack:grafana",
    "slack:pagerduty",
)
# An alert that comes back after an hour without any is a new episode; sooner, it flaps. Basis: judgement.
EPISODE_GAP = timedelta(hours=1)
# Names under which rule sets ship the alert that fires for ever; compared without case and punctuation.
_HEARTBEATS = ("watchdog", "deadmansswitch", "deadmanssnitch", "heartbeat", "alwaysfiring")


class Rule(StrEnum):
    """Why a notification was taken as it was."""

    OPENED = "opened"
    RECURRENCE = "recurrence"
    JOINED = "joined"
    TWIN = "twin"
    LATE = "late"
    OVER = "over"
    SILENCED = "silenced"
    HEARTBEAT = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKeys:
    """Under which keys the incident of a group is found.

    own: the sender's group. others: where the same alert's incident stands that came in another way.
    mine: where this way's incident stands for others. general: the newest of all ways.
    """

    own: str
    others: tuple[str, ...] = ()
    mine: str | None = None
    general: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        """In the order in which they are tried."""
        return (self.own, *self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done with a group, and the words that explain it.

    key: which key decided. ended: keys whose incident takes no more, with its id. free: keys that nobody holds.
    """

    rule: Rule
    words: str
    incident_id: str | None = None
    key: str | None = None
    ended: Mapping[str, str] = field(default_factory=dict)
    free: frozenset[str] = frozenset()

    @property
    def opens(self) -> bool:
        """Whether an incident is opened."""
        return self.rule in (Rule.OPENED, Rule.RECURRENCE)


def is_heartbeat(alert: Alert) -> bool:
    """Whether an alert fires by design, so that only its silence means something."""
    name = "".join(
        letter for letter in alert.labels.get("alertname", "").lower() if letter.isalnum()
    )
    return name in _HEARTBEATS


def labels_of(group: AlertGroup) -> dict[str, str]:
    """The labels that stand for the whole group."""
    return dict(group.common_labels) or dict(group.alerts[0].labels)


def keys_of(group: AlertGroup, inventory: Inventory) -> GroupKeys:
    """The keys of a group."""
    labels = labels_of(group)
    service = inventory.service_of(labels)
    own = f"{group.source}:{group.group_key}"
    name = labels.get("alertname")
    if not name or service is None or group.intake not in INTAKES:
        return GroupKeys(own=own)
    general = f"alert:{name}:{service.name}"
    return GroupKeys(
        own=own,
        others=tuple(f"{general}@{way}" for way in INTAKES if way != group.intake),
        mine=f"{general}@{group.intake}",
        general=general,
    )


class Grouping:
    """Decides; writes nothing."""

    def __init__(self, store: Store, journal: Journal, inventory: Inventory) -> None:
        self._store = store
        self._journal = journal
        self._inventory = inventory

    async def decide(self, group: AlertGroup) -> Decision:
        """What becomes of a group without heartbeats.

        Raises:
            StoreError: Redis is not reachable.
        """
        keys = keys_of(group, self._inventory)
        firing = [alert.fingerprint for alert in group.firing]
        recalled = await alert_memory.recall(self._store, keys.all, firing)
        held = recalled.held
        ended: dict[str, str] = {}
        for key in keys.all:
            if (incident_id := held.get(key)) is None:
                continue
            incident = await self._load(incident_id)
            if incident is None:
                ended[key] = incident_id
            elif key != keys.own and _has_another_group(incident, group):
                continue
            elif (rule := belongs(incident, group)) is None:
                ended[key] = incident_id
            else:
                if key != keys.own and rule is Rule.JOINED:
                    rule = Rule.TWIN
                words = f"{_WHY[rule]} {incident_id}: its key {key!r} is held by it"
                return Decision(rule=rule, words=words, incident_id=incident_id, key=key)
        free = frozenset(key for key in keys.all if key not in held)
        return _without_incident(group, recalled.over, ended, free)

    async def _load(self, incident_id: str) -> Incident | None:
        try:
            return (await self._journal.load(incident_id)).incident
        except UnknownIncidentError:
            return None


def _without_incident(
    group: AlertGroup,
    over: Mapping[str, datetime],
    ended: Mapping[str, str],
    free: frozenset[str],
) -> Decision:
    if not group.firing:
        if group.silenced:
            why = "; ".join(sorted(set(group.silenced.values())))
            return Decision(rule=Rule.SILENCED, words=f"silenced at its sender: {why}")
        return Decision(
            rule=Rule.OVER,
            words="ignored: it only says that something is over that is not open",
        )
    if all(
        alert.has_start and alert.fingerprint in over and alert.starts_at <= over[alert.fingerprint]
        for alert in group.firing
    ):
        return Decision(rule=Rule.LATE, words="ignored: late, its resolve came before this firing")
    if ended:
        before = next(iter(ended.values()))
        return Decision(
            rule=Rule.RECURRENCE,
            words=f"opened as a recurrence of {before}: a new episode after that one",
            incident_id=before,
            ended=ended,
            free=free,
        )
    words = "opened: no open incident holds one of its keys"
    return Decision(rule=Rule.OPENED, words=words, free=free)


_WHY = {
    Rule.JOINED: "joined",
    Rule.TWIN: "joined: the same alert from another sender is",
    Rule.LATE: "late, noted with",
}


def _has_another_group(incident: Incident, group: AlertGroup) -> bool:
    """Whether this sender already has a different group in the incident: then these two are not the same alert."""
    return any(way == group.intake and key != group.group_key for way, key in incident.alert_groups)


def belongs(incident: Incident, group: AlertGroup) -> Rule | None:
    """JOINED or LATE when the group is part of what this incident is about; None for a new episode."""
    if not group.firing:
        return Rule.JOINED if incident.is_open else Rule.LATE
    if not incident.is_open:
        return Rule.LATE if all(_is_late(incident, item) for item in group.firing) else None
    if incident.status is not IncidentStatus.RECOVERED:
        return Rule.JOINED
    ends = [item.ends_at for item in incident.alerts.values()]
    known = [end for end in ends if end is not None]
    if len(known) != len(ends) or not known:
        return Rule.JOINED
    begins = min(item.starts_at for item in group.firing)
    return None if begins - max(known) > EPISODE_GAP else Rule.JOINED


def _is_late(incident: Incident, alert: Alert) -> bool:
    """Whether a firing belongs to an episode that the resolved incident already covers."""
    known = incident.alerts.get(alert.fingerprint)
    if not alert.has_start:
        return known is not None and known.status is AlertStatus.FIRING
    ends = [item.ends_at for item in incident.alerts.values()]
    if known is not None:
        if alert.starts_at <= known.starts_at:
            return True
        if known.ends_at is not None:
            return alert.starts_at < known.ends_at
    elif ends and all(ends) and alert.starts_at >= max(end for end in ends if end is not None):
        return False
    return incident.resolved_at is not None and alert.starts_at < incident.resolved_at


def what_is_new(known: Alert | None, alert: Alert) -> str | None:
    """The `op` of the entry that an alert is worth, or None for a repeat or a notification that was overtaken."""
    if known is None:
        return "firing" if alert.status is AlertStatus.FIRING else "resolved"
    if alert.status is AlertStatus.RESOLVED:
        if known.status is AlertStatus.RESOLVED:
            return None
        is_older = alert.ends_at is not None and alert.ends_at <= known.starts_at
        return None if is_older and alert.starts_at < known.starts_at else "resolved"
    if known.status is AlertStatus.FIRING:
        return "repeated" if alert.has_start and alert.starts_at > known.starts_at else None
    if not alert.has_start:
        return "refired"
    if alert.starts_at <= known.starts_at:
        return None
    return None if known.ends_at is not None and alert.starts_at < known.ends_at else "refired"
