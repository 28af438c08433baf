"""Looks after the timers: tells of those that nobody ran, and sets again those that got lost."""

from __future__ import annotations

import asyncio

import structlog

from bot.errors import StoreError
from bot.incidents.journal import UnknownIncidentError
from bot.jobs.followups import timers_of
from bot.jobs.services import Services
from bot.store import index, queue
from bot.store.transaction import Batch

log = structlog.get_logger(__name__)

ROUND_SECONDS = 60.0
GRACE_SECONDS = 60.0
"""How late a timer may be before it counts as overdue: six leases, so that a restart is not reported."""

ROUNDS_BETWEEN_SWEEPS = 10
MOST_SWEPT = 200
MOST_NAMED = 50


class Auditor:
    """One per process; what it does twice does no harm."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def overdue(self) -> int:
        """How many timers nobody ran in time; each round that finds some is logged.

        Raises:
            StoreError: Redis is not reachable.
        """
        services = self._services
        found = await services.queue.overdue_timers(services.clock(), grace_seconds=GRACE_SECONDS)
        if found:
            log.error("timers.overdue", count=len(found), first=found[0])
        return len(found)

    async def lost(self) -> int:
        """How many queued jobs were gone before they were handled (evicted, or deleted by hand); each is logged.

        Raises:
            StoreError: Redis is not reachable.
        """
        found = await self._services.queue.lost()
        if found:
            log.error("queue.lost", count=len(found), jobs=list(found[:MOST_NAMED]))
        return len(found)

    async def sweep(self) -> int:
        """Sets the timers of the newest incidents where they are missing; returns how many incidents were looked at.

        A timer that waits already is not set again.

        Raises:
            StoreError: Redis is not reachable.
        """
        services = self._services
        summaries = await index.summaries(services.store, before=None, limit=MOST_SWEPT)
        for summary in summaries:
            try:
                incident = (await services.journal.load(summary.id)).incident
            except UnknownIncidentError:
                continue
            step = Batch()
            for job in timers_of(incident, services.settings):
                step.extend(queue.enqueue(job, services.clock()))
            if step.writes:
                await services.store.commit(step, doing="set follow-up timers")
        return len(summaries)

    async def run(self, stop: asyncio.Event) -> None:
        """Audits until `stop`; an unreachable Redis is logged and asked again."""
        rounds = 0
        while not stop.is_set():
            try:
                await self.overdue()
                await self.lost()
                if rounds % ROUNDS_BETWEEN_SWEEPS == 0:
                    await self.sweep()
            except StoreError as error:
                log.warning("timers.not_audited", reason=error.reason.value, error=str(error))
            except Exception:
                # An audit that fails must not take the bot down.
                log.exception("timers.audit_failed")
            rounds += 1
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    await stop.wait()
            except TimeoutError:
                continue
