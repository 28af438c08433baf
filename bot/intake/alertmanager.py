"""Alertmanager's webhook, version 4."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bot.domain.alert import Alert, AlertGroup, AlertStatus
from bot.domain.instant import parse_rfc3339
from bot.errors import BotError, Reason

# Alertmanager writes this for an alert that has not ended.
_NO_END_YEAR = 1


class PayloadError(BotError):
    """A body that will never do: the sender must not repeat it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason=Reason.MALFORMED)


def parse(body: object) -> AlertGroup:
    """Reads one notification.

    Unknown fields are ignored, known ones checked: the sender may be newer than this, or no Alertmanager at all.

    Raises:
        PayloadError: not the webhook's shape; the message names the field.
    """
    if not isinstance(body, Mapping):
        raise PayloadError("the body is no JSON object; send Alertmanager's webhook v4 body")
    alerts = body.get("alerts")
    if not isinstance(alerts, list) or not alerts:
        raise PayloadError("alerts: must be a list with at least one alert")
    common_labels = _texts(body.get("commonLabels"), "commonLabels")
    parsed = tuple(_alert(item, f"alerts[{place}]") for place, item in enumerate(alerts))
    status = body.get("status")
    if status not in set(AlertStatus):
        status = (
            AlertStatus.FIRING
            if any(item.status is AlertStatus.FIRING for item in parsed)
            else AlertStatus.RESOLVED
        )
    group_key = body.get("groupKey")
    if not isinstance(group_key, str) or not group_key:
        labels = _texts(body.get("groupLabels"), "groupLabels") or common_labels
        group_key = json.dumps(labels, sort_keys=True) if labels else parsed[0].fingerprint
    truncated = body.get("truncatedAlerts")
    return AlertGroup(
        group_key=group_key,
        source="alertmanager",
        status=AlertStatus(status),
        alerts=parsed,
        common_labels=common_labels,
        common_annotations=_texts(body.get("commonAnnotations"), "commonAnnotations"),
        external_url=body["externalURL"] if isinstance(body.get("externalURL"), str) else None,
        truncated=truncated if isinstance(truncated, int) and truncated > 0 else 0,
    )


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """Identifies a label set when the sender gave no fingerprint: 16 hex digits over the sorted labels."""
    text = json.dumps(sorted(labels.items()), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _alert(value: Any, where: str) -> Alert:
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: must be an object")
    labels = _texts(value.get("labels"), f"{where}.labels")
    status = value.get("status", "firing")
    if status not in set(AlertStatus):
        raise PayloadError(f"{where}.status: must be firing or resolved, not {status!r}")
    starts_at = _time(value.get("startsAt"), f"{where}.startsAt") or datetime.now(UTC)
    ends_at = _time(value.get("endsAt"), f"{where}.endsAt")
    fingerprint = value.get("fingerprint")
    url = value.get("generatorURL")
    return Alert(
        fingerprint=fingerprint
        if isinstance(fingerprint, str) and fingerprint
        else fingerprint_of(labels),
        status=AlertStatus(status),
        labels=labels,
        annotations=_texts(value.get("annotations"), f"{where}.annotations"),
        starts_at=starts_at,
        ends_at=ends_at if status == AlertStatus.RESOLVED.value else None,
        url=url if isinstance(url, str) and url.startswith(("http://", "https://")) else None,
    )


def _time(value: object, where: str) -> datetime | None:
    if value in (None, ""):
        return None
    try:
        at = parse_rfc3339(str(value))
    except ValueError as error:
        raise PayloadError(f"{where}: {value!r} is no RFC 3339 time") from error
    return None if at.year <= _NO_END_YEAR else at


def _texts(value: object, where: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: must be an object of strings")
    return {str(key): str(item) for key, item in value.items() if item is not None}
