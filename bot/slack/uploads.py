"""Shares stored files in a thread, each once, in Slack's three steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import structlog

from bot.checkpoint import reached
from bot.errors import DeliveryError
from bot.slack.text import cut, file_name
from bot.slack.web import SlackRefusalError, Web
from bot.store import surface
from bot.store.surface import PostState
from bot.store.transaction import Store

log = structlog.get_logger(__name__)

# The share happens some time after Slack's answer. How long is not documented; seconds were seen.
SHARE_SECONDS = 5.0
LOOK_EVERY_SECONDS = 0.25
MOST_ALT = 1000


class Uploads:
    """Uploads of one workspace."""

    def __init__(self, web: Web, store: Store, clock: Callable[[], datetime]) -> None:
        self._web = web
        self._store = store
        self._clock = clock

    async def share(
        self,
        *,
        key: str,
        blobs: Sequence[str],
        channel: str,
        thread_ts: str,
        comment: str,
        title: str,
        alt: str,
    ) -> None:
        """Uploads `blobs` and shares them in one message of the thread, once under `key`.

        A file that is no longer stored is left out and logged.

        Raises:
            DeliveryError: not done; the same call later goes on where this one stopped.
            StoreError: Redis is not reachable.
        """
        state = await surface.post_state(self._store, key)
        if state is not None and state.ts is not None:
            return
        files = state.files if state else ()
        since = state.since if state else self._clock()
        if not files:
            files = await self._upload_all(blobs, alt)
            if not files:
                return
            step = surface.post_progress(key, PostState(since=since, files=files))
            await self._store.commit(step, doing="record an upload")
            reached("file.uploaded")
        elif await self._is_shared(_file_id(files[0]), channel):
            await self._done(key, since, files)
            return
        entries = [
            {"id": _file_id(item), "title": title if len(files) == 1 and title else _name(item)}
            for item in files
        ]
        reached("post.before_send")
        try:
            await self._web.call(
                "files.completeUploadExternal",
                files=entries,
                channel_id=channel,
                thread_ts=thread_ts,
                initial_comment=comment or None,
            )
        except SlackRefusalError as error:
            # Completing twice is refused; the first time may have been before a crash.
            if error.code != "file_not_found" or not await self._is_known(_file_id(files[0])):
                raise
        reached("post.sent")
        await self._done(key, since, files)

    async def _upload_all(self, blobs: Sequence[str], alt: str) -> tuple[str, ...]:
        files = []
        for blob in blobs:
            content = await self._store.blob(blob)
            if not content:
                log.error("slack.file_missing", blob=blob)
                continue
            given: dict[str, Any] = {"filename": _name(blob), "length": len(content)}
            if alt:
                given["alt_txt"] = cut(alt, MOST_ALT)
            answer = await self._web.call("files.getUploadURLExternal", **given)
            await self._web.upload(str(answer["upload_url"]), content)
            files.append(f"{answer['file_id']}:{blob}")
        return tuple(files)

    async def _is_shared(self, file_id: str, channel: str) -> bool:
        """Whether an earlier attempt shared it; the share may still be on its way."""
        deadline = asyncio.get_running_loop().time() + SHARE_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            try:
                answer = await self._web.call("files.info", file=file_id)
            except SlackRefusalError as error:
                if error.code == "file_not_found":
                    return False
                raise
            shares = (answer.get("file") or {}).get("shares") or {}
            if any(channel in where for where in shares.values()):
                return True
            await asyncio.sleep(LOOK_EVERY_SECONDS)
        return False

    async def _is_known(self, file_id: str) -> bool:
        try:
            await self._web.call("files.info", file=file_id)
        except DeliveryError:
            return False
        return True

    async def _done(self, key: str, since: datetime, files: tuple[str, ...]) -> None:
        step = surface.post_progress(key, PostState(since=since, ts="shared", files=files))
        await self._store.commit(step, doing="record a shared file")
        reached("post.recorded")


def _file_id(item: str) -> str:
    return item.partition(":")[0]


def _name(blob: str) -> str:
    """`rca:inc:INC-1:blob:chart-1.png` is `chart-1.png`."""
    return file_name(blob.rpartition(":")[2], "file")
