"""Something that somebody changed: the usual trigger of an incident, and not always the newest one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339


class ChangeKind(StrEnum):
    """What was changed."""

    DEPLOY = "deploy"
    CONFIG = "config"
    DEPENDENCY = "dependency"
    MODEL = "model"
    DATA = "data"
    INFRA = "infra"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change event, in the shape of `POST /webhooks/changes`."""

    id: str
    kind: ChangeKind
    service: str | None
    summary: str
    at: datetime
    by: str | None = None
    url: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The webhook's shape."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "service": self.service,
            "summary": self.summary,
            "at": to_rfc3339(self.at),
            "by": self.by,
            "url": self.url,
            "details": dict(self.details),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Change:
        """Reads the webhook's shape.

        Raises:
            KeyError: id, kind or at is missing.
            ValueError: a kind outside the closed set, or a time without zone.
        """
        details = value.get("details")
        return cls(
            id=str(value["id"]),
            kind=ChangeKind(value["kind"]),
            service=str(value["service"]) if value.get("service") else None,
            summary=str(value.get("summary") or ""),
            at=parse_rfc3339(str(value["at"])),
            by=str(value["by"]) if value.get("by") else None,
            url=str(value["url"]) if value.get("url") else None,
            details=dict(details) if isinstance(details, Mapping) else {},
        )
