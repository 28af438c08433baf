"""A process of its own for work that would hold up the event loop: charts, PDF pages."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from bot.errors import BotError, Reason

T = TypeVar("T")

ORPHAN_LOOK_SECONDS = 1.0


class RenderWorker:
    """One worker process, started at the first call and started anew after it died or hung.

    Calls run one after the other, in the order in which they were asked for.
    """

    def __init__(self, *, name: str) -> None:
        self.name = name
        self._pool: ProcessPoolExecutor | None = None
        self._pid: Future[int] | None = None

    async def run(self, work: Callable[..., T], *args: object, timeout_seconds: float) -> T:
        """`work(*args)` in the worker; both and the result have to be picklable.

        A worker that died (the kernel may have taken it for its memory) is replaced once. Cancelling the caller leaves
        the worker to finish its call.

        Raises:
            BotError: no result after `timeout_seconds`, or the worker died twice.
            Exception: whatever `work` raises.
        """
        for attempt in (1, 2):
            pool = self._pool or self._fresh()
            try:
                async with asyncio.timeout(timeout_seconds):
                    return await asyncio.get_running_loop().run_in_executor(pool, work, *args)
            except TimeoutError as error:
                self._kill(pool)
                raise BotError(
                    f"{self.name}: no result after {timeout_seconds:g} s: the worker was stopped; try again",
                    reason=Reason.TIMEOUT,
                ) from error
            except BrokenProcessPool as error:
                self._kill(pool)
                if attempt == 2:
                    raise BotError(
                        f"{self.name}: the worker process died twice: see the log; check the free memory",
                        reason=Reason.UNSUPPORTED,
                    ) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Stops the worker process; a later call starts a new one."""
        if self._pool is not None:
            self._kill(self._pool)

    def _fresh(self) -> ProcessPoolExecutor:
        # Not a fork: the bot's process has threads and sockets that a child must not inherit.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=end_with_owner, initargs=(os.getpid(),)
        )
        self._pid = self._pool.submit(os.getpid)
        return self._pool

    def _kill(self, pool: ProcessPoolExecutor) -> None:
        """Stops `pool`, unless another caller has replaced it already."""
        if self._pool is not pool:
            return
        pid, self._pool, self._pid = self._pid, None, None
        if pid is not None and pid.done() and not pid.cancelled() and pid.exception() is None:
            try:
                os.kill(pid.result(), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it is gone already, which is what was wanted
        pool.shutdown(wait=False, cancel_futures=True)


def end_with_owner(owner: int) -> None:
    """Ctrl-C is for the bot, which then stops its worker in order; a bot that was killed leaves no worker behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(owner,), daemon=True).start()


def _end_with(owner: int) -> None:
    while os.getppid() == owner:
        time.sleep(ORPHAN_LOOK_SECONDS)
    os._exit(1)
