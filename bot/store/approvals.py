"""Heavy probes that wait for somebody who may approve them; each is taken up once, by one person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.store.connection import store_faults
from bot.store.transaction import Batch, Store

# What was asked for yesterday is about a machine that looks different today.
KEPT = timedelta(hours=24)
_LIST = "rca:approvals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What waits. channel, thread_ts: where it was asked for. taken: the name of the step that took it up, or empty."""

    id: str
    by: str
    at: datetime
    probes: Sequence[str]
    nodes: Sequence[str]
    args: Mapping[str, Any] = field(default_factory=dict)
    incident: str | None = None
    channel: str | None = None
    thread_ts: str | None = None
    taken: str = ""

    def to_json(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "id": self.id,
            "by": self.by,
            "at": to_rfc3339(self.at),
            "probes": list(self.probes),
            "nodes": list(self.nodes),
            "args": dict(self.args),
            "incident": self.incident,
            "channel": self.channel,
            "thread_ts": self.thread_ts,
            "taken": self.taken,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Approval:
        """Reads `to_json`'s shape."""
        return cls(
            id=value["id"],
            by=value["by"],
            at=parse_rfc3339(value["at"]),
            probes=tuple(value["probes"]),
            nodes=tuple(value["nodes"]),
            args=dict(value["args"]),
            incident=value["incident"],
            channel=value["channel"],
            thread_ts=value["thread_ts"],
            taken=value["taken"],
        )


def _key(approval_id: str) -> str:
    return f"rca:approval:{approval_id}"


def keep(approval: Approval) -> Batch:
    """The step that stores an approval, or that it was taken up; it is forgotten a day after it was asked for."""
    seconds = int(KEPT.total_seconds())
    body = json.dumps(approval.to_json(), ensure_ascii=False)
    step = Batch().write("SET", _key(approval.id), body, "EX", seconds)
    step.write("ZADD", _LIST, int(approval.at.timestamp()), approval.id)
    oldest = int((approval.at - KEPT).timestamp())
    return step.write("ZREMRANGEBYSCORE", _LIST, "-inf", oldest)


async def find(store: Store, approval_id: str) -> Approval | None:
    """One approval, taken up or not; None when it is unknown or a day old.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find what waits for approval"):
        body = await store.text.get(_key(approval_id))
    return Approval.from_json(json.loads(body)) if body is not None else None


async def waiting(store: Store, now: datetime) -> tuple[Approval, ...]:
    """What nobody has taken up, oldest first.

    Raises:
        StoreError: Redis is not reachable.
    """
    oldest = int((now - KEPT).timestamp())
    async with store_faults("list what waits for approval"):
        ids = await store.text.zrangebyscore(_LIST, oldest, "+inf")
        bodies = await store.text.mget([_key(str(item)) for item in ids]) if ids else []
    found = [Approval.from_json(json.loads(body)) for body in bodies if body is not None]
    return tuple(item for item in found if not item.taken)
