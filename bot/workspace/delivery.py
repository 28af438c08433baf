"""Brings events, commands and actions to the app, and events again when it did not acknowledge them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import structlog

from bot.blockkit import limits
from bot.workspace.clock import Clock
from bot.workspace.faults import FaultKind, FaultPlan
from bot.workspace.records import Json
from bot.workspace.subscription import Subscription, Verdict
from bot.workspace.traffic import Direction, Traffic

log = structlog.get_logger(__name__)


class Kind(StrEnum):
    """What is delivered; the value is the envelope type of Socket Mode."""

    EVENT = "events_api"
    COMMAND = "slash_commands"
    INTERACTIVE = "interactive"


class AckStatus(StrEnum):
    """How a delivery ended."""

    ACKNOWLEDGED = "acknowledged"
    TIMEOUT = "timeout"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One delivery; `retry_number` is 0 for the first attempt."""

    kind: Kind
    what: str
    payload: Json
    retry_number: int = 0
    retry_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """The app's answer; `body` is JSON, text, or None for an empty one. `reason` is Slack's retry reason."""

    status: AckStatus
    http_status: int = 0
    body: Any = None
    reason: str | None = None
    wants_no_retry: bool = False

    @property
    def is_good(self) -> bool:
        """Whether the app acknowledged in time."""
        return self.status is AckStatus.ACKNOWLEDGED


class Carrier(Protocol):
    """One way to the app."""

    async def carry(self, outgoing: Outgoing) -> Ack:
        """Sends and waits for the answer, until its deadline; never raises for what the app does."""
        ...


class Courier:
    """Delivers events in order, one at a time; retries run beside. Commands and actions are never retried."""

    def __init__(
        self,
        carrier: Carrier,
        clock: Clock,
        faults: FaultPlan,
        traffic: Traffic,
        subscription: Subscription,
    ) -> None:
        self.carrier = carrier
        self.subscription = subscription
        self._clock = clock
        self._faults = faults
        self._traffic = traffic
        self._queue: asyncio.Queue[Outgoing] = asyncio.Queue()
        self._held: Outgoing | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsettled = 0
        self._settled = asyncio.Event()
        self._settled.set()

    def offer(self, payload: Json) -> None:
        """Queues an event envelope."""
        event_type = payload["event"]["type"]
        outgoing = Outgoing(kind=Kind.EVENT, what=event_type, payload=payload)
        match self.subscription.admit():
            case Verdict.SWITCHED_OFF:
                self._never_sent(outgoing, "event delivery is switched off")
                return
            case Verdict.RATE_LIMITED:
                self._never_sent(outgoing, "over the hourly limit")
                self._tell_limited(payload)
                return
            case Verdict.DELIVER:
                pass
        if self._faults.take(FaultKind.DROP_EVENT, event_type):
            self._never_sent(outgoing, "dropped on request")
            return
        if self._faults.take(FaultKind.REORDER_EVENTS, event_type):
            self._held = outgoing
            return
        self._put(outgoing)
        if self._faults.take(FaultKind.DUPLICATE_EVENT, event_type):
            self._put(outgoing)
        if self._held is not None:
            held, self._held = self._held, None
            self._put(held)

    async def ask(self, kind: Kind, what: str, payload: Json) -> Ack:
        """Delivers a command or an action once and gives the app's answer."""
        return await self._attempt(Outgoing(kind=kind, what=what, payload=payload))

    async def run(self) -> None:
        """Delivers queued events until cancelled."""
        try:
            while True:
                outgoing = await self._queue.get()
                ack = await self._attempt(outgoing)
                if ack.is_good or ack.wants_no_retry or "event" not in outgoing.payload:
                    self._settle()
                else:
                    self._spawn(self._retry(outgoing, ack))
        finally:
            for task in self._tasks:
                task.cancel()

    async def wait_idle(self, timeout_seconds: float) -> bool:
        """Waits until every event was acknowledged or given up; False if that took too long."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

    def _never_sent(self, outgoing: Outgoing, why: str) -> None:
        self._traffic.record(
            Direction.TO_APP, outgoing.what, outgoing.payload, status=0, answer=None, note=why
        )

    def _tell_limited(self, payload: Json) -> None:
        """Once a minute the app hears that it missed something, without hearing what."""
        minute = self.subscription.minute_to_tell()
        if minute is None:
            return
        told = {
            "type": "app_rate_limited",
            "token": payload.get("token"),
            "team_id": payload.get("team_id"),
            "minute_rate_limited": minute,
            "api_app_id": payload.get("api_app_id"),
        }
        self._put(Outgoing(kind=Kind.EVENT, what="app_rate_limited", payload=told))

    def _settle(self) -> None:
        self._unsettled -= 1
        if self._unsettled == 0:
            self._settled.set()

    def _put(self, outgoing: Outgoing) -> None:
        self._unsettled += 1
        self._settled.clear()
        self._queue.put_nowait(outgoing)

    async def _retry(self, outgoing: Outgoing, ack: Ack) -> None:
        first_at = self._clock.now()
        try:
            for number, after in enumerate(limits.RETRY_SECONDS, start=1):
                await self._clock.sleep_until(first_at + after)
                if not self.subscription.is_on:
                    return
                again = Outgoing(
                    kind=outgoing.kind,
                    what=outgoing.what,
                    payload=outgoing.payload,
                    retry_number=number,
                    retry_reason=ack.reason,
                )
                ack = await self._attempt(again)
                if ack.is_good or ack.wants_no_retry:
                    return
            log.warning(
                "event_given_up", event_id=outgoing.payload.get("event_id"), reason=ack.reason
            )
        finally:
            self._settle()

    async def _attempt(self, outgoing: Outgoing) -> Ack:
        if delay := self._faults.take(FaultKind.DELAY, outgoing.what):
            await asyncio.sleep(delay.seconds)
        began = time.monotonic()
        ack = await self.carrier.carry(outgoing)
        if self._faults.take(FaultKind.LOST_ACK, outgoing.what):
            ack = Ack(status=AckStatus.TIMEOUT, reason="http_timeout")
        note = f"retry {outgoing.retry_number}: {outgoing.retry_reason}" * bool(
            outgoing.retry_number
        )
        if outgoing.kind is Kind.EVENT and self.subscription.note(is_taken=ack.is_good):
            note = f"{note} event delivery is switched off: nearly all of an hour failed".strip()
        self._traffic.record(
            Direction.TO_APP,
            outgoing.what,
            outgoing.payload,
            status=ack.http_status,
            answer=ack.body if ack.is_good else f"{ack.status.value}: {ack.reason}",
            duration_seconds=time.monotonic() - began,
            note=note,
        )
        return ack

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
