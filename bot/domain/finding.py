"""What a probe measured on a node, in the shape that crosses the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339

UNANSWERED = "unanswered"
"""Key of a result's `data` that the bot itself sets where no agent answered: why (a `bot.errors.Reason`)."""


class ProbeStatus(StrEnum):
    """How a probe run ended. Only `OK` says anything about the machine's health."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    DENIED = "denied"
    TIMEOUT = "timeout"
    ERROR = "error"


class FindingSeverity(StrEnum):
    """Graded on the node alone; it does not tell cause from bystander."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One judged observation; `id` is fixed (for example `disk.pressure`), an `*.ok` id means checked and clean."""

    id: str
    severity: FindingSeverity
    summary: str
    value: float | int | str | None = None
    unit: str | None = None
    threshold: float | int | str | None = None

    def to_json(self) -> dict[str, Any]:
        """The wire shape of the contract."""
        return {
            "id": self.id,
            "severity": self.severity.value,
            "summary": self.summary,
            "value": self.value,
            "unit": self.unit,
            "threshold": self.threshold,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Finding:
        """Reads the wire shape.

        Raises:
            KeyError: no id.
            ValueError: a severity outside the closed set.
        """
        return cls(
            id=str(value["id"]),
            severity=FindingSeverity(value.get("severity", "info")),
            summary=str(value.get("summary", "")),
            value=value.get("value"),
            unit=value.get("unit"),
            threshold=value.get("threshold"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One probe run on one node.

    `data` holds numbers whose names carry their unit; a field that could not be read is
    `{"state": "not_supported|error|timeout|not_configured|insane", "detail": …}` instead of the number.
    """

    probe: str
    node: str
    status: ProbeStatus
    started_at: datetime
    duration_seconds: float
    findings: tuple[Finding, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    truncated: bool = False
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The wire shape of the contract."""
        return {
            "probe": self.probe,
            "node": self.node,
            "status": self.status.value,
            "started_at": to_rfc3339(self.started_at),
            "duration_s": self.duration_seconds,
            "findings": [finding.to_json() for finding in self.findings],
            "data": dict(self.data),
            "truncated": self.truncated,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProbeResult:
        """Reads the wire shape.

        Raises:
            KeyError: a required key is missing.
            ValueError: a status or severity outside its closed set, or a time that is none.
        """
        return cls(
            probe=str(value["probe"]),
            node=str(value["node"]),
            status=ProbeStatus(value["status"]),
            started_at=parse_rfc3339(value["started_at"]),
            duration_seconds=float(value.get("duration_s") or 0.0),
            findings=tuple(Finding.from_json(item) for item in value.get("findings") or ()),
            data=dict(value.get("data") or {}),
            truncated=bool(value.get("truncated", False)),
            error=value.get("error"),
        )
