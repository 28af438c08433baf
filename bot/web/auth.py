"""Who may post to the webhooks and who may read."""

from __future__ import annotations

import hashlib
import hmac
import time

from pydantic import SecretStr
from starlette.requests import Request

from bot.domain.whole import whole
from bot.settings import Settings
from bot.signed_link import reading_key, signature_of, signed_link

__all__ = ["bearer_of", "is_signed", "may_post", "may_read", "signed_link"]


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
    wanted = reading_key(settings)
    if wanted is None:
        return settings.webhook_open and settings.is_loopback
    if _equal(bearer_of(request), wanted):
        return True
    expires, signature = request.query_params.get("expires", ""), request.query_params.get("sig")
    until = whole(expires, digits=12)
    if not signature or until is None or until < time.time():
        return False
    # As bytes: text that is not ASCII, which anybody can send, would make the comparison raise.
    expected = signature_of(wanted, request.url.path, expires)
    return hmac.compare_digest(signature.encode(errors="replace"), expected.encode())


def is_signed(body: bytes, secret: SecretStr, given: str, *, prefix: str) -> bool:
    """Whether one of the comma-separated signatures is the HMAC-SHA256 of the raw body."""
    wanted = prefix + hmac.new(secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
    return any(
        hmac.compare_digest(item.strip().encode(errors="replace"), wanted.encode())
        for item in given.split(",")
    )
