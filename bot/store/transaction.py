"""One durable step: guards that must hold, then writes that all happen or none do.

A Lua script, so that one event is one round trip and no reader sees half of it. Redis has no FUNCTIONs before 7, and
the embedded 6.2 must do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from redis.asyncio import Redis

from bot.store.connection import connect, disconnect, run_script, store_faults

# Guards: ["absent", key] ["equals", key, value] ["length", stream, n]. Writes: a Redis command as a list, or
# ["ENQUEUE", lane, due_ms, id, job_json, coalesce_key, rank]: an enqueue whose coalesce key is pending adds nothing,
# since the pending job will read the newest state when it runs; a job goes before what waits with a lower rank.
_COMMIT = """
local batch = cjson.decode(ARGV[1])
for _, guard in ipairs(batch.guards) do
  if guard[1] == 'absent' then
    local value = redis.call('GET', guard[2])
    if value then return {'exists', value} end
  elseif guard[1] == 'equals' then
    if redis.call('GET', guard[2]) ~= guard[3] then return {'moved', guard[2]} end
  elseif guard[1] == 'length' then
    if redis.call('XLEN', guard[2]) ~= tonumber(guard[3]) then return {'moved', guard[2]} end
  end
end
for _, write in ipairs(batch.writes) do
  if write[1] == 'ENQUEUE' then
    local lane, due, id, job, coalesce = write[2], write[3], write[4], write[5], write[6]
    local rank, before = tonumber(write[7]), nil
    local pending = false
    if coalesce ~= '' then
      pending = redis.call('EXISTS', 'rca:q:pending:' .. coalesce) == 1
      if not pending then redis.call('SET', 'rca:q:pending:' .. coalesce, id) end
    end
    if not pending then
      redis.call('SET', 'rca:q:job:' .. id, job)
      if rank > 0 then
        for _, waiting in ipairs(redis.call('LRANGE', 'rca:q:lane:' .. lane, 0, -1)) do
          local other = redis.call('GET', 'rca:q:job:' .. waiting)
          if other and (cjson.decode(other)['rank'] or 0) < rank then before = waiting break end
        end
      end
      if before then
        redis.call('LINSERT', 'rca:q:lane:' .. lane, 'BEFORE', before, id)
      else
        redis.call('RPUSH', 'rca:q:lane:' .. lane, id)
      end
      redis.call('ZADD', 'rca:q:lanes', 'NX', due, lane)
    end
  else
    redis.call(unpack(write))
  end
end
return {'done', ''}
"""


class Outcome(StrEnum):
    """How a commit ended."""

    DONE = "done"
    EXISTS = "exists"
    MOVED = "moved"


@dataclass(slots=True, kw_only=True)
class Batch:
    """Guards and writes of one step. Every value is text; numbers are turned into text here."""

    guards: list[list[str]] = field(default_factory=list)
    writes: list[list[str]] = field(default_factory=list)

    def absent(self, key: str) -> Batch:
        """The step happens only if `key` does not exist; a commit answers EXISTS with its value."""
        self.guards.append(["absent", key])
        return self

    def equals(self, key: str, value: str) -> Batch:
        """The step happens only if `key` holds `value`."""
        self.guards.append(["equals", key, value])
        return self

    def length(self, stream: str, length: int) -> Batch:
        """The step happens only if `stream` has this many records."""
        self.guards.append(["length", stream, str(length)])
        return self

    def write(self, *command: str | int | float) -> Batch:
        """One Redis command."""
        self.writes.append([str(part) for part in command])
        return self

    def extend(self, other: Batch) -> Batch:
        """Everything of another batch too, in the same step."""
        self.guards.extend(other.guards)
        self.writes.extend(other.writes)
        return self


@dataclass(frozen=True, slots=True)
class Committed:
    """`outcome`, and for EXISTS the value that stood in the way."""

    outcome: Outcome
    value: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the step happened now."""
        return self.outcome is Outcome.DONE


class Store:
    """The connection to Redis that everything of this package works through."""

    def __init__(self, url: str) -> None:
        self.text: Redis = connect(url, decode=True)
        self.binary: Redis = connect(url, decode=False)
        self._commit = self.text.register_script(_COMMIT)

    async def commit(self, batch: Batch, *, doing: str) -> Committed:
        """Takes the step. When it answers DONE, Redis has it; with AOF on, so has the disk.

        Raises:
            StoreError: Redis did not take it; whether it happened is unknown, so repeat it with the same guards.
        """
        body = json.dumps({"guards": batch.guards, "writes": batch.writes}, ensure_ascii=False)
        # cjson reads an empty object as a table without length, so empty lists stay lists by the two names above.
        async with store_faults(doing):
            outcome, value = await run_script(self.text, self._commit, [body])
        return Committed(Outcome(outcome), str(value))

    async def is_writable(self) -> bool:
        """Whether Redis takes writes now.

        Raises:
            StoreError: it does not.
        """
        async with store_faults("readiness"):
            await self.text.set("rca:ready", "1", ex=60)
        return True

    async def blob(self, key: str) -> bytes | None:
        """A stored file, or None.

        Raises:
            StoreError: Redis is not reachable.
        """
        async with store_faults("read a file"):
            value = await self.binary.get(key)
        return value if isinstance(value, bytes) else None

    async def put_blob(self, key: str, content: bytes) -> None:
        """Stores a file under a key; an entry that names it is written after it, never before.

        Raises:
            StoreError: Redis is not reachable.
        """
        async with store_faults("store a file"):
            await self.binary.set(key, content)

    async def close(self) -> None:
        """Gives the connections back."""
        await disconnect(self.text)
        await disconnect(self.binary)
