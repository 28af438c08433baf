"""How incidents, alerts and changes are found: small keys beside the timelines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.change import Change
from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.domain.whole import whole
from bot.store.connection import store_faults
from bot.store.transaction import Batch, Committed, Store

NUMBERS = "rca:incident:last"
"""The last number that was given to an incident."""

_LIST = "rca:incidents"
_CHANGES = "rca:changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One line of the list of incidents."""

    id: str
    title: str
    status: str
    severity: str
    channel: str
    thread_ts: str | None
    opened_at: datetime
    services: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The shape of `GET /incidents`."""
        return {
            "id": self.id,
            "title": self.title,
            "status": self.status,
            "severity": self.severity,
            "channel": self.channel,
            "thread_ts": self.thread_ts,
            "opened_at": to_rfc3339(self.opened_at),
        }


def number_of(incident_id: str) -> int:
    """The `n` of `INC-n`.

    Raises:
        ValueError: no incident id.
    """
    prefix, _, digits = incident_id.partition("-")
    number = whole(digits)
    if prefix != "INC" or number is None:
        raise ValueError(f"{incident_id[:40]!r} is no incident id")
    return number


def summarise(summary: Summary) -> Batch:
    """The step that writes an incident's line of the list."""
    body = json.dumps({**summary.to_json(), "services": list(summary.services)}, ensure_ascii=False)
    batch = Batch().write("SET", f"rca:inc:{summary.id}:summary", body)
    batch.write("ZADD", _LIST, number_of(summary.id), summary.id)
    if summary.thread_ts:
        batch.write("SET", thread_key(summary.channel, summary.thread_ts), summary.id)
    return batch


def thread_key(channel: str, thread_ts: str) -> str:
    """Where the incident of a thread is found."""
    return f"rca:thread:{channel}:{thread_ts}"


def correlation_key(group_key: str) -> str:
    """Where the open incident of a sender's group is found; hashed, since a sender's key may be long and hostile."""
    return f"rca:open:{hashlib.sha256(group_key.encode()).hexdigest()[:32]}"


def once_key(name: str) -> str:
    """Marks that something was done, so that a repeat does nothing."""
    return f"rca:once:{name}"


ONCE_SECONDS = 7 * 24 * 3600


def once(name: str, value: str) -> Batch:
    """The step happens at most once under `name`; a repeat answers EXISTS with the first one's `value`."""
    key = once_key(name)
    return Batch().absent(key).write("SET", key, value, "EX", ONCE_SECONDS)


async def next_incident_id(store: Store) -> str:
    """A fresh `INC-n`. A number whose incident was then not written stays unused.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("number an incident"):
        return f"INC-{int(await store.text.incr(NUMBERS))}"


async def incident_of(store: Store, key: str) -> str | None:
    """The incident id under a thread or correlation key.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find an incident"):
        value = await store.text.get(key)
    return str(value) if value is not None else None


async def summaries(store: Store, *, before: int | None, limit: int) -> tuple[Summary, ...]:
    """Newest first; only ids below `before` when it is given.

    Raises:
        StoreError: Redis is not reachable.
    """
    top = "+inf" if before is None else f"({before}"
    async with store_faults("list the incidents"):
        ids = await store.text.zrevrangebyscore(_LIST, top, "-inf", start=0, num=limit)
        if not ids:
            return ()
        bodies = await store.text.mget([f"rca:inc:{item!s}:summary" for item in ids])
    return tuple(_summary(json.loads(body)) for body in bodies if body is not None)


async def summary_of(store: Store, incident_id: str) -> Summary | None:
    """One incident's line, or None.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find an incident"):
        body = await store.text.get(f"rca:inc:{incident_id}:summary")
    return _summary(json.loads(body)) if body is not None else None


def _summary(value: Mapping[str, Any]) -> Summary:
    return Summary(
        id=value["id"],
        title=value["title"],
        status=value["status"],
        severity=value["severity"],
        channel=value["channel"],
        thread_ts=value.get("thread_ts"),
        opened_at=parse_rfc3339(value["opened_at"]),
        services=tuple(value.get("services") or ()),
    )


async def sightings(store: Store, fingerprint: str) -> tuple[str, ...]:
    """What became of an alert, newest first.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read what became of an alert"):
        found = await store.text.lrange(f"rca:seen:{fingerprint}", 0, -1)
    return tuple(str(item) for item in found)


class ChangeLog:
    """Change events, each stored once under its id, found by time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, changes: Sequence[Change]) -> int:
        """Stores the ones that are new; returns how many that were.

        Raises:
            StoreError: Redis is not reachable; repeat the call, it adds nothing twice.
        """
        added = 0
        for change in changes:
            body = json.dumps(change.to_json(), ensure_ascii=False)
            key = f"rca:change:{change.id}"
            batch = Batch().absent(key).write("SET", key, body)
            batch.write("ZADD", _CHANGES, change.at.timestamp(), change.id)
            committed: Committed = await self._store.commit(batch, doing="store a change event")
            added += committed.is_done
        return added

    async def between(self, start: datetime, end: datetime) -> tuple[Change, ...]:
        """Oldest first.

        Raises:
            StoreError: Redis is not reachable.
        """
        async with store_faults("read the change events"):
            ids = await self._store.text.zrangebyscore(_CHANGES, start.timestamp(), end.timestamp())
            if not ids:
                return ()
            bodies = await self._store.text.mget([f"rca:change:{item!s}" for item in ids])
        return tuple(Change.from_json(json.loads(body)) for body in bodies if body is not None)
