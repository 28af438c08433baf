"""The workspace's clock: real time plus whatever a test has moved it by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Clock:
    """Epoch seconds that run with real time and can be moved forward.

    Retries, trigger ids, response URLs and rate limits all follow it, so a test reaches "five minutes later"
    in one call.
    """

    def __init__(self, real: Callable[[], float] = time.time) -> None:
        self._real = real
        self._offset_seconds = 0.0
        self._moved = asyncio.Condition()

    def now(self) -> float:
        """Epoch seconds."""
        return self._real() + self._offset_seconds

    async def advance(self, seconds: float) -> None:
        """Moves the clock forward and wakes whoever waits for the time in between.

        Raises:
            ValueError: backwards; message ids must keep rising.
        """
        if seconds < 0:
            raise ValueError(f"the clock only moves forward, not by {seconds} s")
        async with self._moved:
            self._offset_seconds += seconds
            self._moved.notify_all()

    async def sleep_until(self, at: float) -> None:
        """Returns once the clock shows `at`, by time passing or by being moved."""
        async with self._moved:
            while (left := at - self.now()) > 0:
                try:
                    async with asyncio.timeout(left):
                        await self._moved.wait()
                except TimeoutError:
                    continue
