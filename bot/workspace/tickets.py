"""Short-lived permissions: trigger ids, response URLs, socket tickets, upload URLs."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from bot.blockkit import limits

_SOCKET_TICKET_SECONDS = 30.0
# Old permissions are forgotten beyond this many, so that a long run does not grow for ever.
_KEPT = 5_000

T = TypeVar("T")


class TriggerState(StrEnum):
    """Whether a trigger id opens a view; the others are Slack's error codes."""

    GOOD = "good"
    INVALID = "invalid_trigger_id"
    EXPIRED = "expired_trigger_id"
    EXCHANGED = "exchanged_trigger_id"


@dataclass(slots=True, kw_only=True)
class Trigger:
    """The right to open one view for one person soon after what they did."""

    id: str
    user: str
    issued_at: float
    channel: str | None
    view_id: str | None
    is_used: bool = False


@dataclass(slots=True, kw_only=True)
class ResponseUrl:
    """The right to answer five times within half an hour.

    message_ts: the message whose action this came from; None for a slash command, which has nothing to replace.
    """

    id: str
    user: str
    channel: str
    issued_at: float
    message_ts: str | None
    thread_ts: str | None
    uses: int = 0


@dataclass(slots=True, kw_only=True)
class Upload:
    """A place where one file's bytes may be sent, once."""

    file_id: str
    name: str
    length: int
    alt_text: str | None
    content: bytes | None = None


class Tickets:
    """Every open permission of the workspace."""

    def __init__(self, now: Callable[[], float], *, trigger_seconds: float) -> None:
        self._now = now
        self._trigger_seconds = trigger_seconds
        self._triggers: dict[str, Trigger] = {}
        self._responses: dict[str, ResponseUrl] = {}
        self._sockets: dict[str, float] = {}
        self.uploads: dict[str, Upload] = {}

    def trigger(self, user: str, *, channel: str | None = None, view_id: str | None = None) -> str:
        """A trigger id for what a person just did."""
        now = self._now()
        trigger = Trigger(
            id=f"{int(now * 1000)}.{secrets.randbelow(10**12):012d}.{secrets.token_hex(16)}",
            user=user,
            issued_at=now,
            channel=channel,
            view_id=view_id,
        )
        _keep(self._triggers, trigger.id, trigger)
        return trigger.id

    def redeem(self, trigger_id: str) -> tuple[TriggerState, Trigger | None]:
        """Uses a trigger id up."""
        trigger = self._triggers.get(trigger_id)
        if trigger is None:
            return TriggerState.INVALID, None
        if trigger.is_used:
            return TriggerState.EXCHANGED, None
        if self._now() - trigger.issued_at > self._trigger_seconds:
            return TriggerState.EXPIRED, None
        trigger.is_used = True
        return TriggerState.GOOD, trigger

    def response_url(
        self,
        user: str,
        channel: str,
        *,
        message_ts: str | None = None,
        thread_ts: str | None = None,
    ) -> ResponseUrl:
        """A response URL for what a person just did."""
        entry = ResponseUrl(
            id=secrets.token_urlsafe(18),
            user=user,
            channel=channel,
            issued_at=self._now(),
            message_ts=message_ts,
            thread_ts=thread_ts,
        )
        _keep(self._responses, entry.id, entry)
        return entry

    def use_response(self, response_id: str) -> ResponseUrl | None:
        """A response URL that still works, counted as used once more; else None."""
        entry = self._responses.get(response_id)
        if entry is None or entry.uses >= limits.RESPONSE_URL_USES:
            return None
        if self._now() - entry.issued_at > limits.RESPONSE_URL_SECONDS:
            return None
        entry.uses += 1
        return entry

    def socket(self) -> str:
        """A ticket for one Socket Mode connection."""
        ticket = secrets.token_hex(16)
        self._sockets[ticket] = self._now()
        return ticket

    def redeem_socket(self, ticket: str) -> bool:
        """Whether the ticket admits a connection; it never does so twice."""
        issued_at = self._sockets.pop(ticket, None)
        return issued_at is not None and self._now() - issued_at <= _SOCKET_TICKET_SECONDS


def _keep(held: dict[str, T], key: str, value: T) -> None:
    held[key] = value
    while len(held) > _KEPT:
        del held[next(iter(held))]
