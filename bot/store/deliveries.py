"""How far the delivery of an incident's report to one target has come: `rca:inc:<id>:delivery:<target>`, a hash."""

from __future__ import annotations

from bot.store.connection import store_faults
from bot.store.transaction import Store


class StoredProgress:
    """What one delivery remembers between its steps, across crashes and replicas."""

    def __init__(self, store: Store, incident_id: str, target: str) -> None:
        self._store = store
        self._key = f"rca:inc:{incident_id}:delivery:{target}"

    async def get(self, name: str) -> str | None:
        """What was remembered under this name, or None.

        Raises:
            StoreError: Redis is not reachable.
        """
        async with store_faults("read how far a delivery is"):
            value = await self._store.text.hget(self._key, name)
        return str(value) if value is not None else None

    async def put(self, name: str, value: str) -> None:
        """Remembers; with AOF on, a crash does not undo it.

        Raises:
            StoreError: Redis is not reachable; nothing may be done that relies on it.
        """
        async with store_faults("remember how far a delivery is"):
            await self._store.text.hset(self._key, name, value)
