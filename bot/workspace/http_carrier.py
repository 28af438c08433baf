"""Delivers to the app by signed HTTP requests."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from urllib.parse import urlencode

import httpx

from bot.workspace.config import events_url
from bot.workspace.delivery import Ack, AckStatus, Kind, Outgoing

_MAX_ANSWER_BYTES = 1_000_000


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The `X-Slack-Signature` of a body."""
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:".encode() + body, hashlib.sha256)
    return f"v0={digest.hexdigest()}"


class HttpCarrier:
    """Posts to the app's one URL; `bot_url` may be set once the app is up."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        signing_secret: str,
        now: Callable[[], float],
        bot_url: str | None,
        ack_seconds: float,
    ) -> None:
        self._client = client
        self._secret = signing_secret
        self._now = now
        self.bot_url = bot_url
        self._ack_seconds = ack_seconds

    async def carry(self, outgoing: Outgoing) -> Ack:
        """Posts once; a redirect, a status outside 2xx and silence are all failures, as for Slack."""
        if self.bot_url is None:
            return Ack(status=AckStatus.FAILED, reason="connection_failed")
        body, content_type = _encode(outgoing)
        timestamp = str(int(self._now()))
        headers = {
            "Content-Type": content_type,
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": sign(self._secret, timestamp, body),
        }
        if outgoing.retry_number:
            headers["X-Slack-Retry-Num"] = str(outgoing.retry_number)
            headers["X-Slack-Retry-Reason"] = outgoing.retry_reason or "unknown_error"
        try:
            response = await self._client.post(
                events_url(self.bot_url),
                content=body,
                headers=headers,
                timeout=self._ack_seconds,
            )
        except httpx.TimeoutException:
            return Ack(status=AckStatus.TIMEOUT, reason="http_timeout")
        except httpx.HTTPError:
            return Ack(status=AckStatus.FAILED, reason="connection_failed")
        if not response.is_success:
            return Ack(
                status=AckStatus.FAILED,
                http_status=response.status_code,
                body=response.text[:500],
                reason="http_error",
                wants_no_retry=response.headers.get("X-Slack-No-Retry") == "1",
            )
        return Ack(
            status=AckStatus.ACKNOWLEDGED,
            http_status=response.status_code,
            body=_decode(response),
        )


def _encode(outgoing: Outgoing) -> tuple[bytes, str]:
    form = "application/x-www-form-urlencoded"
    match outgoing.kind:
        case Kind.EVENT:
            return json.dumps(outgoing.payload, ensure_ascii=False).encode(), "application/json"
        case Kind.COMMAND:
            return urlencode(outgoing.payload).encode(), form
        case Kind.INTERACTIVE:
            payload = json.dumps(outgoing.payload, ensure_ascii=False)
            return urlencode({"payload": payload}).encode(), form


def _decode(response: httpx.Response) -> object:
    if not response.content or len(response.content) > _MAX_ANSWER_BYTES:
        return None
    if "json" in response.headers.get("Content-Type", ""):
        try:
            return response.json()
        except ValueError:
            return None
    return response.text
