"""The body of a request: bounded in bytes and seconds, checked in shape; every fault is a refusal with its reason."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

BODY_LIMIT_BYTES = 64 * 1024
BODY_TIMEOUT_SECONDS = 5.0
MAX_HEAVY_TIMEOUT_SECONDS = 300.0
AMBIGUOUS_LENGTH = "ambiguous_length"


class Refused(Exception):  # noqa: N818 - an answer to the caller, not a fault
    """A request that ends here: status, reason word, one line."""

    def __init__(
        self, status: int, reason: str, text: str, retry_after: float | None = None
    ) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    def response(self) -> JSONResponse:
        """The answer to the caller."""
        headers = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after)))
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status in {408, 413} or self.reason == AMBIGUOUS_LENGTH:
            # The rest of the body is not read, so the connection cannot be used again.
            headers["Connection"] = "close"
        return JSONResponse(
            {"error": str(self), "reason": self.reason}, status_code=self.status, headers=headers
        )


async def read_body(request: Request) -> bytes:
    """The whole body.

    Raises:
        Refused: too large, too slow, or broken off.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_LIMIT_BYTES:
                    raise Refused(
                        413, "body_too_large", f"the body may have {BODY_LIMIT_BYTES} bytes"
                    )
    except TimeoutError as error:
        raise Refused(
            408, "body_too_slow", f"the body did not arrive within {BODY_TIMEOUT_SECONDS:g} s"
        ) from error
    except ClientDisconnect as error:
        raise Refused(400, "body_broken", "the connection ended inside the body") from error
    return bytes(body)


def parse_body(body: bytes) -> tuple[dict[str, Any], float | None]:
    """Arguments and time limit in seconds.

    Raises:
        Refused: it is no request.
    """
    try:
        content = json.loads(body or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "bad_body", "the body is no JSON") from error
    args = content.get("args", {}) if isinstance(content, dict) else None
    if not isinstance(args, dict):
        raise Refused(400, "bad_body", 'the body must be {"args": {…}, "timeout": seconds}')
    timeout = content.get("timeout")
    if timeout is None:
        return args, None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        raise Refused(400, "bad_timeout", "timeout must be a number of seconds above zero")
    return args, float(min(timeout, MAX_HEAVY_TIMEOUT_SECONDS))


def _no_constant(name: str) -> None:
    raise ValueError(name)
