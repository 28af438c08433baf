"""What reaches the port before there is a request: bytes that are no HTTP, heads without end, connections held open.

uvicorn answers such bytes by itself or waits for them for ever, and no application ever hears of it. Here each is one
refusal that the audit tells, and everything that a caller may hold open is bounded in time and number.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_LIMIT_BYTES = 16 * 1024
"""Our judgement: a request of the bot has a head of about 1 KiB, and each connection may hold this much memory."""
_PIECE_BYTES = 4096
ARRIVAL_SECONDS = 10.0
"""Our judgement: twice what a body may take; a request has to be here whole by then, however it drips."""
DEPARTURE_SECONDS = 15.0
"""Our judgement: how long a caller may leave its answer unread; a piece of a profile takes 16 KiB a second so."""


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """A connection that ends without a request. `status` is what it is answered, None where nobody listens."""

    remote: str | None
    reason: str
    status: int | None


@dataclass(slots=True)
class Doorkeeper:
    """What all connections share: how many there may be, which of them wait, and who is told of one turned away.

    `waiting` holds those that owe a request, the longest first.
    """

    limit: int
    tell: Callable[[TurnedAway], Coroutine[None, None, None]]
    waiting: dict[WatchedProtocol, None] = field(default_factory=dict)

    def protocol(self, *args: Any, **kwargs: Any) -> WatchedProtocol:
        """Makes the protocol of one connection; uvicorn's own arguments are handed through."""
        return WatchedProtocol(*args, keeper=self, **kwargs)


class WatchedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which in addition ends what takes too long and tells what it ends."""

    def __init__(self, *args: Any, keeper: Doorkeeper, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._keeper = keeper
        self._phase: tuple[object, str] = (None, "")
        self._arrival: asyncio.TimerHandle | None = None
        self._departure: asyncio.TimerHandle | None = None
        self._is_over = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request; with too many open, the one that has waited longest goes."""
        super().connection_made(transport)
        self._keeper.waiting[self] = None
        self._watch()
        if len(self.connections) > self._keeper.limit:
            # The newest is the likeliest to be the bot: whoever holds connections open has held them for longer.
            next(iter(self._keeper.waiting)).turn_away("too_many_connections", 503)

    def data_received(self, data: bytes) -> None:
        """Reads on, unless the connection is being ended."""
        # In pieces, since the parser bounds only a head that is not whole yet.
        for start in range(0, len(data), _PIECE_BYTES):
            if self._is_over:
                return
            super().data_received(data[start : start + _PIECE_BYTES])
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection; one that ends inside a head is told, for somebody tried something."""
        is_broken = self._is_between_requests and self._waits_for() == "head"
        if is_broken and not self._is_over:
            self._own(self._keeper.tell(self._turned_away("head_broken", None)))
        self._end()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        """Called by uvicorn while it handles bytes that are no HTTP."""
        is_too_large = getattr(sys.exception(), "error_status_hint", 0) == 431
        self.turn_away(*(("head_too_large", 431) if is_too_large else ("bad_http", 400)))

    def on_response_complete(self) -> None:
        """The next request may come."""
        if not self._is_over:
            self._keeper.waiting[self] = None
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The caller does not read its answer: that too is bounded."""
        super().pause_writing()
        self._departure = self.loop.call_later(DEPARTURE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The caller reads again."""
        super().resume_writing()
        if self._departure is not None:
            self._departure.cancel()

    def turn_away(self, reason: str, status: int) -> None:
        """Ends the connection: told first, then answered, so that whoever reads the answer finds the line."""
        if self._is_over:
            return
        is_untold = self._is_between_requests
        self._end()
        self.flow.pause_reading()
        if is_untold:
            self._own(self._tell_and_answer(self._turned_away(reason, status)))
        else:
            # The application refuses what broke off, and has its own line for it.
            self._answer(reason, status)

    async def _tell_and_answer(self, away: TurnedAway) -> None:
        await self._keeper.tell(away)
        self._answer(away.reason, away.status or 400)

    def _answer(self, reason: str, status: int) -> None:
        """Answers, unless an answer has begun, and closes."""
        if self.transport.is_closing():
            return
        text = f"{reason}\n".encode()
        headers = [
            ("content-type", "text/plain; charset=utf-8"),
            ("content-length", str(len(text))),
            ("connection", "close"),
        ]
        response = h11.Response(status_code=status, headers=headers)
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            for event in (response, h11.Data(data=text), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def _is_between_requests(self) -> bool:
        """True while the application knows of no request on this connection."""
        return self.conn.our_state is h11.IDLE

    def _waits_for(self) -> str:
        """What the caller owes: `start` or `next` (a request), `head` (the rest of it), `body`; empty for nothing."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            return "body"
        if state is not h11.IDLE:
            return ""
        if self.conn.trailing_data[0]:
            return "head"
        return "next" if self.cycle else "start"

    def _watch(self) -> None:
        """One timer for each thing owed, not renewed by the bytes that drip in."""
        if self._is_over:
            return
        if not self._is_between_requests and not self.cycle.response_complete:
            self._keeper.waiting.pop(self, None)
        phase = (self.cycle, self._waits_for())
        if phase == self._phase:
            return
        self._phase = phase
        if self._arrival is not None:
            self._arrival.cancel()
        if phase[1]:
            limit = self.timeout_keep_alive if phase[1] == "next" else ARRIVAL_SECONDS
            self._arrival = self.loop.call_later(limit, self._overdue)

    def _overdue(self) -> None:
        match self._phase[1]:
            case "start":
                self.turn_away("no_request", 408)
            case "head":
                self.turn_away("head_too_slow", 408)
            case _:
                self.transport.close()

    def _turned_away(self, reason: str, status: int | None) -> TurnedAway:
        return TurnedAway(self.client[0] if self.client else None, reason, status)

    def _own(self, work: Coroutine[None, None, None]) -> None:
        # Among uvicorn's own tasks, so that a stop waits for the line.
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _end(self) -> None:
        self._is_over = True
        self._keeper.waiting.pop(self, None)
        for timer in (self._arrival, self._departure):
            if timer is not None:
                timer.cancel()
