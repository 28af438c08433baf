"""What is remembered of alerts beside the timelines: who holds a group, what is over, how often it came, storms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.store import timeline
from bot.store.connection import store_faults
from bot.store.index import NUMBERS, ONCE_SECONDS, correlation_key
from bot.store.transaction import Batch, Store

# Alertmanager repeats for hours; what overtakes its own resolve by more than a day is no late delivery.
OVER_SECONDS = 24 * 3600
MINUTE_SECONDS = 60
_HEARTBEATS = "rca:heartbeats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """held: which incident holds each correlation key. over: start of the newest episode that is over, by fingerprint.

    Keys that nobody holds, and fingerprints of which nothing is over, are left out.
    """

    held: Mapping[str, str]
    over: Mapping[str, datetime]


async def recall(store: Store, keys: Sequence[str], fingerprints: Sequence[str]) -> Recalled:
    """What is remembered of a group, in one look.

    Raises:
        StoreError: Redis is not reachable.
    """
    names = [*map(correlation_key, keys), *map(_over_key, fingerprints)]
    async with store_faults("find an incident"):
        values = await store.text.mget(names)
    return Recalled(
        held={key: str(value) for key, value in zip(keys, values, strict=False) if value},
        over={
            item: parse_rfc3339(str(value))
            for item, value in zip(fingerprints, values[len(keys) :], strict=True)
            if value
        },
    )


def _over_key(fingerprint: str) -> str:
    return f"rca:over:{_digest(fingerprint)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def over(fingerprint: str, starts_at: datetime) -> Batch:
    """The step that remembers an episode as over, so that its own late firing opens nothing."""
    value = to_rfc3339(starts_at)
    return Batch().write("SET", _over_key(fingerprint), value, "EX", OVER_SECONDS)


def repeated(incident_id: str) -> Batch:
    """The step that counts a notification that said nothing new."""
    return Batch().write("INCR", timeline.repeats_key(incident_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What became of one alert: the labels that its fingerprint stands for, and the rule that decided."""

    fingerprint: str
    at: datetime
    labels: Mapping[str, str]
    rule: str


def note(sightings: Sequence[Sighting]) -> Batch:
    """The step that notes what became of alerts; the newest 20 notes of a fingerprint are kept a week."""
    batch = Batch()
    for item in sightings:
        key = f"rca:seen:{item.fingerprint}"
        batch.write("LPUSH", key, f"{to_rfc3339(item.at)} {item.rule}")
        batch.write("LTRIM", key, 0, 19).write("EXPIRE", key, ONCE_SECONDS)
        labels = json.dumps(dict(item.labels), ensure_ascii=False)
        batch.write("SET", f"rca:seen:{item.fingerprint}:labels", labels, "EX", ONCE_SECONDS)
    return batch


async def labels_of(store: Store, fingerprint: str) -> dict[str, str] | None:
    """The labels that a fingerprint stood for when it came last.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read what became of an alert"):
        body = await store.text.get(f"rca:seen:{fingerprint}:labels")
    return dict(json.loads(body)) if body is not None else None


async def new_group(store: Store, channel: str, group: str, now: datetime) -> tuple[int, str]:
    """Counts `group` among the new ones of a channel: how many came within a minute, this one included, and a free id.

    One transaction, so that parallel deliveries get different numbers; the same group counts once.

    Raises:
        StoreError: Redis is not reachable.
    """
    key = f"rca:newgroups:{channel}"
    begin = (now - timedelta(seconds=MINUTE_SECONDS)).timestamp()
    async with store_faults("count new alerts"), store.text.pipeline(transaction=True) as pipeline:
        pipeline.zremrangebyscore(key, "-inf", begin)
        pipeline.zadd(key, {_digest(group): now.timestamp()})
        pipeline.zcard(key)
        pipeline.expire(key, 2 * MINUTE_SECONDS)
        pipeline.incr(NUMBERS)
        answers = await pipeline.execute()
    return int(answers[2]), f"INC-{int(answers[4])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What `new_group` would answer, and the step that does it: it fails where another incident was opened meanwhile."""

    count: int
    free_id: str
    step: Batch


async def foresee(store: Store, channel: str, group: str, now: datetime) -> Foreseen | None:
    """Counts as `new_group` does and writes nothing yet; None before the first incident of all.

    Every opening takes a number, so that as long as the newest number stands the count stands too. One durable write
    for an opening instead of two: each costs a turn of the disk.

    Raises:
        StoreError: Redis is not reachable.
    """
    key, name = f"rca:newgroups:{channel}", _digest(group)
    begin = (now - timedelta(seconds=MINUTE_SECONDS)).timestamp()
    async with store_faults("count new alerts"), store.text.pipeline(transaction=True) as pipeline:
        pipeline.get(NUMBERS)
        pipeline.zcount(key, f"({begin}", "+inf")
        pipeline.zscore(key, name)
        last, count, score = await pipeline.execute()
    if last is None:
        return None
    is_counted = score is not None and float(score) > begin
    step = Batch().equals(NUMBERS, str(last)).write("INCR", NUMBERS)
    step.write("ZREMRANGEBYSCORE", key, "-inf", begin)
    step.write("ZADD", key, now.timestamp(), name).write("EXPIRE", key, 2 * MINUTE_SECONDS)
    count = int(count) + (not is_counted)
    return Foreseen(count=count, free_id=f"INC-{int(last) + 1}", step=step)


def _members_key(storm_id: str) -> str:
    return f"rca:storm:{storm_id}:members"


def join_storm(storm_id: str, incident_id: str, title: str) -> Batch:
    """The step that puts an incident on a storm's list."""
    body = json.dumps({"id": incident_id, "title": title}, ensure_ascii=False)
    return Batch().write("RPUSH", _members_key(storm_id), body)


async def storm_members(store: Store, storm_id: str, start: int, most: int) -> list[dict[str, Any]]:
    """Members from place `start` (from 0), at most `most`: `id`, `title`.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read a storm"):
        found = await store.text.lrange(_members_key(storm_id), start, start + most - 1)
    return [dict(json.loads(item)) for item in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """An alert that fires for ever by design; its silence is the news. `last_at`: when it came last, by our clock."""

    fingerprint: str
    name: str
    labels: Mapping[str, str]
    last_at: datetime

    def to_json(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "fingerprint": self.fingerprint,
            "name": self.name,
            "labels": dict(self.labels),
            "last_at": to_rfc3339(self.last_at),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Heartbeat:
        """Reads `to_json`'s shape."""
        return cls(
            fingerprint=value["fingerprint"],
            name=value["name"],
            labels=dict(value["labels"]),
            last_at=parse_rfc3339(value["last_at"]),
        )


def keep_heartbeat(beat: Heartbeat) -> Batch:
    """The step that records that a heartbeat came."""
    body = json.dumps(beat.to_json(), ensure_ascii=False)
    return Batch().write("HSET", _HEARTBEATS, _digest(beat.fingerprint), body)


async def heartbeat(store: Store, fingerprint: str) -> Heartbeat | None:
    """The newest record of one heartbeat.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read a heartbeat"):
        body = await store.text.hget(_HEARTBEATS, _digest(fingerprint))
    return Heartbeat.from_json(json.loads(body)) if body is not None else None


async def take_slot(
    store: Store, channel: str, name: str, now: datetime, most: int
) -> datetime | None:
    """Takes one of the channel's `most` follow-up posts an hour; None when it is taken, else when one comes free.

    name: whoever asks again under it keeps the slot it has.

    Raises:
        StoreError: Redis is not reachable.
    """
    key = f"rca:followup:posts:{channel}"
    hour = timedelta(hours=1)
    while True:
        async with store_faults("count follow-ups"):
            held = await store.text.get(key)
        slots = [
            item for item in json.loads(held or "[]") if parse_rfc3339(item["at"]) > now - hour
        ]
        if any(item["name"] == name for item in slots):
            return None
        if len(slots) >= most:
            return min(parse_rfc3339(item["at"]) for item in slots) + hour
        slots.append({"name": name, "at": to_rfc3339(now)})
        step = Batch().equals(key, str(held)) if held is not None else Batch().absent(key)
        step.write("SET", key, json.dumps(slots), "EX", 3600)
        if (await store.commit(step, doing="count follow-ups")).is_done:
            return None
