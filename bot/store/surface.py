"""What the chat surface remembers beside the timelines: buttons, posts, people's names, whose message is whose."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.store.connection import store_faults
from bot.store.people import USERS
from bot.store.transaction import Batch, Store

# A button below a message of last quarter should still work; one of last year need not.
BUTTON_SECONDS = 180 * 24 * 3600
# How long a repeated job may find out what became of its message.
POST_SECONDS = 30 * 24 * 3600
GONE_SECONDS = 7 * 24 * 3600
NAME_SECONDS = 24 * 3600
_IDENTITY = "rca:chat:identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostState:
    """How far a message got. `since`: when it was first tried; `ts` once the chat took it; `files` once uploaded.

    is_old: read from an earlier attempt.
    """

    since: datetime
    ts: str | None = None
    files: tuple[str, ...] = ()
    is_old: bool = False

    def to_json(self) -> dict[str, Any]:
        """What is stored."""
        return {"since": to_rfc3339(self.since), "ts": self.ts, "files": list(self.files)}


def _button_key(button_id: str) -> str:
    return f"rca:button:{button_id}"


def remember_button(button_id: str, meaning: Mapping[str, Any]) -> Batch:
    """The step that stores what an opaque id means."""
    body = json.dumps(dict(meaning), ensure_ascii=False, sort_keys=True)
    return Batch().write("SET", _button_key(button_id), body, "EX", BUTTON_SECONDS)


async def button(store: Store, button_id: str) -> Mapping[str, Any] | None:
    """What an opaque id means, or None when it is unknown or too old.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find what a button means"):
        body = await store.text.get(_button_key(button_id))
    return dict(json.loads(body)) if body is not None else None


def _post_key(key: str) -> str:
    return f"rca:post:{key}"


def post_progress(key: str, state: PostState) -> Batch:
    """The step that records how far a message got."""
    return Batch().write("SET", _post_key(key), json.dumps(state.to_json()), "EX", POST_SECONDS)


def post_begun(key: str, state: PostState) -> Batch:
    """The step of a first attempt; after an earlier one it answers EXISTS with how far that got."""
    return Batch().absent(_post_key(key)).extend(post_progress(key, state))


async def post_state(store: Store, key: str) -> PostState | None:
    """How far the message under `key` got; None when it was never tried.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find what became of a message"):
        body = await store.text.get(_post_key(key))
    return read_post_state(str(body)) if body is not None else None


def read_post_state(body: str) -> PostState:
    """Reads what `post_progress` stored."""
    value = json.loads(body)
    return PostState(
        since=parse_rfc3339(value["since"]),
        ts=value["ts"],
        files=tuple(value["files"]),
        is_old=True,
    )


def _shown_key(name: str) -> str:
    return f"rca:shown:{name}"


def remember_shown(name: str, digest: str) -> Batch:
    """The step that records what a message in place shows now."""
    return Batch().write("SET", _shown_key(name), digest)


async def shown(store: Store, name: str) -> str | None:
    """The digest of what a message in place shows, or None.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find what a message shows"):
        value = await store.text.get(_shown_key(name))
    return str(value) if value is not None else None


def _message_key(channel: str, ts: str) -> str:
    return f"rca:msg:{channel}:{ts}"


def remember_message(channel: str, ts: str, incident_id: str) -> Batch:
    """The step by which a message in an incident's thread is found by its ts."""
    return Batch().write("SET", _message_key(channel, ts), incident_id)


async def incident_of_message(store: Store, channel: str, ts: str) -> str | None:
    """The incident in whose thread this very message is, or None.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find a message"):
        value = await store.text.get(_message_key(channel, ts))
    return str(value) if value is not None else None


def _gone_key(channel: str, ts: str) -> str:
    return f"rca:gone:{channel}:{ts}"


def remember_archived(channel: str) -> Batch:
    """The step that records that nothing can be said in a channel; it is forgotten by itself, in case nobody says so."""
    return Batch().write("SET", _archived_key(channel), "1", "EX", GONE_SECONDS)


def forget_archived(channel: str) -> Batch:
    """The step that records that a channel is open again."""
    return Batch().write("DEL", _archived_key(channel))


async def is_archived(store: Store, channel: str) -> bool:
    """Whether a channel is known to be archived.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("look at a channel"):
        return bool(await store.text.exists(_archived_key(channel)))


def _archived_key(channel: str) -> str:
    return f"rca:chat:archived:{channel}"


def remember_gone(channel: str, ts: str) -> Batch:
    """The step that records a deletion, which may overtake the message itself."""
    return Batch().write("SET", _gone_key(channel, ts), "1", "EX", GONE_SECONDS)


async def is_gone(store: Store, channel: str, ts: str) -> bool:
    """Whether this message's deletion was seen.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("find a message"):
        return bool(await store.text.exists(_gone_key(channel, ts)))


async def people(store: Store, ids: Sequence[str]) -> dict[str, str]:
    """The names that are known, by user id.

    Raises:
        StoreError: Redis is not reachable.
    """
    if not ids:
        return {}
    async with store_faults("read names"):
        values = await store.text.mget([f"rca:name:{item}" for item in ids])
    return {item: str(value) for item, value in zip(ids, values, strict=True) if value}


def remember_person(user: str, name: str) -> Batch:
    """The step that keeps a person's name: for a day as fresh, for good as the last one known."""
    step = Batch().write("SET", f"rca:name:{user}", name, "EX", NAME_SECONDS)
    return step.write("HSET", USERS, user, name)


def remember_language(user: str, tag: str) -> Batch:
    """The step that keeps, for a day, which language a person uses the chat in; empty where the chat did not say."""
    return Batch().write("SET", f"rca:lang:{user}", tag, "EX", NAME_SECONDS)


async def language(store: Store, user: str) -> str | None:
    """A person's language tag as the chat gave it (`zh-CN`), or None when it has not been asked for today.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read a person's language"):
        value = await store.text.get(f"rca:lang:{user}")
    return str(value) if value is not None else None


async def identity(store: Store) -> Mapping[str, str] | None:
    """Who the bot is in the chat, as last heard.

    Raises:
        StoreError: Redis is not reachable.
    """
    async with store_faults("read the bot's own name"):
        body = await store.text.get(_IDENTITY)
    return dict(json.loads(body)) if body is not None else None


def remember_identity(value: Mapping[str, str]) -> Batch:
    """The step that keeps who the bot is."""
    return Batch().write("SET", _IDENTITY, json.dumps(dict(value), ensure_ascii=False))


def park(kind: str, body: Mapping[str, Any]) -> Batch:
    """The step that sets aside work that failed for good, so that a person can look at it; the last 500 are kept."""
    key = f"rca:parked:{kind}"
    text = json.dumps(dict(body), ensure_ascii=False)
    return Batch().write("LPUSH", key, text).write("LTRIM", key, 0, 499)
