"""Acts as people in a running workspace, over its control API: for the demo, for scripts, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from bot.errors import DeliveryError, Reason
from bot.workspace.person import Person
from bot.workspace.seen import PATIENCE_SECONDS, Button, Done, Json, SeenMessage

__all__ = ["Button", "Done", "Json", "Person", "SeenMessage", "WorkspaceClient"]

# Longer than any wait that is asked for, and than an act takes whose acknowledgement the workspace waits for.
_CALL_SECONDS = 180.0
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
        timeout: float = PATIENCE_SECONDS,  # noqa: ASYNC109  the deadline is part of what is asked
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

    async def webhook(
        self,
        body: Json | None = None,
        *,
        is_resolved: bool = False,
        sender: str = "alertmanager",
    ) -> Done:
        """Posts a webhook to the app, as a sender would (a sample one if nothing is given)."""
        sent: Json = {"sender": sender, "resolved": is_resolved} | ({"body": body} if body else {})
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

    async def settle(self, timeout: float = PATIENCE_SECONDS) -> bool:  # noqa: ASYNC109  as above
        """Waits until every upload is shared and the app has acknowledged every event, or retries have ended."""
        return bool((await self.get("idle", timeout_s=f"{timeout:.3f}"))["idle"])


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
