"""What one person can do in a running workspace."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bot.errors import DeliveryError, Reason
from bot.workspace.seen import PATIENCE_SECONDS, Done, Json, SeenMessage

if TYPE_CHECKING:
    # The client hands out people, so it imports this module.
    from bot.workspace.client import WorkspaceClient


class Person:
    """What one person can do in the workspace."""

    def __init__(self, workspace: WorkspaceClient, user: str) -> None:
        self._workspace = workspace
        self.user = user

    async def say(self, channel: str, text: str, *, thread_ts: str | None = None) -> str:
        """Posts a message, in a thread if asked; `@rca` and `#incidents` become mentions. Gives its ts."""
        body = {"channel": channel, "text": text, "thread_ts": thread_ts}
        return str((await self._act("message", body)).raw["ts"])

    async def edit(self, channel: str, ts: str, text: str) -> None:
        """Changes one of their own messages."""
        await self._act("edit", {"channel": channel, "ts": ts, "text": text})

    async def delete(self, channel: str, ts: str) -> None:
        """Deletes one of their own messages."""
        await self._act("delete", {"channel": channel, "ts": ts})

    async def upload(
        self,
        channel: str,
        name: str,
        content: bytes,
        *,
        thread_ts: str | None = None,
        text: str = "",
    ) -> str:
        """Posts a file; gives the ts of its message."""
        body = {
            "channel": channel,
            "name": name,
            "content_base64": base64.b64encode(content).decode(),
            "thread_ts": thread_ts,
            "text": text,
        }
        return str((await self._act("upload", body)).raw["ts"])

    async def command(self, channel: str, text: str, *, thread_ts: str | None = None) -> Done:
        """Types a slash command, `/rca` and all; ends when the app has acknowledged, or not."""
        body = {"channel": channel, "text": text, "thread_ts": thread_ts}
        return await self._act("command", body)

    async def click(
        self,
        channel: str,
        ts: str,
        action_id: str,
        value: Any = None,
        *,
        block_id: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> Done:
        """Presses a button (`value` tells apart those of one action_id) or chooses in a select of a message."""
        body = {"channel": channel, "ts": ts, "action_id": action_id, "value": value}
        return await self._act(
            "action", body | {"block_id": block_id, "values": dict(values or {})}
        )

    async def click_in_view(
        self,
        action_id: str,
        value: Any = None,
        *,
        view_id: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> Done:
        """Presses or chooses in a modal (the top one) or, by its id, the Home tab."""
        body = {"action_id": action_id, "value": value, "view_id": view_id}
        return await self._act("action", body | {"values": dict(values or {})})

    async def suggestions(
        self, action_id: str, typed: str, *, view_id: str | None = None
    ) -> list[Json]:
        """Types into an external select of a modal; gives the app's options."""
        body = {"action_id": action_id, "value": typed, "view_id": view_id}
        return list((await self._act("suggest", body)).raw.get("options", []))

    async def shortcut(self, channel: str, ts: str, callback_id: str = "rca_start_here") -> Done:
        """Uses a message shortcut."""
        body = {"channel": channel, "ts": ts, "callback_id": callback_id}
        return await self._act("shortcut", body)

    async def submit(self, values: Mapping[str, Any], *, view_id: str | None = None) -> Done:
        """Submits a modal, the top one unless named; `values` are by action_id, block_id or both with a slash."""
        return await self._act("view_submit", {"view_id": view_id, "values": dict(values)})

    async def close(self, *, view_id: str | None = None, is_clearing: bool = False) -> Done:
        """Closes a modal, or with `is_clearing` all of them."""
        return await self._act("view_close", {"view_id": view_id, "clear": is_clearing})

    async def react(self, channel: str, ts: str, name: str) -> bool:
        """Puts an emoji on a message; False if theirs is there already."""
        body = {"channel": channel, "ts": ts, "name": name}
        return bool((await self._act("reaction", body)).raw["changed"])

    async def unreact(self, channel: str, ts: str, name: str) -> bool:
        """Takes their emoji off a message; False if it was not there."""
        body = {"channel": channel, "ts": ts, "name": name, "remove": True}
        return bool((await self._act("reaction", body)).raw["changed"])

    async def join(self, channel: str) -> bool:
        """Comes into a channel; False if already there."""
        return bool((await self._act("join", {"channel": channel})).raw["changed"])

    async def invite_app(self, channel: str) -> bool:
        """Brings the app into a channel; False if it was there."""
        body = {"user": "rca", "inviter": self.user, "channel": channel}
        return bool((await self._workspace.post("join", body))["changed"])

    async def open_home(self, tab: str = "home") -> Json | None:
        """Opens the app's Home tab; gives what was published before."""
        view = (await self._act("home", {"tab": tab})).raw["view"]
        return view if view is None else dict(view)

    async def home(self) -> Json | None:
        """The Home tab that they see now."""
        home = (await self._workspace.state())["homes"].get(self.user)
        return home if home is None else dict(home)

    async def views(self) -> list[Json]:
        """Their open modals, the top one last."""
        return list((await self._workspace.state())["views"].get(self.user, []))

    async def wait_for_view(
        self,
        predicate: Callable[[Json], bool] | None = None,
        timeout: float = PATIENCE_SECONDS,  # noqa: ASYNC109  as above
    ) -> Json:
        """Their top modal, once there is one that satisfies the predicate.

        Raises:
            DeliveryError: it did not in time.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            state = await self._workspace.state()
            views = state["views"].get(self.user, [])
            if views and (predicate is None or predicate(views[-1])):
                return dict(views[-1])
            await self._workspace.get("wait", revision=str(state["revision"]), timeout_s="1")
        raise DeliveryError(
            f"workspace: {self.user} got no such modal within {timeout:g} s", reason=Reason.TIMEOUT
        )

    async def history(self, channel: str) -> list[SeenMessage]:
        """What they see in a channel itself, oldest first."""
        seen = await self._workspace.messages(channel, user=self.user)
        return [m for m in seen if not m.is_reply]

    async def thread(self, channel: str, ts: str) -> list[SeenMessage]:
        """What they see in a thread, its root first."""
        return await self._workspace.messages(channel, thread_ts=ts, user=self.user)

    async def wait_for(
        self,
        predicate: Callable[[SeenMessage], bool],
        timeout: float = PATIENCE_SECONDS,  # noqa: ASYNC109  as above
        *,
        channel: str | None = None,
        thread_ts: str | None = None,
    ) -> SeenMessage:
        """The first message that they see and that satisfies the predicate.

        Raises:
            DeliveryError: none came in time.
        """
        return await self._workspace.wait_for(
            predicate, timeout, channel=channel, thread_ts=thread_ts, user=self.user
        )

    async def _act(self, path: str, body: Mapping[str, Any]) -> Done:
        given = {key: value for key, value in body.items() if value is not None}
        return Done.from_json(await self._workspace.post(path, {"user": self.user, **given}))
