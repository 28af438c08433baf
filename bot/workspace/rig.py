"""The machine side of the control API: the app's address, time, trouble, the record, and what there is to see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.workspace.config import webhook_url
from bot.workspace.control_body import ControlBody, ControlError
from bot.workspace.delivery import Courier
from bot.workspace.faults import Fault, FaultKind
from bot.workspace.http_carrier import HttpCarrier
from bot.workspace.records import Json
from bot.workspace.screen import Screen
from bot.workspace.services import Services
from bot.workspace.socket_carrier import SocketCarrier
from bot.workspace.webhook_samples import WEBHOOKS

_WEBHOOK_SECONDS = 10.0
_LONGEST_WAIT_SECONDS = 120.0

Act = Callable[[ControlBody], Awaitable[Json]]
Read = Callable[[Request], Awaitable[Response]]


class Rig:
    """What a test or a script does to the workspace itself."""

    def __init__(
        self, services: Services, courier: Courier, screen: Screen, client: httpx.AsyncClient
    ) -> None:
        self._services = services
        self._workspace = services.workspace
        self._courier = courier
        self._screen = screen
        self._client = client

    def acts(self) -> Mapping[str, Act]:
        """The calls, by path."""
        return {
            "webhook": self._webhook,
            "bot": self._bot,
            "clock": self._clock,
            "fault": self._fault,
            "faults/clear": self._faults_clear,
            "rate_limits": self._rate_limits,
            "socket": self._socket,
            "subscription": self._subscription,
            "traffic/clear": self._traffic_clear,
        }

    def reads(self) -> Mapping[str, Read]:
        """The reads, by path."""
        return {
            "state": self._state,
            "messages": self._messages,
            "traffic": self._traffic,
            "wait": self._wait,
            "idle": self._idle,
        }

    async def _webhook(self, body: ControlBody) -> Json:
        carrier = self._courier.carrier
        url = carrier.bot_url if isinstance(carrier, HttpCarrier) else None
        url = url or self._services.config.bot_url
        if url is None:
            raise ControlError("the app's URL is not known; set it with /control/bot")
        sender = body.optional_text("sender") or "alertmanager"
        if sender not in WEBHOOKS:
            raise ControlError(f"'sender' is one of: {', '.join(WEBHOOKS)}")
        sent = body.get("body") or WEBHOOKS[sender](
            datetime.now(UTC), is_resolved=bool(body.get("resolved"))
        )
        token = self._services.config.webhook_token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            response = await self._client.post(
                webhook_url(url, sender),
                json=sent,
                headers=headers,
                timeout=_WEBHOOK_SECONDS,
            )
        except httpx.HTTPError as error:
            return {"ok": False, "status": 0, "error": type(error).__name__}
        return {
            "ok": response.is_success,
            "status": response.status_code,
            "answer": response.text[:2000],
        }

    async def _bot(self, body: ControlBody) -> Json:
        carrier = self._courier.carrier
        if not isinstance(carrier, HttpCarrier):
            raise ControlError("the app is on Socket Mode; it finds the workspace itself")
        carrier.bot_url = body.text("url")
        return {}

    async def _clock(self, body: ControlBody) -> Json:
        try:
            await self._workspace.clock.advance(body.seconds("advance_s"))
        except ValueError as error:
            raise ControlError(str(error)) from error
        return {"now": self._workspace.clock.now()}

    async def _fault(self, body: ControlBody) -> Json:
        try:
            kind = FaultKind(body.text("kind"))
        except ValueError as error:
            raise ControlError(f"'kind' is one of: {', '.join(FaultKind)}") from error
        self._services.faults.add(
            Fault(
                kind=kind,
                target=body.optional_text("target") or "*",
                times=int(body.get("times", 1)),
                error=body.optional_text("error") or "internal_error",
                status=int(body.get("status", 500)),
                seconds=float(body.get("seconds", 0.0)),
                retry_after_seconds=body.get("retry_after_s"),
            )
        )
        return {}

    async def _faults_clear(self, _: ControlBody) -> Json:
        self._services.faults.clear()
        return {}

    async def _rate_limits(self, body: ControlBody) -> Json:
        self._services.is_rate_limited = bool(body.get("enabled", True))
        return {}

    async def _socket(self, body: ControlBody) -> Json:
        carrier = self._courier.carrier
        if not isinstance(carrier, SocketCarrier):
            raise ControlError("the app is on HTTP; it has no connection to close")
        count = await carrier.disconnect(
            body.optional_text("reason") or "refresh_requested",
            is_closing=bool(body.get("close", True)),
        )
        return {"connections": count}

    async def _subscription(self, _: ControlBody) -> Json:
        self._services.subscription.switch_on()
        return {}

    async def _traffic_clear(self, _: ControlBody) -> Json:
        self._services.traffic.clear()
        return {}

    async def _state(self, _: Request) -> Response:
        return JSONResponse({"ok": True, **self._screen.snapshot()})

    async def _messages(self, request: Request) -> Response:
        query = request.query_params
        messages = self._screen.messages(
            channel=query.get("channel"), thread_ts=query.get("thread_ts"), user=query.get("user")
        )
        return JSONResponse(
            {"ok": True, "revision": self._workspace.revision, "messages": messages}
        )

    async def _traffic(self, request: Request) -> Response:
        exchanges = self._services.traffic.after(_whole(request, "after"))
        return JSONResponse({"ok": True, "traffic": [e.to_json() for e in exchanges]})

    async def _wait(self, request: Request) -> Response:
        seen = _whole(request, "revision")
        await self._screen.changed_since(seen, timeout_seconds=_timeout(request))
        return JSONResponse({"ok": True, "revision": self._workspace.revision})

    async def _idle(self, request: Request) -> Response:
        timeout_seconds = _timeout(request)
        if self._services.sharing:
            # A share on its way is an event to come.
            await asyncio.wait(set(self._services.sharing), timeout=timeout_seconds)
        is_idle = await self._courier.wait_idle(timeout_seconds) and not self._services.sharing
        return JSONResponse({"ok": True, "idle": is_idle})


def _whole(request: Request, name: str) -> int:
    text: Any = request.query_params.get(name, "0")
    return int(text) if text.isdigit() else 0


def _timeout(request: Request) -> float:
    try:
        asked = float(request.query_params.get("timeout_s", "10"))
    except ValueError:
        asked = 10.0
    return max(0.0, min(asked, _LONGEST_WAIT_SECONDS))
