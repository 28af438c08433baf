"""Sends one message so that it is there exactly once, however often the process dies on the way.

Before a send the key is marked; a later attempt that finds the mark looks in the conversation for a message that
carries the key in its metadata, and adopts it instead of sending another. What must be fast is marked while it is
sent: its job counts the attempts, so that a second one looks whether it finds a mark or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.checkpoint import reached
from bot.errors import DeliveryError, Reason
from bot.slack.present import Part
from bot.slack.web import SlackRefusalError, Web
from bot.store import surface
from bot.store.surface import PostState
from bot.store.transaction import Batch, Store

log = structlog.get_logger(__name__)

EVENT_TYPE = "rca_bot_post"
# Slack's clock and ours differ; a search from a little earlier costs nothing.
CLOCK_SKEW = timedelta(minutes=5)
PAGE = 200
MOST_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Where the message is; `is_new`: sent just now, not found or known from before."""

    ts: str
    is_new: bool


class Delivery:
    """Sends and updates messages of one workspace."""

    def __init__(self, web: Web, store: Store, clock: Callable[[], datetime]) -> None:
        self._web = web
        self._store = store
        self._clock = clock

    async def send(
        self,
        *,
        key: str,
        channel: str,
        thread_ts: str | None,
        part: Part,
        plain: Part,
        also: Callable[[str], Batch] = lambda _: Batch(),
        first: Batch | None = None,
        is_first_try: bool = False,
        possible_since: datetime | None = None,
    ) -> Sent:
        """Posts once under `key`. also: what else is recorded with the message's ts; first: what before it is sent.

        is_first_try: nobody can have sent it yet, so it is marked while it is sent.
        possible_since: given by those who say so at the first try: since when an earlier one may have sent it unmarked.

        Raises:
            DeliveryError: not sent, or not known whether it was; the same call later finds out.
            StoreError: Redis is not reachable.
        """
        if is_first_try and await surface.post_state(self._store, key) is None:
            return await self._send_at_once(key, channel, thread_ts, part, plain, also, first)
        state = await self._marked(key, first)
        if possible_since is not None and not state.is_old and not is_first_try:
            state = replace(state, since=min(possible_since, state.since), is_old=True)
        if state.ts is not None:
            return Sent(ts=state.ts, is_new=False)
        found = await self._find(key, channel, thread_ts, state.since) if state.is_old else None
        reached("post.before_send")
        ts = found or await self._post(key, channel, thread_ts, part, plain)
        reached("post.sent")
        step = surface.post_progress(key, PostState(since=state.since, ts=ts)).extend(also(ts))
        await self._store.commit(step, doing="record a message")
        reached("post.recorded")
        return Sent(ts=ts, is_new=found is None)

    async def _send_at_once(
        self,
        key: str,
        channel: str,
        thread_ts: str | None,
        part: Part,
        plain: Part,
        also: Callable[[str], Batch],
        first: Batch | None,
    ) -> Sent:
        """Marks and posts at the same time: neither waits for the other's disk or network."""
        marking = asyncio.create_task(self._marked(key, first))
        try:
            reached("post.before_send")
            ts = await self._post(key, channel, thread_ts, part, plain)
            reached("post.sent")
        finally:
            state = await marking
        step = surface.post_progress(key, replace(state, ts=ts)).extend(also(ts))
        await self._store.commit(step, doing="record a message")
        reached("post.recorded")
        return Sent(ts=ts, is_new=True)

    async def _marked(self, key: str, first: Batch | None) -> PostState:
        """How far an earlier attempt got; where there was none, this one is marked, with `first` in the same step."""
        state = PostState(since=self._clock())
        step = surface.post_begun(key, state).extend(first or Batch())
        committed = await self._store.commit(step, doing="mark a message")
        return state if committed.is_done else surface.read_post_state(committed.value)

    async def _post(
        self, key: str, channel: str, thread_ts: str | None, part: Part, plain: Part
    ) -> str:
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"key": key}}
        fixed: dict[str, Any] = {
            "channel": channel,
            "thread_ts": thread_ts,
            "metadata": metadata,
            "unfurl_links": False,
            "unfurl_media": False,
        }
        answer = await self._plainer("chat.postMessage", fixed, part, plain)
        return str(answer["ts"])

    async def _find(
        self, key: str, channel: str, thread_ts: str | None, since: datetime
    ) -> str | None:
        """The ts of the message that carries `key`, looked for among those since the first attempt."""
        oldest = f"{(since - CLOCK_SKEW).timestamp():.6f}"
        method = "conversations.replies" if thread_ts else "conversations.history"
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            answer = await self._web.call(
                method,
                channel=channel,
                ts=thread_ts,
                oldest=oldest,
                include_all_metadata=True,
                limit=PAGE,
                cursor=cursor,
            )
            for message in answer.get("messages") or ():
                metadata = message.get("metadata") or {}
                payload = metadata.get("event_payload") or {}
                if metadata.get("event_type") == EVENT_TYPE and payload.get("key") == key:
                    return str(message["ts"])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return None
        raise DeliveryError(
            f"Slack {method}: more than {PAGE * MOST_PAGES} messages to look through; tried again later",
            reason=Reason.CONFLICT,
        )

    async def update(self, *, channel: str, ts: str, part: Part, plain: Part) -> None:
        """Changes a message of the bot's own in place.

        Raises:
            DeliveryError: not changed.
        """
        await self._plainer("chat.update", {"channel": channel, "ts": ts}, part, plain)

    async def send_private(
        self,
        *,
        channel: str,
        user: str,
        thread_ts: str | None,
        response_url: str | None,
        part: Part,
        plain: Part,
    ) -> None:
        """Shows one person a message where they are; a direct message where that is not possible.

        Raises:
            DeliveryError: none of the three ways is open.
        """
        if response_url:
            body = {"response_type": "ephemeral", "replace_original": False, **_content(part)}
            if thread_ts:
                body["thread_ts"] = thread_ts
            try:
                await self._web.respond(response_url, body)
                return
            except DeliveryError as error:
                log.info("slack.response_url", reason=error.reason.value, error=str(error))
        # Where a press came from no channel (the Home tab), the "channel" is the person.
        if channel[:1] not in ("U", "W"):
            try:
                await self._ephemeral(channel, user, thread_ts, part, plain)
                return
            except SlackRefusalError as error:
                if not error.is_permanent:
                    raise
        opened = await self._web.call("conversations.open", users=user)
        direct = {"channel": str((opened.get("channel") or {}).get("id") or "")}
        await self._plainer("chat.postMessage", direct, part, plain)

    async def _ephemeral(
        self, channel: str, user: str, thread_ts: str | None, part: Part, plain: Part
    ) -> None:
        fixed: dict[str, Any] = {"channel": channel, "user": user, "thread_ts": thread_ts}
        await self._plainer("chat.postEphemeral", fixed, part, plain)

    async def _plainer(
        self, method: str, fixed: dict[str, Any], part: Part, plain: Part
    ) -> dict[str, Any]:
        """One call with `part`, and with `plain` where Slack refuses what it holds: a word is never dropped for its form."""
        try:
            return await self._web.call(method, **fixed, **_content(part))
        except SlackRefusalError as error:
            if not error.is_about_content or not part.blocks:
                raise
            log.error("slack.content_refused", method=method, code=error.code)
            return await self._web.call(method, **fixed, **_content(plain))

    async def pace(self, seconds: float) -> None:
        """Waits between two parts of one message; between messages the channel's lane does."""
        await asyncio.sleep(seconds)


def _content(part: Part) -> dict[str, Any]:
    # Blocks are always given: an update without them would drop the old ones and keep nothing.
    return {"text": part.text, "blocks": list(part.blocks)} if part.blocks else {"text": part.text}
