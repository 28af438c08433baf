"""`/api/{method}`: who may call, with what, how often; then the method; then the answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from bot.blockkit.contract import Method, methods
from bot.workspace.call import ApiError, checked, read_arguments
from bot.workspace.faults import FaultKind
from bot.workspace.methods import Handler, handlers
from bot.workspace.records import Json
from bot.workspace.services import Services
from bot.workspace.traffic import Direction


class BrokenAnswer(Response):
    """An answer whose connection ends halfway: the server closes a response that is shorter than it said."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Starts an answer and never finishes it."""
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"512")],
            }
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    body: Json
    status: int = 200
    headers: Mapping[str, str] | None = None


class WebApi:
    """The Web API of the workspace."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._handlers = handlers()
        self._methods = methods()

    async def endpoint(self, request: Request) -> Response:
        """Answers one call; nearly every refusal is a 200 with `ok: false`, as in Slack."""
        name = request.path_params["method"]
        faults = self._services.faults
        began = time.monotonic()
        if delay := faults.take(FaultKind.DELAY, name):
            await asyncio.sleep(delay.seconds)
        try:
            raw = await read_arguments(request)
        except ApiError as error:
            raw, answer = {}, _refusal(error)
        else:
            if faults.take(FaultKind.DROP_CALL, name):
                self._record(name, raw, _Answer({}, 0), began, "dropped on request")
                return BrokenAnswer()
            answer = await self._answer(name, raw, request)
        if faults.take(FaultKind.LOST_ANSWER, name):
            self._record(name, raw, answer, began, "answer lost on request")
            return BrokenAnswer()
        self._record(name, raw, answer, began, "")
        return JSONResponse(answer.body, status_code=answer.status, headers=answer.headers)

    async def _answer(self, name: str, raw: Json, request: Request) -> _Answer:
        if fault := self._services.faults.take(FaultKind.STATUS, name):
            headers = (
                {"Retry-After": str(fault.retry_after_seconds)}
                if fault.retry_after_seconds is not None
                else None
            )
            return _Answer({"ok": False, "error": fault.error}, fault.status, headers)
        if fault := self._services.faults.take(FaultKind.ERROR, name):
            return _refusal(ApiError(fault.error))
        method, handler = self._methods.get(name), self._handlers.get(name)
        if method is None or handler is None:
            return _refusal(ApiError("unknown_method", req_method=name))
        try:
            self._admit(method, raw, request)
            return await self._perform(method, handler, raw)
        except ApiError as error:
            return _refusal(error)

    async def _perform(self, method: Method, handler: Handler, raw: Json) -> _Answer:
        call = checked(method, raw)
        if self._services.is_rate_limited:
            wait = self._services.limiter.retry_after(method, call.text("channel"))
            if wait is not None:
                return _Answer(
                    {"ok": False, "error": "ratelimited"}, 429, {"Retry-After": str(wait)}
                )
        return _Answer({"ok": True, **await handler(self._services, call)})

    def _admit(self, method: Method, raw: Json, request: Request) -> None:
        config = self._services.config
        header = request.headers.get("authorization", "")
        scheme, _, bearer = header.partition(" ")
        token = bearer.strip() if scheme.lower() == "bearer" else str(raw.get("token") or "")
        if not token:
            raise ApiError("not_authed")
        if token not in (config.bot_token, config.app_token):
            raise ApiError("invalid_auth")
        is_for_app = method.name == "apps.connections.open"
        if is_for_app != (token == config.app_token) and method.name not in (
            "api.test",
            "auth.test",
        ):
            raise ApiError("not_allowed_token_type")
        if method.scopes and not method.scopes & config.scopes:
            raise ApiError(
                "missing_scope",
                needed=",".join(sorted(method.scopes)),
                provided=",".join(sorted(config.scopes)),
            )

    def _record(self, name: str, raw: Json, answer: _Answer, began: float, note: str) -> None:
        self._services.traffic.record(
            Direction.FROM_APP,
            name,
            raw,
            status=answer.status,
            answer=answer.body,
            duration_seconds=time.monotonic() - began,
            note=note,
        )


def _refusal(error: ApiError) -> _Answer:
    return _Answer({"ok": False, "error": error.code, **json.loads(json.dumps(error.more))})
