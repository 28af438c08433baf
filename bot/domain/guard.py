"""What kept a ranking honest: each time a guard of the engine stepped in, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.domain.text import Localized


class GuardKind(StrEnum):
    """Which guard stepped in."""

    TIME_LOST = "time_lost"
    CO_MOVEMENT = "co_movement"
    REFUTED = "refuted"
    UNSEEN_BELOW = "unseen_below"
    MOVED_FIRST = "moved_first"
    BEGAN_LATE = "began_late"
    UNORDERED = "unordered"
    OLD_CHANGE = "old_change"
    CHANGES_SEARCHED = "changes_searched"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardNote:
    """One sentence of a guard; `causes` are the candidates that it is about."""

    kind: GuardKind
    text: Localized
    causes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "kind": self.kind.value,
            "text": self.text.to_json(),
            "causes": list(self.causes),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> GuardNote:
        """Reads `to_json`'s shape."""
        return cls(
            kind=GuardKind(value["kind"]),
            text=Localized.from_json(value["text"]),
            causes=tuple(value.get("causes") or ()),
        )
