"""The steps of one delivery to Confluence, each remembered when it is done.

A page is found again by the id that was remembered; else by the title that was about to be used, if the page carries
our mark; else by its label. So a lost answer makes no second page, and another page of the same title is never touched.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass, field

from bot.checkpoint import reached
from bot.errors import DeliveryError, Reason
from bot.report.plain import visible
from bot.report.storage_format import anchor
from bot.target import Progress
from bot.targets._confluence_api import ConfluencePage, Dialect, label, labelled

MAX_TITLE = 255
"""Source: Confluence REST documentation (v2 and Data Center): a title has at most 255 characters."""


@dataclass(slots=True, kw_only=True)
class Publishing:
    """One page on its way. key: our mark in it. is_changed / was_edited: what turned out while it was written."""

    server: Dialect
    space: str
    key: str
    title: str
    progress: Progress
    is_changed: bool = field(default=False, init=False)
    was_edited: bool = field(default=False, init=False)

    async def page(self, body: str) -> ConfluencePage:
        """The page with this body, made or renewed.

        Raises:
            DeliveryError: it could not be written.
        """
        marked = anchor(self.key) + body
        known = await self._find()
        return await self._renew(known, marked) if known else await self._create(marked)

    async def attach(self, page: ConfluencePage, name: str, content: bytes) -> None:
        """A file beside the page, unless it is there already.

        Raises:
            DeliveryError: it was not taken.
        """
        digest = _digest(page.id, hashlib.sha256(content).hexdigest())
        if await self.progress.get(f"file:{name}") == digest:
            return
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        await self.server.attach(page.id, (name, content, kind))
        await self.progress.put(f"file:{name}", digest)
        self.is_changed = True

    async def label(self, page: ConfluencePage) -> None:
        """The labels that the page is found by when everything else was forgotten.

        Raises:
            DeliveryError: they were not taken.
        """
        if await self.progress.get("labelled") != page.id:
            await label(self.server.door, page.id, ("rca-bot", self.key))
            await self.progress.put("labelled", page.id)

    async def _find(self) -> ConfluencePage | None:
        page_id = await self.progress.get("page")
        known = await self.server.page(page_id) if page_id is not None else None
        if known is not None:
            return known
        tried = await self.progress.get("title")
        if tried is not None:
            named = await self.server.titled(tried)
            if named is not None and self.key in named.body:
                return named
        elsewhere = await labelled(self.server.door, self.space, self.key)
        return await self.server.page(elsewhere) if elsewhere is not None else None

    async def _create(self, body: str) -> ConfluencePage:
        plain, own = self._title(), self._title(f" ({self.key})")
        other = await self.server.titled(plain)
        if other is not None and self.key in other.body:
            return await self._renew(other, body)
        if other is None:
            try:
                return await self._make(plain, body)
            except DeliveryError as error:
                # The server compares titles more loosely than it searches them, and somebody may have been faster.
                if error.reason is not Reason.MALFORMED:
                    raise
            other = await self.server.titled(plain)
            if other is not None and self.key in other.body:
                return await self._renew(other, body)
        return await self._make(own, body)

    async def _make(self, title: str, body: str) -> ConfluencePage:
        # Before the request: if its answer is lost, the page is found by this.
        await self.progress.put("title", title)
        page = await self.server.create(title, body)
        reached("delivery.sent")
        await self._remember(page, self._title(), body)
        return page

    async def _renew(self, page: ConfluencePage, body: str) -> ConfluencePage:
        await self.progress.put("page", page.id)
        title = self._title(f" ({self.key})" if self.key in page.title else "")
        if await self.progress.get("body") == _digest(self._title(), body):
            return page
        written = await self.progress.get("version")
        self.was_edited = written is not None and written != str(page.version)
        renewed = await self._update(page, title, body)
        if renewed is None:
            newest = await self.server.page(page.id)
            self.was_edited = True
            renewed = await self._update(newest, title, body) if newest else None
        if renewed is None:
            raise DeliveryError(
                f"{self.server.door.where}: page {page.id} is being edited at the same time; it is tried again",
                reason=Reason.CONFLICT,
            )
        await self._remember(renewed, self._title(), body)
        return renewed

    async def _update(self, page: ConfluencePage, title: str, body: str) -> ConfluencePage | None:
        try:
            return await self.server.update(page, title, body)
        except DeliveryError as error:
            # Another page may have the incident's new title: then ours keeps the one it has.
            if error.reason is not Reason.MALFORMED or title == page.title:
                raise
        return await self.server.update(page, page.title, body)

    async def _remember(self, page: ConfluencePage, title: str, body: str) -> None:
        self.is_changed = True
        await self.progress.put("page", page.id)
        await self.progress.put("version", str(page.version))
        await self.progress.put("body", _digest(title, body))

    def _title(self, suffix: str = "") -> str:
        line = " ".join(visible(self.title).split()) or "rca-bot"
        room = MAX_TITLE - len(suffix)
        return (line if len(line) <= room else f"{line[: room - 1]}…") + suffix


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
