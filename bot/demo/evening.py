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

    Without a fault it watches for as long as an alert would have taken.

    Raises:
        BotError: a fault was asked for and P99 stayed where it was.
    """
    await asyncio.sleep(max(0.0, stack.load_started + BASELINE_SECONDS - time.monotonic()))
    usual = await stack.query(P99_QUERY)
    say(f"usual P99 {milliseconds(usual)}; the evening peak begins")
    await stack.start_evening()
    started = datetime.now(UTC)
    deadline = time.monotonic() + (_ALERT_SECONDS if stack.fault.raises_alert else _QUIET_SECONDS)
    worst: float | None = None
    while time.monotonic() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
        worst = await stack.query(P99_QUERY)
        if worst is not None and worst > THRESHOLD_SECONDS:
            since = datetime.now(UTC)
            # A responder looks a while before saying what is wrong; what came just now may be a blip.
            await asyncio.sleep(_LOOK_SECONDS)
            worst = await stack.query(P99_QUERY)
            say(f"P99 is {milliseconds(worst)}")
            return Onset(usual=usual, worst=worst, since=since)
    if stack.fault.raises_alert:
        raise BotError(
            f"P99 is {milliseconds(worst)} and did not pass {milliseconds(THRESHOLD_SECONDS)}; run it again on an idle machine",
            reason=Reason.TIMEOUT,
        )
    say(f"P99 is {milliseconds(worst)}: nothing is wrong")
    return Onset(usual=usual, worst=worst, since=started)


def milliseconds(seconds: float | None) -> str:
    """A latency as people say it."""
    return "no value" if seconds is None else f"{seconds * 1000:.0f} ms"
