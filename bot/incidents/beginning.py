"""What an incident begins with, and the first entries of its timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.alert import AlertGroup
from bot.domain.instant import to_rfc3339
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.incidents.alert_words import scope_words
from bot.inventory import Inventory
from bot.locales import say
from bot.store.transaction import Batch

FIRST_STEP = "symptom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What an incident begins with.

    thread_ts: set when the incident lives in the thread of another message. since: when the symptom began, if known.
    correlation: keys under which later alerts find this incident while it is open. at: when; now by default.
    replaces: keys that an ended incident still holds. notes: what is said in the thread beside the first prompt.
    storm_of: the storm that lists it. beside: further guards and writes of the same transaction.
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
    replaces: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Localized, ...] = ()
    storm_of: str | None = None
    beside: Callable[[str], Batch] = lambda _: Batch()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of an alert group: the incident, and whether it was opened by it."""

    incident_id: str
    is_new: bool
    rule: str


def symptom_draft(
    group: AlertGroup, title: Localized, labels: Mapping[str, str], now: datetime
) -> Draft:
    """The symptom that an alert group states: since its first alert, where its labels say."""
    begins = min(alert.starts_at for alert in group.alerts)
    return Draft(
        kind=EntryKind.SYMPTOM,
        at=now,
        text=title,
        source=group.source,
        data={
            "id": "S-1",
            "since": to_rfc3339(min(begins, now)),
            "scope": scope_words(labels),
            "metric": None,
        },
    )


def first_entries(opening: Opening, at: datetime, inventory: Inventory) -> list[Draft]:
    """The opening itself, what it brings along, and the first step."""
    service = opening.services[0] if opening.services else None
    nodes = [node.name for node in inventory.nodes_of(service)] if service else []
    first = Draft(
        kind=EntryKind.SYSTEM,
        at=at,
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
        at=at,
        text=say("incident.step_entered", step=say(f"report.kind.{FIRST_STEP}")),
        data={"op": "entered", "step": FIRST_STEP},
    )
    return [first, *opening.drafts, entered]
