"""Silences from Alertmanager, read only: `/api/v2/silences` and `/api/v2/alerts`.

No evidence: it says who is notified of an alert, nothing about the fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.domain.instant import parse_rfc3339
from bot.domain.silence import SentAlert, Silence
from bot.errors import EvidenceError, Reason
from bot.source import Connection, get_json, host_of

_NAME = "Alertmanager"
_MOST_WORDS = 200


class Alertmanager:
    """A client of one Alertmanager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def alerts(self, *, timeout_seconds: float) -> tuple[SentAlert, ...]:
        """Every alert that it has, with the active silences that cover it; nothing at all while no silence is on.

        Raises:
            EvidenceError: it did not answer in shape within `timeout_seconds`.
        """
        silences = await self._silences(timeout_seconds)
        if not silences:
            return ()
        body = await self._get("/api/v2/alerts", timeout_seconds)
        try:
            return tuple(_alert(item, silences) for item in body)
        except (KeyError, TypeError, AttributeError) as error:
            raise self._malformed() from error

    async def _silences(self, timeout_seconds: float) -> dict[str, Silence]:
        body = await self._get("/api/v2/silences", timeout_seconds)
        try:
            active = [_silence(item) for item in body if item["status"]["state"] == "active"]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._malformed() from error
        return {item.id: item for item in active}

    async def _get(self, path: str, timeout_seconds: float) -> Any:
        return await get_json(self._connection, _NAME, path, {}, timeout_seconds=timeout_seconds)

    def _malformed(self) -> EvidenceError:
        return EvidenceError(
            f"{_NAME} at {host_of(self._connection.url)}: the answer is not in the shape of its API v2; "
            "check that the address is its own",
            reason=Reason.MALFORMED,
        )


def _silence(item: Mapping[str, Any]) -> Silence:
    return Silence(
        id=str(item["id"]),
        by=_words(item.get("createdBy")),
        comment=_words(item.get("comment")),
        until=parse_rfc3339(item["endsAt"]),
    )


def _words(value: object) -> str:
    return " ".join(str(value or "").split())[:_MOST_WORDS]


def _alert(item: Mapping[str, Any], silences: Mapping[str, Silence]) -> SentAlert:
    by = item["status"].get("silencedBy") or ()
    return SentAlert(
        fingerprint=str(item["fingerprint"]),
        labels={str(key): str(value) for key, value in item["labels"].items()},
        silences=tuple(silences[name] for name in by if name in silences),
    )
