"""From a quiet afternoon into the evening peak, and what the dashboard shows of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.demo.monitoring import P99_QUERY, THRESHOLD_SECONDS
from bot.demo.service import SERVICE
from bot.demo.stack import DemoStack
from bot.errors import BotError, Reason

BASELINE_SECONDS = 45.0
_ALERT_SECONDS = 60.0
_QUIET_SECONDS = 25.0
_LOOK_SECONDS = 20.0
_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """What the dashboard showed: P99 in the afternoon and in the evening (seconds), and since when it is so."""

    usual: float | None
    worst: float | None
    since: datetime

    def in_words(self) -> str:
        """The symptom with its figures."""
        return f"P99 of {SERVICE}: {milliseconds(self.usual)} in the afternoon, {milliseconds(self.worst)} now"


async def wait_for_symptom(stack: DemoStack, say: Callable[[str], None]) -> Onset:
    """Lets the afternoon pass, starts the evening, and watches P99 until it is above its objective.

    Without a fault it watches for as long as an alert takes to come.

    Raises:
        BotError: P99 did not do what the variant of the demo brings.
    """
    await asyncio.sleep(max(0.0, stack.load_started + BASELINE_SECONDS - time.monotonic()))
    usual = await stack.query(P99_QUERY)
    say(f"usual P99 {milliseconds(usual)}; the evening peak begins")
    await stack.start_evening()
    started = datetime.now(UTC)
    limit = _ALERT_SECONDS if stack.fault.raises_alert else _QUIET_SECONDS
    deadline = time.monotonic() + limit
    p99: float | None = None
    while time.monotonic() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
        p99 = await stack.query(P99_QUERY)
        if p99 is not None and p99 > THRESHOLD_SECONDS:
            started = datetime.now(UTC)
            break
    is_slow = p99 is not None and p99 > THRESHOLD_SECONDS
    if is_slow is not stack.fault.raises_alert:
        raise BotError(
            f"P99 is {milliseconds(p99)} against an objective of {milliseconds(THRESHOLD_SECONDS)}, which is not "
            f"what the variant {stack.fault.value} brings; run it again on an idle machine",
            reason=Reason.TIMEOUT,
        )
    # A responder looks a while before saying what is wrong; what came just now may be a blip.
    if is_slow:
        await asyncio.sleep(_LOOK_SECONDS)
        p99 = await stack.query(P99_QUERY)
    say(f"P99 is {milliseconds(p99)}")
    return Onset(usual=usual, worst=p99, since=started)


def milliseconds(seconds: float | None) -> str:
    """A latency as people say it."""
    return "no value" if seconds is None else f"{seconds * 1000:.0f} ms"
