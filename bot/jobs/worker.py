"""Runs the jobs of the queue, several lanes at a time, and survives everything that a job can do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from bot.checkpoint import reached
from bot.errors import BotError, CommandError, DeliveryError, StoreError
from bot.jobs.doorway import Doorway
from bot.store import queue
from bot.store.queue import Claim, Queue
from bot.store.transaction import Batch

log = structlog.get_logger(__name__)

IDLE_SECONDS = 0.25
CONCURRENCY = 24
"""Lanes at a time: ten incidents that open together and wait for slow sources must leave room for what people press."""

FIRST_RETRY_SECONDS = 1.0
LAST_RETRY_SECONDS = 60.0
MAX_ATTEMPTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The job is done; `step` is written in the same transaction that ends it."""

    step: Batch | None = None
    pause_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Not now: try again at `until`."""

    until: datetime
    why: str


Handler = Callable[[Claim], Awaitable[Done | Later]]


class Worker:
    """Claims jobs and runs their handlers, `concurrency` at a time."""

    def __init__(
        self,
        jobs: Queue,
        handlers: Mapping[str, Handler],
        clock: Callable[[], datetime],
        *,
        concurrency: int = CONCURRENCY,
        gave_up: Callable[[Claim, BaseException], Awaitable[None]] | None = None,
        doorway: Doorway | None = None,
    ) -> None:
        self._queue = jobs
        self._handlers = handlers
        self._clock = clock
        self._concurrency = concurrency
        self._gave_up = gave_up
        self._doorway = doorway or Doorway()
        self._wake = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Something was queued: look now."""
        self._wake.set()

    def stop(self) -> None:
        """Take no further job; the running ones finish."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Works until `stop`; jobs in hand are finished first."""
        slots = asyncio.Semaphore(self._concurrency)
        async with asyncio.TaskGroup() as group:
            while not self._stopping:
                await slots.acquire()
                await self._doorway.quiet()
                claim = await self._next()
                if claim is None:
                    slots.release()
                    continue
                task = group.create_task(self._work(claim))
                task.add_done_callback(lambda _: slots.release())

    async def _next(self) -> Claim | None:
        """The next job; None after a rest in which none came."""
        if self._stopping:
            return None
        self._wake.clear()
        try:
            claim = await self._queue.claim(self._clock())
        except StoreError as error:
            log.warning("queue.unreachable", reason=error.reason.value, error=str(error))
            await self._rest(FIRST_RETRY_SECONDS)
            return None
        if claim is None:
            await self._rest(IDLE_SECONDS)
        return claim

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _work(self, claim: Claim) -> None:
        reached("job.claimed")
        try:
            outcome = await self._handle(claim)
            now = self._clock()
            match outcome:
                case Done():
                    step = queue.finish(claim, now, pause_seconds=outcome.pause_seconds)
                    if outcome.step is not None:
                        step.extend(outcome.step)
                case Later():
                    log.info("job.later", kind=claim.job.kind, id=claim.job.id, why=outcome.why)
                    step = queue.postpone(claim, outcome.until)
            settled = await self._queue.settle(step, doing=f"end a {claim.job.kind} job")
            if not settled.is_done:
                log.warning("job.lease_lost", kind=claim.job.kind, id=claim.job.id)
            reached("job.done")
            self._wake.set()
        except StoreError as error:
            # The lease runs out by itself and the job comes back: nothing is lost, only late.
            log.warning("job.not_settled", kind=claim.job.kind, id=claim.job.id, error=str(error))

    async def _handle(self, claim: Claim) -> Done | Later:
        handler = self._handlers.get(claim.job.kind)
        if handler is None:
            log.error("job.unknown_kind", kind=claim.job.kind, id=claim.job.id)
            return Done()
        keeper = asyncio.create_task(self._keep(claim))
        try:
            return await handler(claim)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  the edge of all background work
            return await self._after_failure(claim, error)
        finally:
            keeper.cancel()

    async def _after_failure(self, claim: Claim, error: Exception) -> Done | Later:
        known = isinstance(error, BotError)
        log.warning(
            "job.failed",
            kind=claim.job.kind,
            id=claim.job.id,
            attempt=claim.attempt,
            error=str(error) if known else repr(error),
            exc_info=None if known else error,
        )
        # A request that cannot be done is not tried again: it would only say so again.
        if claim.attempt >= MAX_ATTEMPTS or isinstance(error, CommandError):
            if self._gave_up is not None:
                await self._gave_up(claim, error)
            return Done()
        wait = min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (claim.attempt - 1))
        if isinstance(error, DeliveryError) and error.retry_after_seconds is not None:
            wait = max(0.1, error.retry_after_seconds)
        return Later(until=self._clock() + timedelta(seconds=wait), why=str(error))

    async def _keep(self, claim: Claim) -> None:
        while True:
            await asyncio.sleep(self._queue.lease_seconds / 3)
            try:
                if not await self._queue.renew(claim, self._clock()):
                    return
            except StoreError as error:
                log.warning("job.lease_not_kept", id=claim.job.id, error=str(error))
