"""Who may post to the webhooks and who may read."""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import urlencode

from pydantic import SecretStr
from starlette.requests import Request

from bot.settings import Settings


def bearer_of(request: Request) -> str | None:
    """The bearer token of a request."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def _equal(given: str | None, wanted: SecretStr | None) -> bool:
    return (
        given is not None
        and wanted is not None
        and hmac.compare_digest(given.encode(), wanted.get_secret_value().encode())
    )


def may_post(request: Request, settings: Settings) -> bool:
    """Whether a webhook sender showed the token, or none is asked for on a loopback listener."""
    if settings.webhook_token is None:
        return settings.webhook_open and settings.is_loopback
    return _equal(bearer_of(request), settings.webhook_token)


def may_read(request: Request, settings: Settings) -> bool:
    """Whether a reader showed the read token (the webhook token where none is set), or an unexpired signed link."""
    wanted = settings.read_token or settings.webhook_token
    if wanted is None:
        return settings.webhook_open and settings.is_loopback
    if _equal(bearer_of(request), wanted):
        return True
    expires, signature = request.query_params.get("expires", ""), request.query_params.get("sig")
    is_time = expires.isascii() and expires.isdigit() and len(expires) <= 12
    if not signature or not is_time or int(expires) < time.time():
        return False
    # As bytes: text that is not ASCII, which anybody can send, would make the comparison raise.
    expected = _signature(wanted, request.url.path, expires)
    return hmac.compare_digest(signature.encode(errors="replace"), expected.encode())


def signed_link(settings: Settings, path: str, *, valid_seconds: float, now: float) -> str:
    """A link to `path` that opens without a token until it expires."""
    wanted = settings.read_token or settings.webhook_token
    if wanted is None:
        return f"{settings.base_url}{path}"
    expires = str(int(now + valid_seconds))
    query = urlencode({"expires": expires, "sig": _signature(wanted, path, expires)})
    return f"{settings.base_url}{path}?{query}"


def _signature(key: SecretStr, path: str, expires: str) -> str:
    return hmac.new(
        key.get_secret_value().encode(), f"{path}|{expires}".encode(), hashlib.sha256
    ).hexdigest()


def is_signed(body: bytes, secret: SecretStr, given: str, *, prefix: str) -> bool:
    """Whether one of the comma-separated signatures is the HMAC-SHA256 of the raw body."""
    wanted = prefix + hmac.new(secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
    return any(
        hmac.compare_digest(item.strip().encode(errors="replace"), wanted.encode())
        for item in given.split(",")
    )
