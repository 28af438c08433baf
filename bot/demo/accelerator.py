"""A stand-in for the GPU that this machine does not have: it takes as long as one, and burns no CPU.

Everything that is read from it is labelled as a stand-in wherever it is shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random


class Accelerator:
    """Runs forward passes in a bounded number of slots, as a batching engine does.

    Args:
        slots: passes that run side by side without slowing one another.
        fastest_seconds: shortest forward pass.
        slowest_seconds: longest forward pass; passes are spread evenly between the two.
        seed: of the spread.
        wait: called for the length of a pass; a test passes its own.
    """

    def __init__(
        self,
        *,
        slots: int = 64,
        fastest_seconds: float = 0.032,
        slowest_seconds: float = 0.048,
        seed: int = 7,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._slots = threading.Semaphore(slots)
        self._slot_count = slots
        self._spread = (fastest_seconds, slowest_seconds)
        self._random = Random(seed)  # noqa: S311 - shapes a service time, guards nothing
        self._wait = wait
        self._lock = threading.Lock()
        self._waiting = 0
        self._busy_seconds = 0.0
        self._copied_bytes = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Waits for a free slot and holds it."""
        with self._lock:
            self._waiting += 1
        try:
            self._slots.acquire()
        finally:
            with self._lock:
                self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release()

    def forward(self) -> None:
        """One forward pass."""
        with self._lock:
            seconds = self._random.uniform(*self._spread)
        self._wait(seconds)
        with self._lock:
            self._busy_seconds += seconds / self._slot_count

    def note_copied(self, count: int) -> None:
        """Accounts for bytes that crossed the link to the device."""
        with self._lock:
            self._copied_bytes += count

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        with self._lock:
            return self._waiting

    @property
    def busy_seconds(self) -> float:
        """Seconds that the whole device was busy since the start."""
        with self._lock:
            return self._busy_seconds

    @property
    def copied_bytes(self) -> int:
        """Bytes copied to the device since the start."""
        with self._lock:
            return self._copied_bytes
