"""The SOP and the causes as this process works with them; one small question keeps them the same on every replica."""

from __future__ import annotations

from bot.cause import Catalogue
from bot.incidents.shelf import Shelf
from bot.sop import Sop
from bot.store import knowledge
from bot.store.transaction import Store


class Knowledge:
    """What was known at the last look; `refresh` looks again before something is decided by it."""

    def __init__(self, store: Store, shelf: Shelf) -> None:
        self._store = store
        self._shelf = shelf
        self._known = shelf.files_below
        self._tip: str | None = None

    @property
    def sop(self) -> Sop:
        """The procedure."""
        return self._known.sop

    @property
    def catalogue(self) -> Catalogue:
        """The causes, signals and findings."""
        return self._known.catalogue

    async def refresh(self) -> None:
        """Takes in what any replica has accepted since the last look.

        Raises:
            StoreError: Redis is not reachable.
        """
        tip = await knowledge.tip(self._store)
        if tip != self._tip:
            # Read first, believed afterwards: a version that comes in between is seen at the next look.
            self._known = await self._shelf.known()
            self._tip = tip
