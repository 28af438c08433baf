"""All incidents as later ones see them, read anew only where a timeline has moved."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.incidents.journal import Journal, UnknownIncidentError
from bot.learning.past import Past, past_of
from bot.store import index, timeline
from bot.store.transaction import Store

MOST = 1000
"""Newest incidents that are remembered; at one a day that is almost three years. Basis: judgement."""


class Archive:
    """Remembers incidents in memory; what they say comes from their timelines and from nowhere else."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._known: dict[str, tuple[str, Past]] = {}
        self._reading = asyncio.Lock()

    async def pasts(self) -> tuple[Past, ...]:
        """The newest incidents, newest first, as their timelines say now; an edit or a withdrawal counts at once.

        Raises:
            StoreError: Redis is not reachable.
        """
        async with self._reading:
            listed = await index.summaries(self._store, before=None, limit=MOST)
            ids = [item.id for item in listed]
            tips = await timeline.tips(self._store, ids)
            found: list[Past] = []
            for incident_id in ids:
                tip = tips.get(incident_id, "")
                past = await self._one(incident_id, tip)
                if past is not None:
                    found.append(past)
                    # Kept at once: whoever gives up waiting leaves the rest for the next.
                    self._known[incident_id] = (tip, past)
            for gone in self._known.keys() - set(ids):
                del self._known[gone]
            return tuple(found)

    async def pasts_within(self, seconds: float) -> tuple[Past, ...] | None:
        """`pasts`, or None where reading them takes longer, as it may just after a start.

        Raises:
            StoreError: Redis is not reachable.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self.pasts()
        except TimeoutError:
            return None

    async def _one(self, incident_id: str, tip: str) -> Past | None:
        held = self._known.get(incident_id)
        if held is not None and held[0] == tip:
            return held[1]
        try:
            return past_of(await self._journal.load(incident_id))
        except UnknownIncidentError:
            return None


def real(pasts: Sequence[Past]) -> tuple[Past, ...]:
    """Without the exercises."""
    return tuple(past for past in pasts if not past.is_drill)
