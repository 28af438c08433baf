"""Where monitoring and delivery systems report to: durable first, then 2xx."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.checkpoint import reached
from bot.domain.alert import AlertGroup
from bot.errors import StoreError
from bot.incidents.opening import Openings
from bot.intake import alertmanager, change
from bot.intake.reading import PayloadError
from bot.settings import Settings
from bot.store.index import ChangeLog
from bot.web.auth import is_signed, may_post
from bot.web.metrics import Metrics

log = structlog.get_logger(__name__)

MAX_BODY_BYTES = 4 * 1024 * 1024

Take = Callable[[object], Awaitable[dict[str, Any]]]


class BodyTooLargeError(Exception):
    """More than `MAX_BODY_BYTES` came."""


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """The raw body, read no further than the limit.

    Raises:
        BodyTooLargeError: it is longer.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise BodyTooLargeError
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BodyTooLargeError
        parts.append(part)
    return b"".join(parts)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


class Webhooks:
    """The webhook routes over their parsers and the incident door."""

    def __init__(
        self,
        settings: Settings,
        openings: Openings,
        changes: ChangeLog,
        metrics: Metrics,
        wake: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._openings = openings
        self._changes = changes
        self._metrics = metrics
        self._wake = wake

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/webhooks/alertmanager", self.alertmanager, methods=["POST"]),
            Route("/webhooks/changes", self.changes, methods=["POST"]),
        ]

    async def alertmanager(self, request: Request) -> Response:
        """Alertmanager's webhook v4."""
        return await self._receive(request, "alertmanager", self._take_alertmanager)

    async def changes(self, request: Request) -> Response:
        """Change events; GitHub signs its own."""
        return await self._receive(request, "changes", self._take_changes)

    async def _take_alertmanager(self, body: object) -> dict[str, Any]:
        return await self._take_group(alertmanager.parse(body, datetime.now(UTC)))

    async def _take_group(self, group: AlertGroup) -> dict[str, Any]:
        route = self._settings.route(group.common_labels or group.alerts[0].labels)
        if route is None:
            raise StoreError(
                "alert: no channel is set for it; set RCA_ALERT_CHANNEL or a route in RCA_CONFIG"
            )
        taken = await self._openings.take(group, channel=route.channel, severity=route.severity)
        outcome = "ignored" if taken is None else "opened" if taken.is_new else "joined"
        self._metrics.alerts.labels(outcome=outcome).inc()
        return {"incident": taken.incident_id if taken else None, "outcome": outcome}

    async def _take_changes(self, body: object) -> dict[str, Any]:
        parsed = change.parse(body)
        added = await self._changes.add(parsed)
        return {"received": len(parsed), "stored": added}

    async def _receive(self, request: Request, sender: str, take: Take) -> Response:
        began = perf_counter()
        response = await self._answer(request, sender, take)
        self._metrics.webhooks.labels(sender=sender, status=str(response.status_code)).inc()
        self._metrics.webhook_seconds.observe(perf_counter() - began)
        return response

    async def _answer(self, request: Request, sender: str, take: Take) -> Response:
        try:
            raw = await read_body(request)
        except BodyTooLargeError:
            return _error(413, f"the body is over {MAX_BODY_BYTES // 1024 // 1024} MiB")
        except ClientDisconnect:
            return _error(400, "the sender hung up")
        if not self._is_from_sender(request, sender, raw):
            return _error(
                401, "no or wrong token: send `Authorization: Bearer <RCA_WEBHOOK_TOKEN>`"
            )
        try:
            body = json.loads(raw, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            return _error(400, f"the body is no JSON: {str(error)[:120]}")
        reached("webhook.received")
        try:
            answer = await take(body)
        except PayloadError as error:
            log.warning("webhook.refused", sender=sender, error=str(error))
            return _error(400, str(error)[:300])
        except StoreError as error:
            log.error("webhook.not_durable", sender=sender, error=str(error))
            return _error(503, f"not stored, send it again: {error}")
        reached("webhook.durable")
        self._wake()
        return JSONResponse(answer, status_code=200)

    def _is_from_sender(self, request: Request, sender: str, raw: bytes) -> bool:
        secret = self._settings.github_secret
        signature = request.headers.get("x-hub-signature-256")
        if sender == "changes" and secret is not None and signature is not None:
            return is_signed(raw, secret, signature, prefix="sha256=")
        return may_post(request, self._settings)


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)
