"""What keeps an alert silent at its sender, and what is known of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """One silence as its sender has it. `by` and `comment` are whatever was typed there."""

    id: str
    by: str
    comment: str
    until: datetime

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "id": self.id,
            "by": self.by,
            "comment": self.comment,
            "until": to_rfc3339(self.until),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Silence:
        """Reads `to_json`'s shape."""
        return cls(
            id=value["id"],
            by=value["by"],
            comment=value["comment"],
            until=parse_rfc3339(value["until"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAlert:
    """An alert as its sender has it now; without `silences` it is heard."""

    fingerprint: str
    labels: Mapping[str, str]
    silences: tuple[Silence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """Which of an incident's alerts are silenced, by fingerprint.

    is_known: False when the sender did not answer; `silenced` then says nothing, not that all are heard.
    """

    silenced: Mapping[str, Silence] = field(default_factory=dict)
    is_known: bool = True
