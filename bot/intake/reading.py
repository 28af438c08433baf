"""Reads fields of senders' bodies: total, bounded, and with text that can be stored.

A sender may be newer than this, broken, or hostile: what cannot be read names its field, what is too long is cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.domain.instant import parse_rfc3339
from bot.errors import BotError, Reason

# Long enough for a stack trace in an annotation; a timeline entry stays far below Redis' and Slack's limits.
MOST_TEXT = 8_000
MOST_NAME = 300
MOST_FIELDS = 200
# Half of a surrogate pair: valid in JSON's escapes, not in UTF-8, so it could never be stored.
_SURROGATE = re.compile("[\ud800-\udfff]")
# Nothing to see, and some of it turns the rest of a line round (bidirectional overrides) or ends a protocol's text.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
# Go writes its zero time for "not set"; any offset may be beside it.
_GO_ZERO = "0001-01-01T"
# No alert is from before its software or from after its reader: such a time is one that was not set.
_YEARS = range(2000, 2200)


class PayloadError(BotError):
    """A body that will never do: the sender must not repeat it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason=Reason.MALFORMED)


def text_of(value: object, *, most: int = MOST_TEXT) -> str:
    r"""Any JSON value as one text of at most `most` characters, without what nobody can see.

    >>> text_of(True), text_of("a\ud800b"), text_of(None), text_of("a\u202eb\x00")
    ('true', 'a\ufffdb', '', 'a\ufffdb\ufffd')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False)
        except (ValueError, RecursionError):
            value = "…"
    return _UNSEEN.sub("\ufffd", _SURROGATE.sub("\ufffd", value[:most]))


def texts_of(value: object, where: str) -> dict[str, str]:
    """An object as names and texts; null members are left out.

    Raises:
        PayloadError: no object.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: must be an object of strings")
    found: dict[str, str] = {}
    for key, item in value.items():
        if item is not None and len(found) < MOST_FIELDS:
            found[text_of(key, most=MOST_NAME)] = text_of(item)
    return found


def time_of(value: object, where: str) -> datetime | None:
    """An RFC 3339 time; None for what is not set, Go's zero time and dates out of this world included.

    Raises:
        PayloadError: no time, or one that has no place in UTC.
    """
    if value in (None, ""):
        return None
    shown = text_of(value, most=60)
    if not isinstance(value, str):
        raise PayloadError(f"{where}: {shown} is no RFC 3339 time")
    if value.strip().startswith(_GO_ZERO):
        return None
    try:
        at = parse_rfc3339(value)
    except ValueError as error:
        raise PayloadError(f"{where}: {shown!r} is no RFC 3339 time") from error
    return at if at.year in _YEARS else None


def link_of(value: object) -> str | None:
    """A web address that may become a link, or None."""
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        return None
    return text_of(value) if len(value) <= MOST_TEXT else None


def object_of(value: object, where: str) -> Mapping[str, Any]:
    """A JSON object.

    Raises:
        PayloadError: it is none.
    """
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: must be an object")
    return value
