"""Names of the people who appear in timelines: user id to display name, remembered so that a report needs no Slack."""

from __future__ import annotations

from collections.abc import Mapping

from bot.store.connection import store_faults
from bot.store.transaction import Store

USERS = "rca:users"


async def names(store: Store) -> Mapping[str, str]:
    """Everyone who is known.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read the names of people"):
        found = await store.text.hgetall(USERS)
    return {str(user): str(name) for user, name in found.items()}


async def remember(store: Store, user: str, name: str) -> None:
    """Keeps a name.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("remember a name"):
        await store.text.hset(USERS, user, name)
