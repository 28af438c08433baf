"""Where monitoring and delivery systems report to: durable first, then 2xx."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any
from urllib.parse import parse_qs

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.checkpoint import reached
from bot.domain.alert import AlertGroup
from bot.domain.whole import whole
from bot.errors import BotError
from bot.incidents.grouping import Rule, labels_of
from bot.incidents.opening import Openings
from bot.intake import alertmanager, change, grafana, pagerduty
from bot.intake.reading import PayloadError
from bot.settings import Settings
from bot.store.index import ChangeLog
from bot.web.auth import is_signed, may_post
from bot.web.metrics import Metrics

log = structlog.get_logger(__name__)

MAX_BODY_BYTES = 4 * 1024 * 1024
AT_ONCE = 4
"""How many notifications are taken at the same time: more make none faster, and would starve the work on them."""

TURN_SECONDS = 60.0
"""How long a sender waits for its turn before it is told to come back."""

Take = Callable[[object], Awaitable[dict[str, Any]]]


class BodyTooLargeError(Exception):
    """More than `MAX_BODY_BYTES` came."""


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """The raw body, read no further than the limit.

    Raises:
        BodyTooLargeError: it is longer.
    """
    declared = whole(request.headers.get("content-length", ""), digits=20)
    if declared is not None and declared > limit:
        raise BodyTooLargeError
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BodyTooLargeError
        parts.append(part)
    return b"".join(parts)


def _payload(request: Request, raw: bytes) -> bytes | str:
    """The JSON of a body: GitHub, by default, sends a form that holds it under `payload`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" and raw.startswith(b"payload="):
        return parse_qs(raw.decode(), max_num_fields=10).get("payload", [""])[0]
    return raw


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
        self._turns = asyncio.Semaphore(AT_ONCE)

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/webhooks/alertmanager", self.alertmanager, methods=["POST"]),
            Route("/webhooks/grafana", self.grafana, methods=["POST"]),
            Route("/webhooks/pagerduty", self.pagerduty, methods=["POST"]),
            Route("/webhooks/changes", self.changes, methods=["POST"]),
        ]

    async def alertmanager(self, request: Request) -> Response:
        """Alertmanager's webhook v4."""
        return await self._receive(request, "alertmanager", self._take_alertmanager)

    async def grafana(self, request: Request) -> Response:
        """Grafana's unified alerting."""
        return await self._receive(request, "grafana", self._take_grafana)

    async def pagerduty(self, request: Request) -> Response:
        """PagerDuty's webhook v3, signed over the raw body where its secret is set."""
        return await self._receive(request, "pagerduty", self._take_pagerduty)

    async def changes(self, request: Request) -> Response:
        """Change events; GitHub signs its own."""
        return await self._receive(request, "changes", self._take_changes)

    async def _take_alertmanager(self, body: object) -> dict[str, Any]:
        return await self._take_group(alertmanager.parse(body, datetime.now(UTC)))

    async def _take_grafana(self, body: object) -> dict[str, Any]:
        return await self._take_group(grafana.parse(body, datetime.now(UTC)))

    async def _take_pagerduty(self, body: object) -> dict[str, Any]:
        group = pagerduty.parse(body, datetime.now(UTC))
        if group is not None:
            return await self._take_group(group)
        self._metrics.alerts.labels(outcome="ignored").inc()
        return {"incident": None, "outcome": "ignored"}

    async def _take_group(self, group: AlertGroup) -> dict[str, Any]:
        route = self._settings.route(labels_of(group))
        received = await self._openings.receive(
            group,
            channel=route.channel if route else None,
            severity=route.severity if route else None,
        )
        if received.rule is Rule.HEARTBEAT:
            outcome = "heartbeat"
        elif received.incident_id is None:
            outcome = "ignored"
        else:
            outcome = "opened" if received.is_new else "joined"
        self._metrics.alerts.labels(outcome=outcome).inc()
        return {"incident": received.incident_id, "outcome": outcome}

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
            return _error(401, _who_may(request, sender, self._settings))
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            return _error(415, f"Content-Encoding {encoding[:40]}: send the body as it is")
        try:
            # Some senders of Grafana's shape write NaN as it is: there it is a value that is missing.
            constant = str if sender == "grafana" else _no_constant
            body = json.loads(_payload(request, raw), parse_constant=constant)
        except (ValueError, RecursionError) as error:
            return _error(400, f"the body is no JSON: {str(error)[:120]}")
        reached("webhook.received")
        try:
            answer = await self._in_turn(take, body)
        except TimeoutError:
            log.error("webhook.too_many", sender=sender, seconds=TURN_SECONDS)
            return _error(503, f"not stored within {TURN_SECONDS:.0f} s, send it again: too many")
        except PayloadError as error:
            log.warning("webhook.refused", sender=sender, error=str(error))
            return _error(400, str(error)[:300])
        except UnicodeEncodeError:
            return _error(400, "a text of the body is no Unicode: it holds half a surrogate pair")
        except BotError as error:
            log.error("webhook.not_durable", sender=sender, error=str(error))
            return _error(503, f"not stored, send it again: {error}")
        reached("webhook.durable")
        self._wake()
        return JSONResponse(answer, status_code=200)

    async def _in_turn(self, take: Take, body: object) -> dict[str, Any]:
        async with asyncio.timeout(TURN_SECONDS):
            await self._turns.acquire()
        try:
            return await take(body)
        finally:
            self._turns.release()

    def _is_from_sender(self, request: Request, sender: str, raw: bytes) -> bool:
        secret = self._settings.github_secret
        if sender == "pagerduty" and self._settings.pagerduty_secret is not None:
            given = request.headers.get("x-pagerduty-signature", "")
            return is_signed(raw, self._settings.pagerduty_secret, given, prefix="v1=")
        signature = _github_of(request)
        if sender == "changes" and secret is not None and signature is not None:
            return is_signed(raw, secret, signature, prefix="sha256=")
        return may_post(request, self._settings)


def _who_may(request: Request, sender: str, settings: Settings) -> str:
    if sender == "changes" and settings.github_secret is not None and _github_of(request):
        return "wrong X-Hub-Signature-256: set the webhook's secret as RCA_GITHUB_SECRET"
    if sender == "pagerduty" and settings.pagerduty_secret is not None:
        return "no or wrong X-PagerDuty-Signature: set the webhook's secret as RCA_PAGERDUTY_SECRET"
    return "no or wrong token: send `Authorization: Bearer <RCA_WEBHOOK_TOKEN>`"


def _github_of(request: Request) -> str | None:
    """GitHub's signature, where it sent one."""
    return request.headers.get("x-hub-signature-256")


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)
