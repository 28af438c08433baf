"""A bounded record of what went over the wire, both ways, for the page's inspector and for tests."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.workspace.records import Json

_KEPT = 2_000
_BODY_CHARACTERS = 20_000
_SECRET_KEYS = frozenset({"token", "ticket"})


class Direction(StrEnum):
    """Who called whom."""

    FROM_APP = "from_app"
    TO_APP = "to_app"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One call and its answer; `status` is an HTTP status, or 0 where nothing came back."""

    seq: int
    at: float
    direction: Direction
    what: str
    request: Any
    status: int
    answer: Any
    duration_seconds: float
    note: str = ""

    def to_json(self) -> Json:
        """The shape of `/control/traffic`."""
        return {
            "seq": self.seq,
            "at": self.at,
            "direction": self.direction.value,
            "what": self.what,
            "request": self.request,
            "status": self.status,
            "answer": self.answer,
            "duration_s": self.duration_seconds,
            "note": self.note,
        }


class Traffic:
    """The last exchanges, oldest first. Tokens are left out and long bodies are cut."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._seq = 0
        self._kept: deque[Exchange] = deque(maxlen=_KEPT)
        self._listeners: list[Callable[[Exchange], None]] = []

    def listen(self, listener: Callable[[Exchange], None]) -> None:
        """Calls `listener` with every exchange."""
        self._listeners.append(listener)

    def record(
        self,
        direction: Direction,
        what: str,
        request: Any,
        *,
        status: int,
        answer: Any,
        duration_seconds: float = 0.0,
        note: str = "",
    ) -> None:
        """Keeps one exchange."""
        self._seq += 1
        exchange = Exchange(
            seq=self._seq,
            at=self._now(),
            direction=direction,
            what=what,
            request=_presentable(request),
            status=status,
            answer=_presentable(answer),
            duration_seconds=round(duration_seconds, 6),
            note=note,
        )
        self._kept.append(exchange)
        for listener in self._listeners:
            listener(exchange)

    def after(self, seq: int) -> list[Exchange]:
        """The kept exchanges later than `seq`."""
        return [exchange for exchange in self._kept if exchange.seq > seq]

    def clear(self) -> None:
        """Forgets all; the numbering goes on."""
        self._kept.clear()


def _presentable(value: Any) -> Any:
    if isinstance(value, dict):
        shown = {key: inner for key, inner in value.items() if key not in _SECRET_KEYS}
        text = json.dumps(shown, ensure_ascii=False, default=str)
        if len(text) > _BODY_CHARACTERS:
            return f"{text[:_BODY_CHARACTERS]}… ({len(text)} characters)"
        # A copy: the live record may change after it was sent.
        return json.loads(text)
    if isinstance(value, str) and len(value) > _BODY_CHARACTERS:
        return f"{value[:_BODY_CHARACTERS]}… ({len(value)} characters)"
    return value
