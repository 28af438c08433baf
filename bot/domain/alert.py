"""A condition that monitoring reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339


class AlertStatus(StrEnum):
    """Firing or over."""

    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertValue:
    """What a rule measured under one name; without a `number`, `said` is what came instead (`NaN`), if anything."""

    name: str
    number: float | None = None
    said: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Strict JSON: a number is finite."""
        return {"name": self.name, "number": self.number, "said": self.said}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> AlertValue:
        """Reads `to_json`'s shape."""
        return cls(name=value["name"], number=value.get("number"), said=value.get("said"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert instance. `fingerprint` identifies its label set across repeats and senders.

    values: what the rule measured; empty when the sender could say it and did not, None when it never does.
    has_start: whether the sender itself said when it began. has_own_fingerprint: whether it named the fingerprint.
    """

    fingerprint: str
    status: AlertStatus
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    starts_at: datetime
    ends_at: datetime | None = None
    url: str | None = None
    values: tuple[AlertValue, ...] | None = None
    has_start: bool = True
    has_own_fingerprint: bool = True

    @property
    def name(self) -> str:
        """The alert rule's name, as Alertmanager or a platform before it calls it; else the labels themselves."""
        for key in ("alertname", "alert_name", "rule_name", "rule_id"):
            if name := self.labels.get(key, "").strip():
                return name
        return ", ".join(f"{key}={value}" for key, value in sorted(self.labels.items())) or "alert"

    @property
    def summary(self) -> str:
        """What the rule's author wrote for people; falls back to the name."""
        for key in ("summary", "title", "message", "description"):
            if text := self.annotations.get(key, "").strip():
                return text
        return self.name

    def to_json(self) -> dict[str, Any]:
        """What timeline entries and the alert store carry."""
        return {
            "fingerprint": self.fingerprint,
            "status": self.status.value,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "starts_at": to_rfc3339(self.starts_at),
            "ends_at": to_rfc3339(self.ends_at) if self.ends_at else None,
            "url": self.url,
            "values": None if self.values is None else [item.to_json() for item in self.values],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Alert:
        """Reads `to_json`'s shape."""
        return cls(
            fingerprint=value["fingerprint"],
            status=AlertStatus(value["status"]),
            labels=dict(value["labels"]),
            annotations=dict(value.get("annotations") or {}),
            starts_at=parse_rfc3339(value["starts_at"]),
            ends_at=parse_rfc3339(value["ends_at"]) if value.get("ends_at") else None,
            url=value.get("url"),
            values=(
                None
                if value.get("values") is None
                else tuple(AlertValue.from_json(item) for item in value["values"])
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertGroup:
    """What one notification carried: alerts that the sender itself grouped.

    `group_key` is the sender's own correlation key, `source` the intake that read it (`alertmanager`, …).
    `truncated` counts alerts that the sender left out. `silenced`: fingerprint to what keeps it silent at its sender.
    `acknowledged_by`: who took it on at the sender, when that is what the notification says.
    `unread`: why each alert of the notification that could not be read was left out.
    """

    group_key: str
    source: str
    status: AlertStatus
    alerts: tuple[Alert, ...]
    common_labels: Mapping[str, str] = field(default_factory=dict)
    common_annotations: Mapping[str, str] = field(default_factory=dict)
    external_url: str | None = None
    truncated: int = 0
    silenced: Mapping[str, str] = field(default_factory=dict)
    acknowledged_by: str | None = None
    unread: tuple[str, ...] = ()

    @property
    def intake(self) -> str:
        """Which way it came: a sender's webhook (`alertmanager`), or its message in a channel (`slack:alertmanager`)."""
        return f"slack:{self.source}" if self.group_key.startswith("slack:") else self.source

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that are on and may be heard."""
        return tuple(
            item
            for item in self.alerts
            if item.status is AlertStatus.FIRING and item.fingerprint not in self.silenced
        )

    @property
    def title(self) -> str:
        """One line for people: of the alert that began first, so that it is the same in whatever order they come."""
        for key in ("summary", "title"):
            if text := self.common_annotations.get(key, "").strip():
                return text
        told = self.firing or self.alerts
        if not told:
            return self.group_key
        return min(told, key=lambda alert: (alert.starts_at, alert.fingerprint)).summary
