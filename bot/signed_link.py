"""Links that open a read-only page without a token until they expire."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlencode

from pydantic import SecretStr

from bot.settings import Settings


def reading_key(settings: Settings) -> SecretStr | None:
    """What readers have to show, and what links are signed with: the read token, else the webhook token."""
    return settings.read_token or settings.webhook_token


def signed_link(
    settings: Settings, path: str, *, valid_seconds: float, now: float, **also: str
) -> str:
    """A link to `path` that opens without a token until it expires.

    also: further parameters of the address; they choose what is shown and are not signed.
    """
    key = reading_key(settings)
    if key is None:
        query = urlencode(also)
        return f"{settings.base_url}{path}" + (f"?{query}" if query else "")
    expires = str(int(now + valid_seconds))
    signature = signature_of(key, path, expires)
    return f"{settings.base_url}{path}?{urlencode({'expires': expires, 'sig': signature, **also})}"


def signature_of(key: SecretStr, path: str, expires: str) -> str:
    """Hex HMAC-SHA256 over path and expiry."""
    return hmac.new(
        key.get_secret_value().encode(), f"{path}|{expires}".encode(), hashlib.sha256
    ).hexdigest()
