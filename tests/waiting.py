"""Waiting for a fact. The deadline is there for a fact that never comes, and far from what the slowest machine takes."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

PATIENCE_SECONDS = 120.0
"""No test waits that long for what comes: this is how long a fault takes to be told."""

_PAUSE_SECONDS = 0.02

T = TypeVar("T")
Passing = tuple[type[Exception], ...]
NOT_YET: Passing = (OSError, httpx.HTTPError)


async def until(
    check: Callable[[], Awaitable[T] | T], what: str, *, passing: Passing = NOT_YET
) -> T:
    """What `check`, plain or async, answers once that is true; the errors `passing` mean not yet.

    Raises:
        AssertionError: it never was; says what was waited for, and what was there last.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found: Any = None
        try:
            answer = check()
            found = await answer if inspect.isawaitable(answer) else answer
            told = repr(found)
        except passing as error:
            told = f"{type(error).__name__}: {error}"
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: not so (last: {told})"
        await asyncio.sleep(_PAUSE_SECONDS)


def wait_until(check: Callable[[], T], what: str, *, passing: Passing = NOT_YET) -> T:
    """The same where no event loop runs."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found: Any = None
        try:
            found = check()
            told = repr(found)
        except passing as error:
            told = f"{type(error).__name__}: {error}"
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: not so (last: {told})"
        time.sleep(_PAUSE_SECONDS)
