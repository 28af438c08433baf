"""Whoever waits for an acknowledgement goes before background work.

Slack gives three seconds and a person sees a spinner; a job that begins some milliseconds later is noticed by nobody.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HOLD_SECONDS = 0.005
"""After an acknowledgement: long enough for the next of a burst to come in."""

MOST_SECONDS = 0.05
"""Under requests without a pause a job begins at least this often, so that work goes on."""


class Doorway:
    """Counts who is being acknowledged now."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._inside = 0
        self._left_at = float("-inf")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Around one acknowledgement."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._left_at = self._monotonic()

    async def quiet(self) -> None:
        """Returns once nobody is in the doorway, or after `MOST_SECONDS`."""
        until = self._monotonic() + MOST_SECONDS
        while self._is_busy() and self._monotonic() < until:  # noqa: ASYNC110  it ends by time, too
            await asyncio.sleep(HOLD_SECONDS)

    def _is_busy(self) -> bool:
        return self._inside > 0 or self._monotonic() - self._left_at < HOLD_SECONDS
