"""Accepted changes of the knowledge files, and how often each check was of use; the same for every replica.

`rca:knowledge:<path>:v:<n>` holds a version, written once and never changed; `rca:knowledge:<path>:head` the newest
number; `rca:knowledge:paths` every path that has versions; `rca:knowledge:tip` counts all versions, so that one
question tells whether anything is new. `rca:checks:<checklist>` counts what checks came to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.domain.checklist import CheckOutcome, CheckRun, Usage, Version
from bot.store.connection import store_faults
from bot.store.transaction import Batch, Store

_PATHS = "rca:knowledge:paths"
_TIP = "rca:knowledge:tip"


def version_key(path: str, number: int) -> str:
    """Where one version is kept."""
    return f"rca:knowledge:{path}:v:{number}"


def _head_key(path: str) -> str:
    return f"rca:knowledge:{path}:head"


def add_version(version: Version) -> Batch:
    """The step that adds the next version of a file; it does not happen where another writer added it first."""
    body = json.dumps(version.to_json(), ensure_ascii=False)
    key = version_key(version.path, version.number)
    return (
        Batch()
        .absent(key)
        .write("SET", key, body)
        .write("SET", _head_key(version.path), version.number)
        .write("SADD", _PATHS, version.path)
        .write("INCR", _TIP)
    )


async def tip(store: Store) -> str:
    """Another value whenever any file has got a version.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read the accepted changes"):
        return str(await store.text.get(_TIP) or "")


async def heads(store: Store) -> dict[str, int]:
    """The newest version of each file that has any.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read the accepted changes"):
        paths = sorted(str(path) for path in await store.text.smembers(_PATHS))
        values = await store.text.mget([_head_key(path) for path in paths]) if paths else []
    return {path: int(value) for path, value in zip(paths, values, strict=True) if value}


async def head(store: Store, path: str) -> int:
    """The newest version of one file, 0 where there is none.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read the accepted changes"):
        return int(await store.text.get(_head_key(path)) or 0)


async def versions(store: Store, path: str, after: int = 0) -> tuple[Version, ...]:
    """The versions of one file behind number `after`, oldest first.

    Raises:
        StoreError: Redis is not reachable.
    """
    newest = await head(store, path)
    if newest <= after:
        return ()
    keys = [version_key(path, number) for number in range(after + 1, newest + 1)]
    async with store_faults("read the accepted changes"):
        bodies = await store.text.mget(keys)
    return tuple(Version.from_json(json.loads(body)) for body in bodies if body is not None)


def _usage_key(checklist: str) -> str:
    return f"rca:checks:{checklist}"


def count(runs: Sequence[CheckRun]) -> Batch:
    """The step that counts what checks came to; it belongs into the transaction that records them."""
    batch = Batch()
    for run in runs:
        batch.write("HINCRBY", _usage_key(run.checklist), f"{run.outcome.value} {run.item}", 1)
    return batch


def recount(checklist: str, item: str, before: CheckOutcome, after: CheckOutcome) -> Batch:
    """The step that counts a check anew that a person has answered after the bot."""
    key = _usage_key(checklist)
    return (
        Batch()
        .write("HINCRBY", key, f"{before.value} {item}", -1)
        .write("HINCRBY", key, f"{after.value} {item}", 1)
    )


async def usage(store: Store, checklist: str) -> dict[str, Usage]:
    """How each check of a list has fared, by its id.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read how checks fared"):
        counted = await store.text.hgetall(_usage_key(checklist))
    found: dict[str, dict[CheckOutcome, int]] = {}
    for name, value in (counted or {}).items():
        outcome, _, item = str(name).partition(" ")
        if outcome in set(CheckOutcome):
            found.setdefault(item, {})[CheckOutcome(outcome)] = int(value)
    return {item: Usage(counts=counts) for item, counts in sorted(found.items())}
