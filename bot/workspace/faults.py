"""Trouble on request: what the next calls and deliveries do instead of working."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What goes wrong."""

    ERROR = "error"  # the Web API answers this error code
    STATUS = "status"  # the Web API answers this HTTP status
    DELAY = "delay"  # a call or delivery waits this long first
    DROP_CALL = "drop_call"  # the connection breaks before the call has any effect
    LOST_ANSWER = "lost_answer"  # the call takes effect, its answer breaks off
    DROP_EVENT = "drop_event"  # an event is never sent
    DUPLICATE_EVENT = "duplicate_event"  # an event is sent twice
    REORDER_EVENTS = "reorder_events"  # an event waits until the next one has gone out
    LOST_ACK = "lost_ack"  # the app's answer to a delivery is taken as never arrived


@dataclass(slots=True, kw_only=True)
class Fault:
    """One order for trouble; `target` is a method, an event type, or `*`."""

    kind: FaultKind
    target: str = "*"
    times: int = 1
    error: str = "internal_error"
    status: int = 500
    seconds: float = 0.0
    retry_after_seconds: int | None = None


class FaultPlan:
    """The orders that are still open, used up one call at a time."""

    def __init__(self) -> None:
        self._open: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Orders trouble."""
        self._open.append(fault)

    def clear(self) -> None:
        """Calls every order off."""
        self._open.clear()

    def take(self, kind: FaultKind, target: str) -> Fault | None:
        """The first open order of that kind for that target, counted as used once."""
        for fault in self._open:
            if fault.kind is kind and fault.target in ("*", target):
                fault.times -= 1
                if fault.times <= 0:
                    self._open.remove(fault)
                return fault
        return None
