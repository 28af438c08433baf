"""Acts as people in a running workspace, over its control API: for the demo, for scripts, for tests."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from bot.errors import DeliveryError, Reason
from bot.workspace.seen import Button, Done, Json, SeenMessage

__all__ = ["Button", "Done", "Json", "Person", "SeenMessage", "WorkspaceClient"]

_CALL_SECONDS = 15.0
_LONG_POLL_SECONDS = 10.0


class WorkspaceClient:
    """A connection to a running workspace. Use it as an async context manager."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/"), timeout=_CALL_SECONDS, trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    def person(self, user: str) -> Person:
        """The hands of one person, by id or name."""
        return Person(self, user)

    async def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """One control call.

        Raises:
            DeliveryError: the workspace is not there, or says that the call cannot be done.
        """
        try:
            response = await self._http.post(f"/control/{path}", json=dict(body))
        except httpx.HTTPError as error:
            raise DeliveryError(
                f"workspace: {path}: {type(error).__name__}; is it running?",
                reason=Reason.REFUSED,
            ) from error
        return _read(path, response)

    async def get(self, path: str, **query: str) -> Json:
        """One read of the control API.

        Raises:
            DeliveryError: the workspace is not there.
        """
        try:
            response = await self._http.get(f"/control/{path}", params=query)
        except httpx.HTTPError as error:
            raise DeliveryError(
                f"workspace: {path}: {type(error).__name__}; is it running?",
                reason=Reason.REFUSED,
            ) from error
        return _read(path, response)

    async def state(self) -> Json:
        """A dump of everything."""
        return await self.get("state")

    async def messages(
        self, channel: str | None = None, *, thread_ts: str | None = None, user: str | None = None
    ) -> list[SeenMessage]:
        """Messages by ts: of the workspace, a channel, or a thread with its root; `user` limits ephemeral ones."""
        query = {"channel": channel, "thread_ts": thread_ts, "user": user}
        given = {key: value for key, value in query.items() if value is not None}
        answer = await self.get("messages", **given)
        return [SeenMessage.from_json(raw) for raw in answer["messages"]]

    async def wait_for(
        self,
        predicate: Callable[[SeenMessage], bool],
        timeout: float = 10.0,  # noqa: ASYNC109  the deadline is part of what is asked
        *,
        channel: str | None = None,
        thread_ts: str | None = None,
        user: str | None = None,
    ) -> SeenMessage:
        """The first message, in order of ts, that satisfies the predicate, as soon as there is one.

        Raises:
            DeliveryError: none came in time; the message lists what was there.
        """
        deadline = time.monotonic() + timeout
        while True:
            revision = (await self.get("wait", revision="0", timeout_s="0"))["revision"]
            seen = await self.messages(channel, thread_ts=thread_ts, user=user)
            if (found := next((m for m in seen if predicate(m)), None)) is not None:
                return found
            left = deadline - time.monotonic()
            if left <= 0:
                last = " | ".join(m.all_text[:120].replace("\n", " ") for m in seen[-5:])
                raise DeliveryError(
                    f"workspace: no such message within {timeout:g} s; the last were: {last}",
                    reason=Reason.TIMEOUT,
                )
            await self.get(
                "wait", revision=str(revision), timeout_s=f"{min(left, _LONG_POLL_SECONDS):.3f}"
            )

    async def alert_message(
        self,
        app: str = "alertmanager",
        channel: str = "C0ALERTS",
        *,
        text: str = "",
        attachments: list[Json] | None = None,
        blocks: list[Json] | None = None,
    ) -> str:
        """Another app posts an alert (a sample one if nothing is given); gives its ts."""
        body: Json = {"app": app, "channel": channel, "text": text}
        body |= {"attachments": attachments or [], "blocks": blocks or []}
        answer = await self.post("alert_bot_message", body)
        return str(answer["ts"])

    async def webhook(self, body: Json | None = None, *, is_resolved: bool = False) -> Done:
        """Posts an Alertmanager webhook to the app, as a sender would."""
        sent: Json = {"resolved": is_resolved} | ({"body": body} if body else {})
        return Done.from_json(await self.post("webhook", sent))

    async def set_bot_url(self, url: str) -> None:
        """Tells the workspace where the app listens."""
        await self.post("bot", {"url": url})

    async def advance_clock(self, seconds: float) -> None:
        """Lets time pass: retries fall due, response URLs expire."""
        await self.post("clock", {"advance_s": seconds})

    async def inject(self, kind: str, target: str = "*", *, times: int = 1, **more: Any) -> None:
        """Orders trouble; kinds are those of `bot.workspace.faults.FaultKind`."""
        await self.post("fault", {"kind": kind, "target": target, "times": times, **more})

    async def rate_limits(self, *, enabled: bool) -> None:
        """Turns Slack's rate limits on or off."""
        await self.post("rate_limits", {"enabled": enabled})

    async def traffic(self, what: str | None = None) -> list[Json]:
        """What went over the wire, both ways, oldest first; `what` is a method, an event type or a payload type."""
        answer = await self.get("traffic", after="0")
        return [e for e in answer["traffic"] if what in (None, e["what"])]

    async def settle(self, timeout: float = 10.0) -> bool:  # noqa: ASYNC109  as above
        """Waits until the app has acknowledged every event, or retries have ended."""
        return bool((await self.get("idle", timeout_s=f"{timeout:.3f}"))["idle"])


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
        self, channel: str, name: str, content: bytes, *, thread_ts: str | None = None, text: str = ""
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
        return await self._act("action", body | {"block_id": block_id, "values": dict(values or {})})

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

    async def suggestions(self, action_id: str, typed: str, *, view_id: str | None = None) -> list[Json]:
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
        timeout: float = 10.0,  # noqa: ASYNC109  as above
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
        timeout: float = 10.0,  # noqa: ASYNC109  as above
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


def _read(path: str, response: httpx.Response) -> Json:
    try:
        answer = response.json()
    except ValueError:
        answer = {}
    if response.status_code != 200 or not isinstance(answer, dict):
        why = answer.get("error") if isinstance(answer, dict) else None
        raise DeliveryError(
            f"workspace: {path}: {why or response.status_code}; see the control API's description",
            reason=Reason.MALFORMED,
        )
    return answer
