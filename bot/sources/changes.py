"""Change events from the bot's own store."""

from __future__ import annotations

import asyncio

from bot.domain.change import Change
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason, StoreError
from bot.source import Answer, ChangeStore


class RecordedChanges:
    """The changes that senders posted to the webhook or that were added by hand."""

    def __init__(self, store: ChangeStore) -> None:
        self._store = store

    async def changes(self, window: Window, *, timeout_seconds: float) -> Answer[Change]:
        """Changes in `window`, oldest first; one id appears once.

        Raises:
            EvidenceError: the store is gone or late.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                found = await self._store.between(window.start, window.end)
        except TimeoutError as error:
            raise EvidenceError(
                f"change store: no answer within {timeout_seconds:g} s; check Redis",
                reason=Reason.TIMEOUT,
            ) from error
        except StoreError as error:
            raise EvidenceError(
                f"change store: cannot be read: {error}; check Redis", reason=error.reason
            ) from error
        unique = {change.id: change for change in found}
        ordered = sorted(unique.values(), key=lambda change: (change.at, change.id))
        return Answer(items=tuple(ordered), query="recorded changes", window=window)
