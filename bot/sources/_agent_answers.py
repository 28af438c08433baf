"""What an agent's answer says, and what a refusal means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import httpx

from bot.domain.finding import ProbeResult, ProbeStatus
from bot.domain.instant import to_rfc3339
from bot.errors import EvidenceError, Reason

_WITHOUT_READING = frozenset(status.value for status in ProbeStatus) - {ProbeStatus.OK.value}

_FIELDS: Mapping[str, tuple[type | tuple[type, ...], bool, str]] = {
    "probe": (str, True, "a name"),
    "node": (str, True, "a name"),
    "status": (str, True, "a word"),
    "started_at": (str, True, "a time"),
    "duration_s": ((int, float), False, "a number"),
    "findings": (list, False, "a list"),
    "data": (dict, False, "an object"),
    "error": (str, False, "a text"),
}
"""What the contract asks of a result: type, whether it has to be there, and how that is said."""

_OTHER_VERSION = "; is the agent of another version than the bot?"


def content_of(name: str, raw: bytes) -> Mapping[str, Any]:
    """The answer as a JSON object.

    Raises:
        EvidenceError: it is none.
    """
    content = _json(raw)
    if isinstance(content, dict):
        return content
    raise EvidenceError(f"agent of {name}: answered something that is no JSON object")


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw, parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float | None:
    """A number, or no value: an endless one compares with nothing and has no place in JSON."""
    value = float(text)
    return value if math.isfinite(value) else None


def require_success(name: str, answer: httpx.Response, raw: bytes) -> None:
    """Returns for an answer that stands.

    Raises:
        EvidenceError: with what the agent said, and the reason that its status stands for.
    """
    if answer.status_code in {200, 206}:
        return
    content = _json(raw)
    said = str(content.get("error", ""))[:300] if isinstance(content, dict) else ""
    why = f": {' '.join(said.split())}" if said else ""
    match answer.status_code:
        case 401 | 403:
            raise EvidenceError(
                f"agent of {name}: refused the request{why}; compare RCA_AGENT_KEY, the node's keys and the clocks",
                reason=Reason.UNAUTHORISED,
            )
        case 404:
            raise EvidenceError(
                f"agent of {name}: does not know this probe{why}; is the agent older than the bot?",
                reason=Reason.UNSUPPORTED,
            )
        case status:
            after = answer.headers.get("Retry-After", "")
            wait = f"; ask again in {after} s" if after.isdigit() else ""
            raise EvidenceError(
                f"agent of {name}: answered HTTP {status}{why}{wait}",
                reason=Reason.RATE_LIMITED if status == 429 else Reason.REFUSED,
            )


def status_of(reason: Reason) -> ProbeStatus:
    """The status of a run that failed for this reason."""
    match reason:
        case Reason.TIMEOUT:
            return ProbeStatus.TIMEOUT
        case Reason.UNAUTHORISED:
            return ProbeStatus.DENIED
        case Reason.UNSUPPORTED:
            return ProbeStatus.UNSUPPORTED
        case _:
            return ProbeStatus.ERROR


def result_of(
    content: Mapping[str, Any], node: str, probe: str, *, asked_at: datetime
) -> ProbeResult:
    """The answer as a result of this very node and probe.

    asked_at: stands for the beginning of a run that brought no reading and tells no time: it dates nothing.

    Raises:
        EvidenceError: out of shape, or another's.
    """
    if content.get("started_at") is None and content.get("status") in _WITHOUT_READING:
        content = {**content, "started_at": to_rfc3339(asked_at)}
    if why := _misfit(content):
        raise EvidenceError(f"agent of {node}: its result is out of shape: {why}{_OTHER_VERSION}")
    try:
        result = ProbeResult.from_json(content)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        why = "a status, a time or a finding is not as the contract says"
        raise EvidenceError(
            f"agent of {node}: its result is out of shape: {why}{_OTHER_VERSION}"
        ) from error
    if result.node != node or result.probe != probe:
        raise EvidenceError(
            f"agent of {node}: answered for another node or probe; check the address in the inventory"
        )
    return result


def _misfit(content: Mapping[str, Any]) -> str | None:
    """The first field that is missing or of another type, in words; None when all are as they should be."""
    for name, (wanted, needed, word) in _FIELDS.items():
        value = content.get(name)
        if value is None and not needed:
            continue
        if not isinstance(value, wanted) or isinstance(value, bool):
            return f"{name} is missing" if value is None else f"{name} is not {word}"
    return None
