"""Shares what a node was just asked: incidents that open together look at it once, not once each."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.argument import args_digest
from bot.domain.finding import ProbeResult
from bot.errors import StoreError
from bot.source import ProbeRunner
from bot.store import shared_runs
from bot.store.shared_runs import LEASE_SECONDS, Ran
from bot.store.transaction import Store

log = structlog.get_logger(__name__)

SHARED = timedelta(seconds=30)
"""How old an answer may be that another incident takes over: less than a scrape or two. Basis: judgement."""

_LOOK_AGAIN_SECONDS = 0.1

_Key = tuple[str, str, str]
_Ask = Callable[[], Awaitable[ProbeResult]]


@dataclass(slots=True, kw_only=True)
class _Pass:
    """One run under way or done; `began` by the clock of whoever ran it."""

    began: datetime
    run: asyncio.Task[ProbeResult]


class SharedPasses:
    """A probe runner for what the bot asks on its own; what a person asks for or approves goes to the node itself.

    All replicas share it through the store: a node is asked once in `SHARED`, by whichever replica was first. Without
    the store, or when the first one died, a replica asks for itself.
    """

    def __init__(self, runner: ProbeRunner, clock: Callable[[], datetime], store: Store) -> None:
        self._runner = runner
        self._clock = clock
        self._store = store
        self._passes: dict[_Key, _Pass] = {}

    async def run(
        self,
        node: str,
        probe: str,
        args: Mapping[str, Any],
        *,
        subject: str,
        timeout_seconds: float,
        approved_by: str | None = None,
    ) -> ProbeResult:
        """The answer of the run that is under way or just done, else of a new one.

        Its `started_at` says how old it is.
        """

        async def ask() -> ProbeResult:
            return await self._runner.run(
                node,
                probe,
                args,
                subject=subject,
                timeout_seconds=timeout_seconds,
                approved_by=approved_by,
            )

        if approved_by is not None:
            return await ask()
        now = self._clock()
        self._forget(now)
        key = (node, probe, args_digest(args))
        known = self._passes.get(key)
        if known is None:
            shared = self._shared(key, ask, timeout_seconds)
            known = self._passes[key] = _Pass(began=now, run=asyncio.create_task(shared))
        # One incident that gives up waiting must not take the answer away from the others.
        return await asyncio.shield(known.run)

    async def _shared(self, key: _Key, ask: _Ask, timeout_seconds: float) -> ProbeResult:
        """The answer that another replica has or gets, else that of an own run."""
        name, holder = ":".join(key), secrets.token_hex(8)
        loop = asyncio.get_running_loop()
        # Whoever holds the lease has this long for its run too; then this one is asked for without it.
        until = loop.time() + timeout_seconds + LEASE_SECONDS
        try:
            while loop.time() < until:
                there = await shared_runs.look(self._store, name, holder)
                if isinstance(there, Ran):
                    if (known := self._passes.get(key)) is not None:
                        # The other's clock may run ahead; no answer is younger than now.
                        known.began = min(there.began, known.began)
                    return ProbeResult.from_json(there.answer)
                if there:
                    return await self._held(name, holder, ask)
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        except StoreError as error:
            log.warning("passes.not_shared", reason=error.reason.value, error=str(error))
        return await ask()

    async def _held(self, name: str, holder: str, ask: _Ask) -> ProbeResult:
        """The own run, under the lease; its answer is for all."""
        began = self._clock()
        renewing = asyncio.create_task(self._renew(name, holder))
        try:
            result = await ask()
            left = SHARED - (self._clock() - began)
            ran = Ran(began=began, answer=result.to_json())
            seconds = left.total_seconds()
            await self._tell(shared_runs.publish(self._store, name, holder, ran, seconds=seconds))
        except BaseException:
            await self._tell(shared_runs.give_up(self._store, name, holder))
            raise
        finally:
            renewing.cancel()
        return result

    async def _renew(self, name: str, holder: str) -> None:
        is_held = True
        while is_held:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                is_held = await shared_runs.renew(self._store, name, holder)
            except StoreError as error:
                log.warning("passes.not_renewed", reason=error.reason.value)

    async def _tell(self, telling: Awaitable[None]) -> None:
        """An answer is no worse for not being shared."""
        try:
            await telling
        except StoreError as error:
            log.warning("passes.not_shared", reason=error.reason.value, error=str(error))

    def _forget(self, now: datetime) -> None:
        for key, known in list(self._passes.items()):
            is_lost = known.run.done() and (known.run.cancelled() or known.run.exception())
            if is_lost or now - known.began > SHARED:
                del self._passes[key]
