"""`/control/…`: acts as a person, as another app, as the passage of time, and as trouble.

All calls are POST with a JSON object unless said otherwise, and answer a JSON object with `ok`. Users and channels
are named by id or name.

| path | body |
| --- | --- |
| message | user, channel, text, [thread_ts], [broadcast] -> ts |
| edit / delete | user, channel, ts, [text] |
| reaction | user, channel, ts, name, [remove] |
| upload | user, channel, name, content_base64, [thread_ts], [text] -> ts |
| join | user, channel (with user `rca`: invites the app) |
| command | user, channel, text (`/rca status`), [thread_ts] |
| action | user, action_id, channel and ts or view_id, [block_id], [value], [values] |
| suggest | as action, value = what was typed -> options |
| shortcut | user, channel, ts, callback_id |
| view_submit / view_close | user, [view_id], [values] / [clear] |
| home | user, [tab] -> view |
| alert_bot_message | [app] (alertmanager, grafana, pagerduty or a bot id), [channel], [text], [attachments], [blocks], [thread_ts] -> ts |
| webhook | [sender] (alertmanager, grafana, pagerduty), [body], [resolved]: posts a webhook to the app -> status |
| bot | url: where the app listens |
| clock | advance_s -> now |
| fault | kind, [target], [times], [error], [status], [seconds], [retry_after_s]; faults/clear calls all off |
| rate_limits | enabled |
| socket | reason, [close]: tells the app's connections to go -> connections |
| subscription | switches event delivery on again, as the app's owner would |
| traffic/clear | forgets the record |

GET: `state`, `messages?channel=&thread_ts=&user=`, `traffic?after=`, `wait?revision=&timeout_s=`, `idle?timeout_s=`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.workspace import samples
from bot.workspace.blocks import ChoiceError
from bot.workspace.composer import as_message
from bot.workspace.control_body import ControlBody, ControlError
from bot.workspace.interactions import Interactions
from bot.workspace.modals import Modals
from bot.workspace.records import Channel, Content, Json, Message, User
from bot.workspace.rig import Act, Rig
from bot.workspace.screen import Screen
from bot.workspace.services import Services

_APPS = {"alertmanager": "B0ALERTMGR", "grafana": "B0GRAFANA", "pagerduty": "B0PAGER"}


class Control:
    """The control API."""

    def __init__(
        self,
        services: Services,
        interactions: Interactions,
        modals: Modals,
        screen: Screen,
        rig: Rig,
    ) -> None:
        self._services = services
        self._workspace = services.workspace
        self._interactions = interactions
        self._modals = modals
        self._screen = screen
        self._rig = rig

    def routes(self) -> list[Route]:
        """Every route of the control API."""
        acts: dict[str, Act] = {
            "message": self._message,
            "edit": self._edit,
            "delete": self._delete,
            "reaction": self._reaction,
            "upload": self._upload,
            "join": self._join,
            "command": self._command,
            "action": self._action,
            "suggest": self._suggest,
            "shortcut": self._shortcut,
            "view_submit": self._view_submit,
            "view_close": self._view_close,
            "home": self._home,
            "alert_bot_message": self._alert_bot_message,
            **self._rig.acts(),
        }
        return [
            *(
                Route(f"/control/{path}", self._endpoint(act), methods=["POST"])
                for path, act in acts.items()
            ),
            *(
                Route(f"/control/{path}", read, methods=["GET"])
                for path, read in self._rig.reads().items()
            ),
        ]

    def _endpoint(self, act: Act) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                body = await ControlBody.of(self._workspace, request)
                answer = await act(body)
            except (ControlError, ChoiceError) as error:
                return JSONResponse({"ok": False, "error": str(error)}, status_code=400)
            return JSONResponse({"ok": True, **answer})

        return endpoint

    async def _message(self, body: ControlBody) -> Json:
        user, channel = body.user(), body.channel()
        self._must_be_in(user, channel)
        message = self._workspace.say(
            user.id,
            channel.id,
            as_message(self._workspace, body.text("text")),
            thread_ts=self._root(channel, body.optional_text("thread_ts")),
            is_broadcast=bool(body.get("broadcast")),
        )
        return {"ts": message.ts, "channel": channel.id}

    async def _edit(self, body: ControlBody) -> Json:
        user, message = body.user(), body.message()
        self._must_own(user, message)
        text = as_message(self._workspace, body.text("text"))
        self._workspace.edit(message, Content(text=text), editor=user.id)
        return {}

    async def _delete(self, body: ControlBody) -> Json:
        user, message = body.user(), body.message()
        if message.only_for == user.id:
            self._workspace.remove_ephemeral(message)
            return {}
        self._must_own(user, message)
        self._workspace.delete(message)
        return {}

    async def _reaction(self, body: ControlBody) -> Json:
        user, message, name = body.user(), body.message(), body.text("name").strip(":")
        change = self._workspace.unreact if body.get("remove") else self._workspace.react
        return {"changed": change(message, user.id, name)}

    async def _upload(self, body: ControlBody) -> Json:
        user, channel = body.user(), body.channel()
        self._must_be_in(user, channel)
        try:
            content = base64.b64decode(body.text("content_base64"), validate=True)
        except binascii.Error as error:
            raise ControlError("'content_base64' is no base64") from error
        file = self._workspace.store_file(
            self._workspace.new_id("F"), body.text("name"), content, user=user.id
        )
        message = Message(
            channel=channel.id,
            ts=self._workspace.timestamp(),
            text=as_message(self._workspace, body.optional_text("text") or ""),
            user=user.id,
            thread_ts=self._root(channel, body.optional_text("thread_ts")),
        )
        self._workspace.share_files([file], message)
        return {"ts": message.ts, "file": file.id}

    async def _join(self, body: ControlBody) -> Json:
        user, channel = body.user(), body.channel()
        inviter = body.optional_text("inviter")
        return {"changed": self._workspace.join(channel, user.id, inviter=inviter)}

    async def _command(self, body: ControlBody) -> Json:
        user, channel = body.user(), body.channel()
        outcome = await self._interactions.command(
            user, channel, body.text("text"), thread_ts=body.optional_text("thread_ts")
        )
        return outcome.to_json()

    async def _action(self, body: ControlBody) -> Json:
        user, action_id = body.user(), body.text("action_id")
        block_id, value = body.optional_text("block_id"), body.get("value")
        answers = body.answers()
        if body.get("view_id") or not body.get("ts"):
            outcome = await self._interactions.act_in_view(
                user, body.view(user), action_id, block_id=block_id, value=value, answers=answers
            )
        else:
            outcome = await self._interactions.act_on_message(
                user, body.message(), action_id, block_id=block_id, value=value, answers=answers
            )
        return outcome.to_json()

    async def _suggest(self, body: ControlBody) -> Json:
        user = body.user()
        is_in_view = body.get("view_id") or not body.get("ts")
        outcome = await self._interactions.suggest(
            user,
            body.text("action_id"),
            str(body.get("value") or ""),
            block_id=body.optional_text("block_id"),
            message=None if is_in_view else body.message(),
            view=body.view(user) if is_in_view else None,
        )
        return outcome.to_json()

    async def _shortcut(self, body: ControlBody) -> Json:
        callback_id = body.text("callback_id")
        if callback_id not in {s.callback_id for s in self._services.config.shortcuts}:
            raise ControlError(f"the app has no message shortcut {callback_id!r}")
        outcome = await self._interactions.shortcut(body.user(), body.message(), callback_id)
        return outcome.to_json()

    async def _view_submit(self, body: ControlBody) -> Json:
        user = body.user()
        outcome = await self._modals.submit(user, body.view(user), body.answers())
        return outcome.to_json()

    async def _view_close(self, body: ControlBody) -> Json:
        user = body.user()
        outcome = await self._modals.close(
            user, body.view(user), is_clearing=bool(body.get("clear"))
        )
        return outcome.to_json()

    async def _home(self, body: ControlBody) -> Json:
        user = body.user()
        tab = body.optional_text("tab") or "home"
        if tab not in ("home", "messages"):
            raise ControlError("'tab' is home or messages")
        self._workspace.open_home(user.id, tab)
        return {"view": self._screen.home(user.id)}

    async def _alert_bot_message(self, body: ControlBody) -> Json:
        named = body.optional_text("app") or "alertmanager"
        app = self._workspace.apps.get(_APPS.get(named, named))
        if app is None:
            raise ControlError(f"no app {named!r}; there are: {', '.join(_APPS)}")
        channel = body.channel() if body.get("channel") else self._workspace.find_channel("alerts")
        if channel is None:
            raise ControlError("there is no #alerts; name a channel")
        given = {key: body.get(key) for key in ("text", "attachments", "blocks")}
        content = given if any(given.values()) else samples.bot_message(app.bot_id)
        message = Message(
            channel=channel.id,
            ts=self._workspace.timestamp(),
            text=content.get("text") or "",
            attachments=[
                {"id": index, **item}
                for index, item in enumerate(content.get("attachments") or [], start=1)
            ],
            blocks=content.get("blocks") or [],
            bot_id=app.bot_id,
            app_id=app.id,
            username=app.name,
            icon_emoji=app.emoji,
            subtype="bot_message",
            thread_ts=self._root(channel, body.optional_text("thread_ts")),
        )
        self._workspace.post(message)
        return {"ts": message.ts, "channel": channel.id}

    def _must_be_in(self, user: User, channel: Channel) -> None:
        if user.id not in channel.members:
            raise ControlError(f"{user.id} is not in {channel.id}; join first")

    def _must_own(self, user: User, message: Message) -> None:
        if message.user != user.id or message.bot_id is not None:
            raise ControlError(f"message {message.ts} is not {user.id}'s own")

    def _root(self, channel: Channel, thread_ts: str | None) -> str | None:
        if thread_ts is None:
            return None
        message = channel.messages.get(thread_ts)
        if message is None:
            raise ControlError(f"no message {thread_ts} in {channel.id} to reply to")
        return message.thread_ts if message.is_reply else message.ts
