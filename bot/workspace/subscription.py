"""Slack's two limits on event delivery: how many an app gets in an hour, and how many it may fail to take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum

from bot.blockkit import limits

_HOUR_SECONDS = 3600.0
_MINUTE_SECONDS = 60.0


class Verdict(StrEnum):
    """What becomes of the next event."""

    DELIVER = "deliver"
    RATE_LIMITED = "rate_limited"
    SWITCHED_OFF = "switched_off"


class Subscription:
    """The app's event subscription. It is switched off when nearly every attempt of an hour fails, and only by hand on.

    per_hour: events that the app gets in an hour. floor: attempts in an hour below which it is never switched off.
    """

    def __init__(self, now: Callable[[], float], *, per_hour: int, floor: int) -> None:
        self._now = now
        self._per_hour = per_hour
        self._floor = floor
        self._events: deque[float] = deque()
        self._attempts: deque[tuple[float, bool]] = deque()
        self._failed = 0
        self._told_minute = -1
        self._listeners: list[Callable[[], None]] = []
        self.is_on = True

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener` whenever delivery goes off or on."""
        self._listeners.append(listener)

    def admit(self) -> Verdict:
        """Whether one more event goes out; one that does is counted."""
        if not self.is_on:
            return Verdict.SWITCHED_OFF
        now = self._now()
        while self._events and self._events[0] <= now - _HOUR_SECONDS:
            self._events.popleft()
        if len(self._events) >= self._per_hour:
            return Verdict.RATE_LIMITED
        self._events.append(now)
        return Verdict.DELIVER

    def minute_to_tell(self) -> int | None:
        """The minute (epoch seconds) that the app is told it was limited in; None where it was told already."""
        minute = int(self._now() // _MINUTE_SECONDS * _MINUTE_SECONDS)
        if minute == self._told_minute:
            return None
        self._told_minute = minute
        return minute

    def note(self, *, is_taken: bool) -> bool:
        """Counts an attempt, a repeated one too; True where this one switched the subscription off."""
        now = self._now()
        while self._attempts and self._attempts[0][0] <= now - _HOUR_SECONDS:
            _, was_taken = self._attempts.popleft()
            self._failed -= not was_taken
        self._attempts.append((now, is_taken))
        self._failed += not is_taken
        total = len(self._attempts)
        if self.is_on and total >= self._floor and self._failed >= total * limits.FAILURE_RATIO:
            self._turn(is_on=False)
            return True
        return False

    def switch_on(self) -> None:
        """What the app's owner does in the app's settings; the count begins anew."""
        self._attempts.clear()
        self._failed = 0
        self._turn(is_on=True)

    def _turn(self, *, is_on: bool) -> None:
        self.is_on = is_on
        for listener in self._listeners:
            listener()
