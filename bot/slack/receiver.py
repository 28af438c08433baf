"""Takes everything that Slack delivers: durable first, then the acknowledgement; the work is done from the queue."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, Protocol

import structlog
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.checkpoint import reached
from bot.domain.text import Locale
from bot.errors import DeliveryError, StoreError
from bot.jobs.doorway import Doorway
from bot.locales import say
from bot.slack import forms
from bot.slack.directory import remembered_locale
from bot.slack.reading import NEW_SUBTYPES
from bot.slack.web import Web
from bot.store import index, queue
from bot.store.queue import Job
from bot.store.transaction import Store

log = structlog.get_logger(__name__)

INBOUND = "slack.inbound"


class Suggest(Protocol):
    """Options of an external select: what was typed in, options out; from memory only."""

    def __call__(self, action_id: str, typed: str, locale: Locale) -> list[dict[str, Any]]: ...


class Receiver:
    """One global middleware for every payload; no listener is ever needed, so none can be missing."""

    def __init__(
        self,
        store: Store,
        web: Web,
        clock: Callable[[], datetime],
        wake: Callable[[], None],
        suggest: Suggest,
        locale: Locale,
        doorway: Doorway,
    ) -> None:
        self._store = store
        self._web = web
        self._clock = clock
        self._wake = wake
        self._suggest = suggest
        self._locale = locale
        self._doorway = doorway
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, req: AsyncBoltRequest) -> BoltResponse:
        """Makes the payload durable and acknowledges it; a store that is away is said to whoever can act on it."""
        with self._doorway.entered():
            return await self._taken(req)

    async def _taken(self, req: AsyncBoltRequest) -> BoltResponse:
        reached("slack.received")
        body = req.body
        kind = _kind(body)
        if kind == "block_suggestion":
            return await self._options(body)
        if body.get("type") == "app_rate_limited":
            # What was said in that minute never comes; the record is then known to have a hole.
            log.error("slack.events_missed", minute=str(body.get("minute_rate_limited"))[:20])
            return BoltResponse(status=200, body="")
        if kind is None:
            # Whatever Slack invents next: acknowledged, or it comes again for nothing.
            log.warning("slack.unknown_payload", type=str(body.get("type"))[:60])
            return BoltResponse(status=200, body="")
        if kind == "view":
            faults = forms.faults(body, self._clock(), await self._locale_of(body))
            if faults:
                return _json({"response_action": "errors", "errors": faults})
        try:
            try:
                await self._keep(kind, body)
            except UnicodeEncodeError:
                # Half of a character pair, which JSON can carry and UTF-8 cannot.
                body = _whole(body)
                await self._keep(kind, body)
        except StoreError as error:
            log.error("slack.not_durable", kind=kind, reason=error.reason.value, error=str(error))
            return self._regret(kind, body)
        reached("slack.durable")
        self._wake()
        return BoltResponse(status=200, body="")

    async def drain(self, seconds: float) -> None:
        """Lets answers that are on their way arrive."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def _keep(self, kind: str, body: Mapping[str, Any]) -> None:
        payload = {key: value for key, value in body.items() if key != "token"}
        job = Job(kind=INBOUND, lane=_lane(kind, body), payload={"type": kind, "body": payload})
        step = index.once(f"in:{_name(kind, body)}", job.id)
        step.extend(queue.enqueue(job, self._clock()))
        kept = await self._store.commit(step, doing="keep what Slack delivered")
        if not kept.is_done:
            log.info("slack.repeat", kind=kind)

    async def _options(self, body: Mapping[str, Any]) -> BoltResponse:
        locale = await self._locale_of(body)
        options = self._suggest(
            str(body.get("action_id") or ""), str(body.get("value") or "")[:100], locale
        )
        return _json({"options": options[:100]})

    async def _locale_of(self, body: Mapping[str, Any]) -> Locale:
        """The language of whoever fills in a form, as far as it is known without asking Slack."""
        user = str(_object(body, "user").get("id") or "")
        try:
            return await remembered_locale(self._store, user, self._locale)
        except StoreError:
            return self._locale

    def _regret(self, kind: str, body: Mapping[str, Any]) -> BoltResponse:
        text = say("commands.store_down").in_locale(self._locale)
        match kind:
            case "event":
                # Slack sends an event again; a command or a press never.
                return BoltResponse(status=503, body="")
            case "command":
                return _json({"response_type": "ephemeral", "text": f":warning: {text}"})
            case "view":
                errors = forms.store_down(body, self._locale)
                return _json({"response_action": "errors", "errors": errors})
            case _:
                if url := body.get("response_url"):
                    self._spawn(self._say(str(url), text))
                return BoltResponse(status=200, body="")

    async def _say(self, url: str, text: str) -> None:
        body = {
            "response_type": "ephemeral",
            "replace_original": False,
            "text": f":warning: {text}",
        }
        try:
            await self._web.respond(url, body)
        except DeliveryError as error:
            log.error("slack.regret_not_said", error=str(error))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _whole(value: Any) -> Any:
    """The same payload with a replacement mark for every half of a character pair."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case Mapping():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
        case _:
            return value


def _json(body: Mapping[str, Any]) -> BoltResponse:
    return BoltResponse(
        status=200,
        body=json.dumps(body, ensure_ascii=False),
        headers={"content-type": ["application/json;charset=utf-8"]},
    )


def _kind(body: Mapping[str, Any]) -> str | None:
    match body.get("type"):
        case "event_callback" if isinstance(body.get("event"), Mapping):
            return "event"
        case "block_actions":
            return "action"
        case "view_submission":
            return "view"
        case "view_closed":
            return "closed"
        case "shortcut" | "message_action":
            return "shortcut"
        case "block_suggestion":
            return "block_suggestion"
        case None if body.get("command"):
            return "command"
        case _:
            return None


def _name(kind: str, body: Mapping[str, Any]) -> str:
    """What makes a delivery the same as another one; a repeat may come under a new event id."""
    match kind:
        case "event":
            return _event_name(body)
        case "view" | "closed":
            view = _object(body, "view")
            return f"{kind}:{view.get('id') or _trigger(body)}:{view.get('hash')}"
        case "command":
            said = [body.get(key) for key in ("user_id", "channel_id", "command", "text")]
            return f"command:{_trigger(body)}:{_digest(said)}"
        case _:
            return f"{kind}:{_trigger(body)}:{_digest(body.get('actions'))}"


def _trigger(body: Mapping[str, Any]) -> str:
    """What is new with every press and every command; without it nothing can be told to be a repeat."""
    return str(body.get("trigger_id") or body.get("action_ts") or uuid.uuid4().hex)


def _object(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`; an empty one where something else stands there: what is odd is parked, not refused."""
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _event_name(body: Mapping[str, Any]) -> str:
    event = body["event"]
    channel = event.get("channel")
    match event.get("type"):
        case "message" if event.get("subtype") in NEW_SUBTYPES:
            return f"message:{channel}:{event.get('ts')}"
        case "message" if event.get("subtype") == "message_changed":
            message = _object(event, "message")
            edited = _object(message, "edited").get("ts") or event.get("event_ts")
            return f"changed:{channel}:{message.get('ts')}:{edited}"
        case "message" if event.get("subtype") == "message_deleted":
            return f"deleted:{channel}:{event.get('deleted_ts')}"
        case "app_mention":
            return f"mention:{channel}:{event.get('ts')}"
        case "reaction_added" | "reaction_removed":
            item = _object(event, "item")
            return (
                f"{event['type']}:{item.get('channel')}:{item.get('ts')}:{event.get('user')}:"
                f"{event.get('reaction')}:{event.get('event_ts')}"
            )
        case _:
            return f"event:{body.get('event_id')}"


def _lane(kind: str, body: Mapping[str, Any]) -> str:
    """A channel's events stay in order; what a person presses does not wait behind them."""
    if kind == "event":
        event = body["event"]
        channel = event.get("channel")
        if not isinstance(channel, str):
            channel = _object(event, "item").get("channel") or "other"
        return f"in:{channel}"
    user = body.get("user_id") or _object(body, "user").get("id")
    return f"in:user:{user}"
