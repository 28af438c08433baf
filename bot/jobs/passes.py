"""Shares what a node was just asked: incidents that open together look at it once, not once each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bot.domain.finding import ProbeResult
from bot.probe import args_digest
from bot.source import ProbeRunner

SHARED = timedelta(seconds=30)
"""How old an answer may be that another incident takes over: less than a scrape or two. Basis: judgement."""

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """One run under way or done; `began` by the deployment's clock."""

    began: datetime
    run: asyncio.Task[ProbeResult]


class SharedPasses:
    """A probe runner for what the bot asks on its own; what a person asks for or approves goes to the node itself.

    The memory is this process's own: each replica asks a node at most once in `SHARED`.
    """

    def __init__(self, runner: ProbeRunner, clock: Callable[[], datetime]) -> None:
        self._runner = runner
        self._clock = clock
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

        def ask() -> asyncio.Task[ProbeResult]:
            return asyncio.create_task(
                self._runner.run(
                    node,
                    probe,
                    args,
                    subject=subject,
                    timeout_seconds=timeout_seconds,
                    approved_by=approved_by,
                )
            )

        if approved_by is not None:
            return await ask()
        now = self._clock()
        self._forget(now)
        key = (node, probe, args_digest(args))
        known = self._passes.get(key)
        if known is None:
            known = self._passes[key] = _Pass(began=now, run=ask())
        # One incident that gives up waiting must not take the answer away from the others.
        return await asyncio.shield(known.run)

    def _forget(self, now: datetime) -> None:
        for key, known in list(self._passes.items()):
            is_lost = known.run.done() and (known.run.cancelled() or known.run.exception())
            if is_lost or now - known.began > SHARED:
                del self._passes[key]
