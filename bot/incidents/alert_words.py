"""Alerts as timeline entries, and what must be said about them beside their own text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.domain.alert import Alert, AlertGroup, AlertStatus, AlertValue
from bot.domain.incident import IncidentStatus
from bot.domain.responder import Severity
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.locales import say

# What template engines leave behind where they failed: Go's error text and its empty value, and unexpanded markup.
_BROKEN = re.compile(r"<error expanding template|<no value>|\[no value\]|\{\{[^{}]{0,500}\}\}")
# Words of alert rules for how bad it is, and what most teams mean by them.
_SEVERITIES = {
    "critical": Severity.SEV2,
    "page": Severity.SEV2,
    "high": Severity.SEV2,
    "error": Severity.SEV3,
    "warning": Severity.SEV3,
    "ticket": Severity.SEV3,
    "info": Severity.SEV4,
    "low": Severity.SEV4,
}
_MOST_SHOWN = 10
_MOST_TITLE = 300
_WHERE = ("service", "cluster", "namespace", "node", "instance", "replica", "model", "tenant")
_WHICH = ("pod", "node", "gpu", "instance", "replica")


def alert_draft(alert: Alert, group: AlertGroup, now: datetime, op: str) -> Draft:
    """The entry of one alert's news."""
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


def first_drafts(group: AlertGroup, now: datetime) -> list[Draft]:
    """The entries of a group that opens an incident."""
    ops = {AlertStatus.FIRING: "firing", AlertStatus.RESOLVED: "resolved"}
    drafts = [
        alert_draft(alert, group, now, ops[alert.status])
        for alert in group.alerts
        if alert.fingerprint not in group.silenced
    ]
    if group.acknowledged_by:
        drafts.append(acknowledged_draft(group, now))
    return drafts


def joined_draft(group: AlertGroup, now: datetime) -> Draft:
    """The entry that another sender told of the same alert."""
    return _about(group, now, "joined", say("intake.joined", sender=group.intake))


def acknowledged_draft(group: AlertGroup, now: datetime) -> Draft:
    """The entry that somebody took the alert on at its sender."""
    text = say("intake.acknowledged", by=group.acknowledged_by or group.source)
    return _about(group, now, "acknowledged", text)


def silenced_draft(alert: Alert, group: AlertGroup, now: datetime) -> Draft:
    """The entry that an alert was silenced at its sender."""
    why = group.silenced[alert.fingerprint]
    return _about(group, now, "silenced", say("intake.silenced", why=why, alert=alert.summary))


def _about(group: AlertGroup, now: datetime, op: str, text: Localized) -> Draft:
    data = {"op": op, "group_key": group.group_key, "source": group.source}
    return Draft(kind=EntryKind.ALERT, at=now, text=text, source=group.source, data=data)


def system_draft(op: str, text: Localized, now: datetime, **data: Any) -> Draft:
    """An entry of the bot's own book-keeping."""
    return Draft(kind=EntryKind.SYSTEM, at=now, text=text, data={"op": op, **data})


def status_draft(status: IncidentStatus, at: datetime, by: str = SYSTEM_AUTHOR) -> Draft:
    """The entry that moves an incident to `status`."""
    return Draft(
        kind=EntryKind.SYSTEM,
        at=at,
        text=say(f"incident.status_{status.value}"),
        author=by,
        data={"op": "status", "status": status.value},
    )


def truncated_draft(group: AlertGroup, now: datetime) -> Draft:
    """The entry that the sender left alerts out."""
    delivered = len(group.alerts)
    text = say("intake.truncated", total=delivered + group.truncated, delivered=delivered)
    return system_draft("truncated", text, now, delivered=delivered, left_out=group.truncated)


def notes_of(group: AlertGroup, now: datetime) -> list[Draft]:
    """What must be said beside the alerts: how many were left out, what was measured, which template failed."""
    drafts = [truncated_draft(group, now)] if group.truncated else []
    measured = [item for item in group.alerts if item.values is not None][:_MOST_SHOWN]
    drafts += [
        system_draft(
            "note", say("intake.values", alert=_which(item), values=values_words(item)), now
        )
        for item in measured
    ]
    if group.unread:
        first, count = group.unread[0][:200], len(group.unread)
        drafts.append(system_draft("note", say("intake.unread", count=count, first=first), now))
    if broken := broken_fields(group):
        text = say("intake.template_failed", fields=", ".join(broken[:_MOST_SHOWN]))
        drafts.append(system_draft("note", text, now))
    return drafts


def values_words(alert: Alert) -> Localized:
    """What a rule measured; a missing value is said as missing, a zero as zero."""
    words = [_value_words(item) for item in alert.values or ()]
    if not words:
        return say("intake.values_none")
    return Localized(", ".join(item.en for item in words), "，".join(item.zh for item in words))


def _value_words(value: AlertValue) -> Localized:
    if value.number is not None:
        return say("intake.value_number", name=value.name, number=f"{value.number:g}")
    if value.said and value.said != "null":
        return say("intake.value_nan", name=value.name, said=value.said)
    return say("intake.value_null", name=value.name)


def broken_fields(group: AlertGroup) -> list[str]:
    """Names of annotations and labels in which the rule's template was not filled."""
    found: dict[str, None] = {}
    for alert in group.alerts:
        for fields in (alert.annotations, alert.labels):
            found |= {name[:80]: None for name, text in fields.items() if _BROKEN.search(text)}
    return list(found)


def title_of(group: AlertGroup) -> Localized:
    """One line for people; says how many alerts there are where the sender delivered only some."""
    title = " ".join(group.title.split())
    if len(title) > _MOST_TITLE:
        title = title[: _MOST_TITLE - 1] + "…"
    if not group.truncated:
        return Localized.verbatim(title)
    delivered = len(group.alerts)
    count = say("intake.truncated_title", total=delivered + group.truncated, delivered=delivered)
    return Localized(f"{title} ({count.en})", f"{title}（{count.zh}）")


def scope_words(labels: Mapping[str, str]) -> str | None:
    """The labels that say where: node, replica, model, tenant, cluster and the like."""
    return ", ".join(f"{name}={labels[name]}" for name in _WHERE if labels.get(name)) or None


def _which(alert: Alert) -> str:
    """The alert's name and what tells it from its neighbours."""
    parts = [f"{name} {alert.labels[name]}" for name in _WHICH if alert.labels.get(name)]
    return " ".join([alert.name, *parts])[:200]


def texts(drafts: Sequence[Draft]) -> tuple[Localized, ...]:
    """The words of entries, to be said in the thread too."""
    return tuple(draft.text for draft in drafts)


def severity_of(word: str) -> Severity:
    """How bad an alert is, by its sender's word; sev3 where the word says nothing."""
    if word in set(Severity):
        return Severity(word)
    return _SEVERITIES.get(word.lower(), Severity.SEV3)
