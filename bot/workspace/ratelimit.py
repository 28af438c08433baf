"""Slack's rate limits: tiers per method, and one message a second in a channel."""

from __future__ import annotations

import math
from collections.abc import Callable

from bot.blockkit import limits
from bot.blockkit.contract import Method

# chat.postMessage: one a second in a channel, short bursts are let through.
# Source: docs.slack.dev, "Rate limits"; the depth of the burst is not stated there, three is what senders count on.
_CHANNEL_PER_SECOND = 1.0
_CHANNEL_BURST = 3
# "Several hundred messages a minute" for a workspace, same page.
_TEAM_POSTS_PER_MINUTE = 300


class _Bucket:
    def __init__(self, capacity: float, per_second: float, now: float) -> None:
        self._capacity = capacity
        self._per_second = per_second
        self._left = capacity
        self._at = now

    def wait_seconds(self, now: float) -> float:
        """How long until a call would pass; 0 when it would now."""
        self._left = min(self._capacity, self._left + (now - self._at) * self._per_second)
        self._at = now
        return 0.0 if self._left >= 1 else (1 - self._left) / self._per_second

    def take(self) -> None:
        self._left -= 1


class RateLimiter:
    """Says how many seconds a call must wait; a refused call uses nothing up."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def retry_after(self, method: Method, channel: str | None) -> int | None:
        """Whole seconds for Retry-After, or None when the call passes and is counted."""
        now = self._now()
        buckets = [self._bucket(key, *size, now=now) for key, *size in _keys(method, channel)]
        wait = max((bucket.wait_seconds(now) for bucket in buckets), default=0.0)
        if wait > 0:
            return max(1, math.ceil(wait))
        for bucket in buckets:
            bucket.take()
        return None

    def _bucket(self, key: str, capacity: float, per_second: float, *, now: float) -> _Bucket:
        return self._buckets.setdefault(key, _Bucket(capacity, per_second, now))


def _keys(method: Method, channel: str | None) -> list[tuple[str, float, float]]:
    if method.name == "chat.postMessage":
        return [
            (f"post:{channel}", _CHANNEL_BURST, _CHANNEL_PER_SECOND),
            ("post", _TEAM_POSTS_PER_MINUTE, _TEAM_POSTS_PER_MINUTE / 60),
        ]
    per_minute = limits.PER_MINUTE.get(method.tier or "")
    return [(method.name, per_minute, per_minute / 60)] if per_minute else []
