"""The staging buffers that a request's input passes through on its way to the device.

The fault of the demo lives here and is a real one: making memory known to a device driver happens under one
lock for the whole process, as `cudaHostAlloc` serialises its callers inside the driver. A pool that was filled
at the start never needs that lock again; a pool that registers fresh memory for each request queues every
request behind it once enough of them arrive together.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

PAGE_BYTES = 4096


class PoolMode(StrEnum):
    """How a request gets its staging buffer."""

    PREALLOCATED = "preallocated"
    PER_REQUEST = "per-request"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatistics:
    """What the pool did since the process started; `host_alloc_seconds` is the callers' time, lock wait included."""

    mode: PoolMode
    host_allocs: int
    host_alloc_seconds: float
    slowest_host_alloc_seconds: float
    buffers_in_use: int
    buffers_ready: int
    buffer_bytes: int


class StagingBuffer:
    """Page-aligned memory that is registered with the device."""

    def __init__(self, size_bytes: int) -> None:
        self._pages = mmap.mmap(-1, size_bytes)
        for offset in range(0, size_bytes, PAGE_BYTES):  # a page must exist before it can be pinned
            self._pages[offset] = 0

    def copy_in(self, payload: bytes) -> int:
        """Copies `payload` into the buffer and returns the bytes copied, at most the size of the buffer."""
        count = min(len(payload), len(self._pages))
        self._pages[:count] = payload[:count]
        return count

    def release(self) -> None:
        """Gives the memory back to the kernel."""
        self._pages.close()


class PinnedBufferPool:
    """Hands out staging buffers; the mode may change while requests are under way.

    Args:
        mode: where buffers come from.
        buffer_bytes: size of each buffer.
        capacity: how many buffers a preallocated pool holds.
        registration_seconds: how long the driver call that pins one buffer holds the lock.
            Source: the whole call was measured at 10 to 50 ms under load in the recorded incidents of this kind.
        wait: called inside the lock for that long; a test passes its own.
    """

    def __init__(
        self,
        *,
        mode: PoolMode,
        buffer_bytes: int = 1 << 20,
        capacity: int = 64,
        registration_seconds: float = 0.024,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._buffer_bytes = buffer_bytes
        self._capacity = capacity
        self._registration_seconds = registration_seconds
        self._wait = wait
        self._registration_lock = threading.Lock()
        self._accounting = threading.Lock()
        self._returned = threading.Condition(self._accounting)
        self._ready: list[StagingBuffer] = []
        self._in_use = 0
        self._host_allocs = 0
        self._host_alloc_seconds = 0.0
        self._slowest_host_alloc_seconds = 0.0
        self._mode = mode
        if mode is PoolMode.PREALLOCATED:
            self._fill()

    @property
    def mode(self) -> PoolMode:
        """Where the next buffer will come from."""
        return self._mode

    def switch(self, mode: PoolMode) -> None:
        """Takes effect with the next request; a preallocated pool is filled first, so that nobody waits for it."""
        if mode is PoolMode.PREALLOCATED and self._mode is not mode:
            self._fill()
        self._mode = mode

    @contextmanager
    def staging_buffer(self) -> Iterator[StagingBuffer]:
        """One buffer for the time of one copy."""
        from_pool = self._mode is PoolMode.PREALLOCATED
        buffer = self._take_ready() if from_pool else self._register_host_memory()
        with self._accounting:
            self._in_use += 1
        try:
            yield buffer
        finally:
            self._give_back(buffer, from_pool=from_pool)

    def statistics(self) -> PoolStatistics:
        """A consistent snapshot."""
        with self._accounting:
            return PoolStatistics(
                mode=self._mode,
                host_allocs=self._host_allocs,
                host_alloc_seconds=self._host_alloc_seconds,
                slowest_host_alloc_seconds=self._slowest_host_alloc_seconds,
                buffers_in_use=self._in_use,
                buffers_ready=len(self._ready),
                buffer_bytes=self._buffer_bytes,
            )

    def _fill(self) -> None:
        with self._registration_lock:
            fresh = [StagingBuffer(self._buffer_bytes) for _ in range(self._capacity)]
            # One driver call pins the whole slab, so the price is paid once and not per buffer.
            self._wait(self._registration_seconds)
        with self._returned:
            self._ready = fresh
            self._returned.notify_all()

    def _take_ready(self) -> StagingBuffer:
        with self._returned:
            while not self._ready:
                self._returned.wait()
            return self._ready.pop()

    def _register_host_memory(self) -> StagingBuffer:
        started = time.perf_counter()
        with self._registration_lock:
            buffer = StagingBuffer(self._buffer_bytes)
            self._wait(self._registration_seconds)
        seconds = time.perf_counter() - started
        with self._accounting:
            self._host_allocs += 1
            self._host_alloc_seconds += seconds
            self._slowest_host_alloc_seconds = max(self._slowest_host_alloc_seconds, seconds)
        return buffer

    def _give_back(self, buffer: StagingBuffer, *, from_pool: bool) -> None:
        with self._returned:
            self._in_use -= 1
            if from_pool and len(self._ready) < self._capacity:
                self._ready.append(buffer)
                self._returned.notify()
                return
        buffer.release()
