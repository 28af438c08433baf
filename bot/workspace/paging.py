"""Slack's cursors: opaque text that names where the next page begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TypeVar

from bot.workspace.call import ApiError
from bot.workspace.records import Json

T = TypeVar("T")


def page(items: Sequence[T], *, cursor: str | None, limit: int) -> tuple[list[T], Json]:
    """One page and its `response_metadata`.

    Raises:
        ApiError: the cursor is none of ours.
    """
    start = 0 if cursor is None else _offset(cursor)
    end = start + limit
    following = f"offset:{end}" if end < len(items) else ""
    return list(items[start:end]), {
        "next_cursor": base64.urlsafe_b64encode(following.encode()).decode()
    }


def _offset(cursor: str) -> int:
    try:
        word, _, number = base64.urlsafe_b64decode(cursor.encode()).decode().partition(":")
        if word != "offset":
            raise ValueError(word)
        return int(number)
    except (binascii.Error, ValueError) as error:
        raise ApiError("invalid_cursor") from error
