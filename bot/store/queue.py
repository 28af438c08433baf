"""Durable work: lanes of jobs over one due-set.

A lane is a list of job ids that run one after another (one lane per Slack channel keeps its order and pace; one per
incident keeps its steps in order; a timer is a lane of its own). `rca:q:lanes` scores each lane with the time at which
its first job may run. Claiming a lane moves its score to the end of the lease, so a dead worker's job comes back by
itself; the lease's token keeps a worker that only seemed dead from finishing it twice.

Why not a queue library: enqueueing and finishing must be in the same transaction as the timeline entry they belong to,
or a crash between the two loses one of them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.store.connection import run_script, store_faults
from bot.store.transaction import Batch, Committed, Store

_LANES = "rca:q:lanes"
_LOST = "rca:q:lost"
# Longer than any retry or lease, shorter than the first follow-up.
SOON_SECONDS = 120
MOST_OVERDUE = 1000

_CLAIM = """
for _ = 1, 100 do
  local lane = redis.call('ZRANGEBYSCORE', 'rca:q:lanes', '-inf', ARGV[1], 'LIMIT', 0, 1)[1]
  if not lane then return false end
  local id = redis.call('LINDEX', 'rca:q:lane:' .. lane, 0)
  if not id then
    redis.call('ZREM', 'rca:q:lanes', lane)
  else
    local job = redis.call('GET', 'rca:q:job:' .. id)
    if not job then
      redis.call('LPOP', 'rca:q:lane:' .. lane)
      redis.call('RPUSH', 'rca:q:lost', lane .. ' ' .. id)
    else
      redis.call('ZADD', 'rca:q:lanes', ARGV[2], lane)
      redis.call('SET', 'rca:q:lease:' .. lane, ARGV[3])
      local coalesce = cjson.decode(job)['coalesce']
      if coalesce and coalesce ~= '' then redis.call('DEL', 'rca:q:pending:' .. coalesce) end
      return {lane, id, job, redis.call('INCR', 'rca:q:attempts:' .. id)}
    end
  end
end
return false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work.

    kind: which handler runs it. lane: what it must not overtake. payload: JSON values.
    coalesce: while a job with this key waits, another one with it is not added.
    rank: it goes before what waits in its lane with a lower one; equal ones keep their order.
    """

    kind: str
    lane: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    due_at: datetime | None = None
    coalesce: str = ""
    rank: int = 0
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def to_json(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "id": self.id,
            "kind": self.kind,
            "lane": self.lane,
            "payload": dict(self.payload),
            "due_at": to_rfc3339(self.due_at) if self.due_at else None,
            "coalesce": self.coalesce,
            "rank": self.rank,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Job:
        """Reads `to_json`'s shape."""
        return cls(
            id=value["id"],
            kind=value["kind"],
            lane=value["lane"],
            payload=dict(value.get("payload") or {}),
            due_at=parse_rfc3339(value["due_at"]) if value.get("due_at") else None,
            coalesce=value.get("coalesce") or "",
            rank=int(value.get("rank") or 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job that this worker holds until its lease ends. `attempt` counts from 1."""

    job: Job
    token: str
    attempt: int


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def enqueue(job: Job, now: datetime) -> Batch:
    """The step that adds a job; put it into the transaction of what caused it."""
    batch = Batch()
    body = json.dumps(job.to_json(), ensure_ascii=False)
    due = _ms(job.due_at or now)
    batch.write("ENQUEUE", job.lane, due, job.id, body, job.coalesce, job.rank)
    return batch


def _held(claim: Claim) -> Batch:
    return Batch().equals(f"rca:q:lease:{claim.job.lane}", claim.token)


def finish(claim: Claim, now: datetime, *, pause_seconds: float = 0.0) -> Batch:
    """The step that ends a job; MOVED means that the lease was lost and another worker has it.

    pause_seconds: how long the lane rests before its next job (Slack's pace of a channel).
    """
    lane, job_id = claim.job.lane, claim.job.id
    return (
        _held(claim)
        .write("LREM", f"rca:q:lane:{lane}", 1, job_id)
        .write("DEL", f"rca:q:job:{job_id}", f"rca:q:attempts:{job_id}", f"rca:q:lease:{lane}")
        .write("ZADD", _LANES, _ms(now) + int(pause_seconds * 1000), lane)
    )


def postpone(claim: Claim, until: datetime) -> Batch:
    """The step that gives a job back, to be tried again at `until`; its lane waits with it."""
    lane = claim.job.lane
    return _held(claim).write("DEL", f"rca:q:lease:{lane}").write("ZADD", _LANES, _ms(until), lane)


def hurry(lane: str, now: datetime) -> Batch:
    """The step that lets a lane which waits for a later try go on now; a lane that somebody works on is left alone."""
    free = Batch().absent(f"rca:q:lease:{lane}")
    return free.write("ZADD", _LANES, "XX", "LT", _ms(now), lane)


def timer(kind: str, job_id: str, due_at: datetime, payload: Mapping[str, Any]) -> Job:
    """A job for later; it waits in a lane of its own, so that it holds nothing up."""
    return Job(kind=kind, lane=f"timer:{job_id}", payload=payload, due_at=due_at, id=job_id)


def cancel_timer(job_id: str) -> Batch:
    """The step that drops a timer that is no longer wanted."""
    lane = f"timer:{job_id}"
    return (
        Batch()
        .write("DEL", f"rca:q:lane:{lane}", f"rca:q:job:{job_id}", f"rca:q:attempts:{job_id}")
        .write("ZREM", _LANES, lane)
    )


class Queue:
    """Claims and keeps leases. `lease_seconds`: how long a silent worker keeps its job."""

    def __init__(self, store: Store, *, lease_seconds: float = 10.0) -> None:
        self._store = store
        self.lease_seconds = lease_seconds
        self._claim = store.text.register_script(_CLAIM)

    async def claim(self, now: datetime) -> Claim | None:
        """The next due job of a lane that nobody holds, or None.

        Raises:
            StoreError: Redis is not reachable.
        """
        token = secrets.token_hex(8)
        until = _ms(now) + int(self.lease_seconds * 1000)
        async with store_faults("claim a job"):
            found = await run_script(self._store.text, self._claim, [_ms(now), until, token])
        if not found:
            return None
        _, _, body, attempt = found
        return Claim(job=Job.from_json(json.loads(body)), token=token, attempt=int(attempt))

    async def renew(self, claim: Claim, now: datetime) -> bool:
        """Keeps a lease; False when it was lost.

        Raises:
            StoreError: Redis is not reachable.
        """
        until = _ms(now) + int(self.lease_seconds * 1000)
        batch = _held(claim).write("ZADD", _LANES, "XX", until, claim.job.lane)
        return (await self._store.commit(batch, doing="keep a lease")).is_done

    async def settle(self, step: Batch, *, doing: str) -> Committed:
        """Takes a finishing or postponing step, with whatever belongs to it.

        Raises:
            StoreError: Redis is not reachable.
        """
        return await self._store.commit(step, doing=doing)

    async def lost(self) -> tuple[str, ...]:
        """Jobs whose body was gone before they were run, each as `lane id`; told once, then forgotten.

        Raises:
            StoreError: Redis is not reachable.
        """
        async with (
            store_faults("look for lost jobs"),
            self._store.text.pipeline(transaction=True) as pipeline,
        ):
            pipeline.lrange(_LOST, 0, -1)
            pipeline.delete(_LOST)
            found, _ = await pipeline.execute()
        return tuple(str(item) for item in found)

    async def depth(self, now: datetime | None = None) -> int:
        """How many lanes have work, leased ones and retries included; a timer that is far off is no work yet.

        Raises:
            StoreError: Redis is not reachable.
        """
        soon = _ms(now or datetime.now(UTC)) + SOON_SECONDS * 1000
        async with store_faults("count the queue"):
            return int(await self._store.text.zcount(_LANES, "-inf", soon))

    async def overdue_timers(self, now: datetime, *, grace_seconds: float) -> tuple[str, ...]:
        """Ids of timers that should have run `grace_seconds` ago and that nobody took, at most 1,000.

        Raises:
            StoreError: Redis is not reachable.
        """
        before = _ms(now) - int(grace_seconds * 1000)
        async with store_faults("look for overdue timers"):
            lanes = await self._store.text.zrangebyscore(
                _LANES, "-inf", before, start=0, num=MOST_OVERDUE
            )
            timers = [str(lane) for lane in lanes if str(lane).startswith("timer:")]
            async with self._store.text.pipeline(transaction=False) as pipeline:
                for lane in timers:
                    pipeline.exists(f"rca:q:lane:{lane}")
                waiting = await pipeline.execute()
        return tuple(
            lane.removeprefix("timer:")
            for lane, is_waiting in zip(timers, waiting, strict=True)
            if is_waiting
        )
