"""PagerDuty's webhook, version 3: one event about one of its incidents, found by `data.id`.

`incident_key` is null for several integrations, so it never is the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.domain.alert import Alert, AlertGroup, AlertStatus
from bot.intake.reading import PayloadError, link_of, object_of, text_of, time_of

# Events that say that the incident is on; a reopened one begins anew.
_ON = (
    "incident.triggered",
    "incident.acknowledged",
    "incident.unacknowledged",
    "incident.escalated",
    "incident.reassigned",
    "incident.delegated",
    "incident.priority_updated",
    "incident.reopened",
)
_OVER = "incident.resolved"
_PRIORITY = re.compile(r"^\s*(?:P|SEV)[-\s]?([1-4])\b", re.IGNORECASE)


def parse(body: object, received_at: datetime) -> AlertGroup | None:
    """Reads one event; None for one that says nothing about an alert (a ping, a note, a status update).

    Raises:
        PayloadError: not the webhook's shape; the message names the field.
    """
    if not isinstance(body, Mapping):
        raise PayloadError("the body is no JSON object; send PagerDuty's webhook v3 body")
    event = object_of(body.get("event"), "event")
    kind = event.get("event_type")
    if not isinstance(kind, str) or not kind:
        raise PayloadError("event.event_type: is missing")
    if kind != _OVER and kind not in _ON:
        return None
    data = object_of(event.get("data"), "event.data")
    identity = data.get("id")
    if not isinstance(identity, str) or not identity.strip():
        raise PayloadError("event.data.id: is missing")
    happened = time_of(event.get("occurred_at"), "event.occurred_at") or received_at
    created = time_of(data.get("created_at"), "event.data.created_at")
    start = happened if kind == "incident.reopened" else created
    status = AlertStatus.RESOLVED if kind == _OVER else AlertStatus.FIRING
    starts_at = start or happened
    key = text_of(identity, most=200)
    title = (
        text_of(data.get("title"), most=300).strip() or f"PagerDuty incident {_number(data, key)}"
    )
    labels = _labels(data, title)
    url = link_of(data.get("html_url"))
    alert = Alert(
        fingerprint=f"pagerduty:{key}",
        status=status,
        labels=labels,
        annotations={"summary": title},
        starts_at=starts_at,
        ends_at=max(happened, starts_at) if status is AlertStatus.RESOLVED else None,
        url=url,
        has_start=start is not None,
    )
    return AlertGroup(
        group_key=key,
        source="pagerduty",
        status=status,
        alerts=(alert,),
        common_labels=labels,
        common_annotations={"summary": title},
        external_url=url,
        acknowledged_by=_who(event) if kind == "incident.acknowledged" else None,
    )


def _labels(data: Mapping[str, Any], title: str) -> dict[str, str]:
    labels = {"alertname": title[:200]}
    if service := _summary(data.get("service")):
        labels["service"] = service
    priority = _summary(data.get("priority"))
    if priority:
        labels["priority"] = priority
    if found := _PRIORITY.match(priority):
        labels["severity"] = f"sev{found.group(1)}"
    elif data.get("urgency") in ("high", "low"):
        labels["severity"] = "critical" if data["urgency"] == "high" else "warning"
    return labels


def _summary(value: object) -> str:
    if not isinstance(value, Mapping):
        return ""
    return text_of(value.get("summary"), most=200).strip()


def _number(data: Mapping[str, Any], key: str) -> str:
    number = data.get("number")
    return f"#{number}" if isinstance(number, int) and not isinstance(number, bool) else key


def _who(event: Mapping[str, Any]) -> str:
    return _summary(event.get("agent")) or "PagerDuty"
