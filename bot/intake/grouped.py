"""The body that Alertmanager and Grafana share: a group with a status, labels, and a list of alerts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.domain.alert import Alert, AlertGroup, AlertStatus, AlertValue
from bot.intake.reading import PayloadError, link_of, object_of, text_of, texts_of, time_of

# How Alertmanager's own API, and tools that forward its answers, call an alert that must not notify.
_SILENT = ("suppressed", "silenced", "inhibited", "muted")

Values = Callable[[Mapping[str, Any]], tuple[AlertValue, ...] | None]


def no_values(_: Mapping[str, Any]) -> None:
    """Alertmanager sends no values beside the labels."""
    return


def read_group(
    body: object, source: str, received_at: datetime, *, values: Values = no_values
) -> AlertGroup:
    """Reads one notification; unknown fields are ignored, known ones checked.

    received_at: stands in for a start or an end that the sender left out.
    values: reads what the rule measured, where a sender says it.

    Raises:
        PayloadError: not the shape; the message names the field.
    """
    if not isinstance(body, Mapping):
        raise PayloadError(f"the body is no JSON object; send {source}'s webhook body")
    items = body.get("alerts")
    if not isinstance(items, list) or not items:
        raise PayloadError("alerts: must be a list with at least one alert")
    common_labels = texts_of(body.get("commonLabels"), "commonLabels")
    group_labels = texts_of(body.get("groupLabels"), "groupLabels")
    root = body.get("status")
    # What an alert without a status of its own is; unknown is never over.
    group_status = "resolved" if root == AlertStatus.RESOLVED.value else "firing"
    alerts, silenced, unread = _alerts(items, group_status, received_at, values)
    is_firing = any(alert.status is AlertStatus.FIRING for alert in alerts)
    truncated = body.get("truncatedAlerts")
    return AlertGroup(
        group_key=_group_key(body, group_labels or common_labels, alerts),
        source=source,
        status=AlertStatus.FIRING if is_firing else AlertStatus.RESOLVED,
        alerts=tuple(alerts),
        common_labels=common_labels or _shared(alerts),
        common_annotations=texts_of(body.get("commonAnnotations"), "commonAnnotations"),
        external_url=link_of(body.get("externalURL")),
        truncated=_count(truncated),
        silenced=silenced,
        unread=unread,
    )


def _alerts(
    items: Sequence[object], group_status: str, received_at: datetime, values: Values
) -> tuple[list[Alert], dict[str, str], tuple[str, ...]]:
    """The alerts, what keeps some of them silent, and what is wrong with those that cannot be read.

    One that cannot be read takes none of the others along. Two of one fingerprint are the newer one, unless their
    labels differ: then the sender's fingerprint says nothing.

    Raises:
        PayloadError: none of them can be read.
    """
    found: dict[str, Alert] = {}
    silenced: dict[str, str] = {}
    unread: list[PayloadError] = []
    for place, item in enumerate(items):
        where = f"alerts[{place}]"
        try:
            alert, why = _alert(object_of(item, where), where, group_status, received_at, values)
        except PayloadError as error:
            unread.append(error)
            continue
        known = found.get(alert.fingerprint)
        if known is not None and known.labels != alert.labels:
            own = fingerprint_of(alert.labels)
            alert = replace(alert, fingerprint=own, has_own_fingerprint=False)
            known = found.get(own)
        if known is not None and _moment(known) > _moment(alert):
            continue
        found[alert.fingerprint] = alert
        silenced.pop(alert.fingerprint, None)
        if why is not None:
            silenced[alert.fingerprint] = why
    if not found:
        raise unread[0]
    return list(found.values()), silenced, tuple(str(error) for error in unread)


def _moment(alert: Alert) -> tuple[datetime, datetime]:
    """By which of two notices of one alert the newer is told: its episode, then whether that is over."""
    return alert.starts_at, alert.ends_at or alert.starts_at


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """Identifies a label set when the sender gave no fingerprint: 16 hex digits over the sorted labels."""
    text = json.dumps(sorted(labels.items()), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _group_key(body: Mapping[str, Any], labels: Mapping[str, str], alerts: list[Alert]) -> str:
    """The sender's own key; without one, what stays the same from one delivery of the group to the next."""
    given = body.get("groupKey")
    if isinstance(given, str) and given:
        return text_of(given)
    if labels:
        return json.dumps(labels, sort_keys=True, ensure_ascii=False)
    return min(alert.fingerprint for alert in alerts)


def _alert(
    value: Mapping[str, Any], where: str, group_status: str, received_at: datetime, values: Values
) -> tuple[Alert, str | None]:
    labels = texts_of(value.get("labels"), f"{where}.labels")
    status, silent = _status(value.get("status") or group_status, f"{where}.status")
    start = time_of(value.get("startsAt"), f"{where}.startsAt")
    starts_at = start or received_at
    ends_at = None
    if status is AlertStatus.RESOLVED:
        # Clocks differ: an end before the start would be a negative duration.
        end = time_of(value.get("endsAt"), f"{where}.endsAt") or received_at
        ends_at = max(end, starts_at)
    else:
        time_of(value.get("endsAt"), f"{where}.endsAt")
    given = value.get("fingerprint")
    is_given = isinstance(given, str) and bool(given.strip())
    alert = Alert(
        fingerprint=text_of(given, most=200) if is_given else fingerprint_of(labels),
        status=status,
        labels=labels,
        annotations=texts_of(value.get("annotations"), f"{where}.annotations"),
        starts_at=starts_at,
        ends_at=ends_at,
        url=link_of(value.get("generatorURL")),
        values=values(value),
        has_start=start is not None,
        has_own_fingerprint=is_given,
    )
    return alert, silent


def _status(value: object, where: str) -> tuple[AlertStatus, str | None]:
    """Firing or over, and what keeps it silent at its sender, if anything does."""
    if isinstance(value, Mapping):
        # The shape of Alertmanager's API: {"state": "suppressed", "silencedBy": [...], "inhibitedBy": [...]}.
        state = value.get("state")
        by = [
            f"{name} {text_of(item, most=80)}"
            for name in ("silencedBy", "inhibitedBy", "mutedBy")
            if isinstance(listed := value.get(name), list)
            for item in listed
        ]
        if state in _SILENT:
            return AlertStatus.FIRING, ", ".join(by[:5]) or text_of(state)
        if state in ("active", "unprocessed", "firing"):
            return AlertStatus.FIRING, None
        value = state
    if isinstance(value, str):
        if value in _SILENT:
            return AlertStatus.FIRING, value
        if value in (AlertStatus.FIRING.value, AlertStatus.RESOLVED.value):
            return AlertStatus(value), None
    shown = text_of(value, most=60)
    raise PayloadError(f"{where}: must be firing or resolved, not {shown!r}")


def _shared(alerts: list[Alert]) -> dict[str, str]:
    first = alerts[0].labels
    return {
        key: value
        for key, value in first.items()
        if all(alert.labels.get(key) == value for alert in alerts)
    }


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return max(0, min(value, 1_000_000))
