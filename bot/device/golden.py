"""Golden requests: sent to a service's own endpoint, their answers compared with what is on file.

The file: `{"tolerance": 0.001, "requests": [{"path": "/v1/completions", "body": {…}, "pick": "choices.0.text",
"expect": …}]}`. `path` is added to the configured address, `pick` leads into the answer by keys and indexes, `tolerance`
may stand in a request too. `expect` is compared by its own shape: keys that it does not name are not looked at.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.device.files import read_text
from bot.device.local_http import ask
from bot.errors import ProbeError, Reason

MAX_REQUESTS = 64
"""A cap on work: a golden set that tells drift from chance has a few dozen requests."""
DEFAULT_TOLERANCE = 1e-3
"""Our judgement: kernels that sum in another order differ by less at 16-bit precision for values near one."""
_FILE_LIMIT_BYTES = 4 * 1024 * 1024
_ANSWER_LIMIT_BYTES = 1024 * 1024
_PATH = re.compile(r"(/[A-Za-z0-9._~:%-]*)*")
_BAD_TEXT = re.compile(r"([\s,\[\]]*[-+]?(nan|inf(inity)?))+[\s,\[\]]*|\s*!{8,}\s*", re.IGNORECASE)
"""A text of nothing but such words, or of token 0 for ever, which many tokenizers spell "!": logits that are NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenRequest:
    """One request and the answer that it must have. `tolerance` is absolute below one and relative above."""

    path: str
    body: bytes
    pick: tuple[str, ...]
    expect: Any
    tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenAnswer:
    """What came back. `failure` where no answer came; `largest_error` over numbers that were compared."""

    number: int
    is_equal: bool
    has_nan: bool
    largest_error: float
    failure: ProbeError | None = None


def read_golden(path: Path) -> tuple[GoldenRequest, ...]:
    """Reads the file.

    Raises:
        ProbeError: unreadable, out of shape or empty.
    """
    text = read_text(path, limit_bytes=_FILE_LIMIT_BYTES)
    try:
        content = json.loads(text)
        default = float(content.get("tolerance", DEFAULT_TOLERANCE))
        requests = tuple(_request(entry, default) for entry in content["requests"][:MAX_REQUESTS])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProbeError(f"golden file {path}: is out of shape ({error}); correct it") from error
    if not requests:
        raise ProbeError(f"golden file {path}: holds no request")
    return requests


def ask_golden(
    url: str, number: int, request: GoldenRequest, timeout_seconds: float
) -> GoldenAnswer:
    """Sends one and compares; a failure is part of the answer."""
    try:
        raw = ask(
            url.rstrip("/") + request.path,
            "the golden endpoint",
            timeout_seconds=timeout_seconds,
            limit_bytes=_ANSWER_LIMIT_BYTES,
            body=request.body,
        )
        answer = _picked(json.loads(raw), request.pick)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        failure = ProbeError("the golden endpoint answers something that is not in the shape asked")
        failure.__cause__ = error
    except ProbeError as error:
        failure = error
    else:
        return _compared(number, request, answer)
    return GoldenAnswer(
        number=number, is_equal=False, has_nan=False, largest_error=0.0, failure=failure
    )


def difference(expect: Any, answer: Any, tolerance: float) -> float:
    """The largest numeric difference, in tolerances' own measure; infinite where the shapes or texts differ.

    >>> difference({"a": [1.0, 2.0]}, {"a": [1.0, 2.002], "b": 3}, 0.001) < 0.0011
    True
    >>> difference("yes", "no", 0.001)
    inf
    """
    if isinstance(expect, Mapping):
        if not isinstance(answer, Mapping) or not expect.keys() <= answer.keys():
            return math.inf
        parts = [difference(value, answer[name], tolerance) for name, value in expect.items()]
        return max(parts, default=0.0)
    if isinstance(expect, list):
        if not isinstance(answer, list) or len(answer) != len(expect):
            return math.inf
        pairs = zip(expect, answer, strict=True)
        return max((difference(one, other, tolerance) for one, other in pairs), default=0.0)
    if _is_number(expect):
        if not _is_number(answer) or not math.isfinite(answer):
            return math.inf
        return float(abs(answer - expect) / max(1.0, abs(expect)))
    return 0.0 if answer == expect else math.inf


def has_bad_number(expect: Any, answer: Any) -> bool:
    """True where the answer holds NaN or infinity, nothing where a number is expected, or a text that NaN leaves.

    >>> has_bad_number([0.5], [None]), has_bad_number("a", "my nan"), has_bad_number("a", "!!!!!!!!!!")
    (True, False, True)
    """
    if isinstance(answer, float) and not math.isfinite(answer):
        return True
    if isinstance(answer, str):
        return answer != expect and _BAD_TEXT.fullmatch(answer) is not None
    if isinstance(answer, list):
        inner = expect if isinstance(expect, list) and len(expect) == len(answer) else None
        return any(
            has_bad_number(None if inner is None else inner[index], item)
            for index, item in enumerate(answer)
        )
    if isinstance(answer, Mapping):
        known = expect if isinstance(expect, Mapping) else {}
        return any(has_bad_number(known.get(name), item) for name, item in answer.items())
    return answer is None and _is_number(expect)


def _compared(number: int, request: GoldenRequest, answer: Any) -> GoldenAnswer:
    error = difference(request.expect, answer, request.tolerance)
    bad = has_bad_number(request.expect, answer)
    return GoldenAnswer(
        number=number,
        is_equal=not bad and error <= request.tolerance,
        has_nan=bad,
        largest_error=error,
    )


def _request(entry: Mapping[str, Any], default: float) -> GoldenRequest:
    path = str(entry.get("path", ""))
    if not _PATH.fullmatch(path) or ".." in path:
        raise ValueError("path must be a plain path without '..'")
    tolerance = float(entry.get("tolerance", default))
    if not 0 <= tolerance < 1:
        raise ValueError("tolerance must be from 0 to below 1")
    return GoldenRequest(
        path=path,
        body=json.dumps(entry["body"]).encode(),
        pick=tuple(part for part in str(entry.get("pick", "")).split(".") if part),
        expect=entry["expect"],
        tolerance=tolerance,
    )


def _picked(answer: Any, pick: tuple[str, ...]) -> Any:
    for part in pick:
        answer = answer[int(part)] if isinstance(answer, list) else answer[part]
    return answer


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def not_configured() -> ProbeError:
    """The answer where the node has no golden set for the service."""
    return ProbeError(
        "the service has no golden set on this node; set [services.<name>] golden_url and golden_file",
        reason=Reason.UNSUPPORTED,
    )
