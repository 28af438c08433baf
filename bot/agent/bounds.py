"""Cuts a reading to the bytes that a result may have, longest parts first, and says that it did."""

from __future__ import annotations

import json
from typing import Any

from bot.probe import Reading

_TEXT_LIMIT = 2000
_FINDINGS_LIMIT = 64


def bounded(reading: Reading, limit_bytes: int) -> dict[str, Any]:
    """The reading as JSON, at most about `limit_bytes` long; findings are kept before data."""
    data = reading.wire_data()
    findings = [finding.to_json() for finding in reading.findings]
    result: dict[str, Any] = {
        "status": reading.status.value,
        "error": None if reading.error is None else reading.error[:_TEXT_LIMIT],
        "findings": findings[:_FINDINGS_LIMIT],
        "data": data,
        "truncated": len(findings) > _FINDINGS_LIMIT,
    }
    for finding in result["findings"]:
        finding["summary"] = finding["summary"][:_TEXT_LIMIT]
    while _size(result) > limit_bytes and data:
        result["truncated"] = True
        longest = max(data, key=lambda name: _size(data[name]))
        value = data[longest]
        if isinstance(value, list) and len(value) > 1:
            data[longest] = value[: len(value) // 2]
        elif isinstance(value, dict) and len(value) > 1:
            data[longest] = dict(list(value.items())[: len(value) // 2])
        elif isinstance(value, str) and len(value) > 64:
            data[longest] = value[: len(value) // 2]
        else:
            del data[longest]
    while _size(result) > limit_bytes and result["findings"]:
        result["truncated"] = True
        result["findings"].pop()
    return result


def _size(value: object) -> int:
    return len(json.dumps(value, default=str).encode())
