"""Which channels are public and who is in the others, asked of Slack and kept for some minutes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from bot.errors import DeliveryError
from bot.slack.web import QUICK_SECONDS, SlackRefusalError, Web

log = structlog.get_logger(__name__)

T = TypeVar("T")

_KEPT = timedelta(minutes=5)
"""How long an answer counts; somebody who was removed keeps finding for that long at most. Basis: judgement."""

_MOST_CHANNELS = 1_000
_PAGE = 999
_MOST_PAGES = 10


class SlackMembers:
    """Answers from memory where it can; a channel that Slack does not know counts as private and empty."""

    def __init__(self, web: Web, clock: Callable[[], datetime]) -> None:
        self._web = web
        self._clock = clock
        self._public: OrderedDict[str, tuple[datetime, bool]] = OrderedDict()
        self._inside: OrderedDict[str, tuple[datetime, frozenset[str]]] = OrderedDict()

    async def is_public(self, channel: str) -> bool:
        """Whether everybody of the workspace can read the channel.

        Raises:
            DeliveryError: Slack cannot be asked just now.
        """
        if channel.startswith("D"):
            # A direct message: its kind is in its id, and its scope is not asked for.
            return False
        held = self._public.get(channel)
        if held is not None and self._clock() - held[0] < _KEPT:
            return held[1]
        try:
            found = await self._web.call(
                "conversations.info", timeout_seconds=QUICK_SECONDS, channel=channel
            )
        except DeliveryError as error:
            log.info("slack.channel_kind", channel=channel, reason=error.reason.value)
            if not _is_final(error):
                raise
            _keep(self._public, channel, (self._clock(), False))
            return False
        body = found.get("channel") or {}
        kinds = ("is_private", "is_im", "is_mpim")
        answer = bool(body.get("id")) and not any(body.get(kind) for kind in kinds)
        _keep(self._public, channel, (self._clock(), answer))
        return answer

    async def is_member(self, channel: str, user: str) -> bool:
        """Whether this person is in the channel."""
        if channel.startswith("D"):
            return False
        held = self._inside.get(channel)
        if held is not None and self._clock() - held[0] < _KEPT:
            return user in held[1]
        try:
            inside = await self._ask(channel)
        except DeliveryError as error:
            log.info("slack.channel_members", channel=channel, reason=error.reason.value)
            if _is_final(error):
                _keep(self._inside, channel, (self._clock(), frozenset()))
            return False
        _keep(self._inside, channel, (self._clock(), inside))
        return user in inside

    async def _ask(self, channel: str) -> frozenset[str]:
        found: set[str] = set()
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._web.call(
                "conversations.members",
                timeout_seconds=QUICK_SECONDS,
                channel=channel,
                limit=_PAGE,
                cursor=cursor,
            )
            found.update(str(item) for item in page.get("members") or ())
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "") or None
            if cursor is None:
                break
        return frozenset(found)


def _is_final(error: DeliveryError) -> bool:
    """Whether asking again soon would bring the same refusal; a moment's trouble is not remembered."""
    return isinstance(error, SlackRefusalError) and error.is_permanent


def _keep(into: OrderedDict[str, T], key: str, value: T) -> None:
    into[key] = value
    into.move_to_end(key)
    while len(into) > _MOST_CHANNELS:
        into.popitem(last=False)
