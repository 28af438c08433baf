"""What earlier incidents have to do with this one, and whether this one is an exercise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedent:
    """An earlier incident that looks like this one; a likeness, never a claim about the cause.

    score: 0..1. why: what is alike: `signature`, `service`, `words`.
    cause: what a person confirmed then, None where nobody did.
    """

    id: str
    score: float
    why: tuple[str, ...]
    cause: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "id": self.id,
            "score": round(self.score, 4),
            "why": list(self.why),
            "cause": self.cause,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Precedent:
        """Reads `to_json`'s shape."""
        return cls(
            id=str(value["id"]),
            score=float(value["score"]),
            why=tuple(value.get("why") or ()),
            cause=value.get("cause"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """How often the same thing happened before this incident.

    by: what was the same: `signature` of the alert, or the confirmed `cause`.
    days: how far back was counted. incidents: the earlier ones, newest first.
    """

    by: str
    days: int
    incidents: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many earlier ones."""
        return len(self.incidents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """An exercise: nothing in it is real, and nothing of it is counted.

    cause: what is played. seed: of the generated values. case: the saved case that is replayed, None when generated.
    """

    cause: str
    seed: int
    case: str | None = None
