"""Log lines and log volumes from Loki."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.evidence import EvidenceSource, Sample, Series
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.source import Answer, Connection, HttpSource, LogLine, get_json, host_of

MOST_LINES = 5_000
"""Lines per query. Source: Loki's default max_entries_limit_per_query."""

_EPOCH = datetime.fromtimestamp(0, UTC)


class Loki:
    """A client of one Loki."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def lines(
        self, query: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[LogLine]:
        """The newest `limit` lines in order of time; lines of one nanosecond keep the order of the answer.

        Raises:
            EvidenceError: the server did not answer in shape.
        """
        wanted = min(limit, MOST_LINES)
        data = await self._ask(
            query, window, {"limit": wanted, "direction": "backward"}, timeout_seconds
        )
        lines: list[LogLine] = []
        with _in_shape(self._connection):
            for stream in data["result"]:
                labels = {str(key): str(value) for key, value in stream["stream"].items()}
                # Newest first within a stream: turned round before the stable sort by time.
                lines.extend(_line(labels, entry) for entry in reversed(stream["values"]))
        lines.sort(key=lambda line: line.at_ns)
        partial = (f"only the newest {wanted} lines were read",) if len(lines) >= wanted else ()
        return Answer(items=tuple(lines), query=query, window=window, partial=partial)

    async def volume(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        """A metric query over logs, for example `sum by (service) (bytes_over_time({node="a"}[1m]))`.

        Raises:
            EvidenceError: the server did not answer in shape.
        """
        data = await self._ask(query, window, {"step": f"{step_seconds:g}"}, timeout_seconds)
        with _in_shape(self._connection):
            series = [
                Series(
                    name="",
                    labels={str(key): str(value) for key, value in item["metric"].items()},
                    unit="",
                    samples=tuple(_sample(pair) for pair in item["values"]),
                    step_seconds=step_seconds,
                )
                for item in data["result"]
            ]
        series.sort(key=lambda one: sorted(one.labels.items()))
        return Answer(items=tuple(series), query=query, window=window)

    async def _ask(
        self, query: str, window: Window, more: Mapping[str, str | int], timeout_seconds: float
    ) -> Any:
        params: dict[str, str | int] = {
            "query": query,
            "start": _nanoseconds(window.start),
            "end": _nanoseconds(window.end),
            **more,
        }
        body = await get_json(
            self._connection,
            "Loki",
            "/loki/api/v1/query_range",
            params,
            timeout_seconds=timeout_seconds,
        )
        with _in_shape(self._connection):
            return body["data"]


class _in_shape:  # noqa: N801 - reads as a statement where it is used
    """Turns what a malformed answer makes Python raise into one line."""

    def __init__(self, connection: Connection) -> None:
        self._where = f"Loki at {host_of(connection.url)}"

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if isinstance(error, KeyError | TypeError | ValueError | AttributeError | IndexError):
            raise EvidenceError(
                f"{self._where}: the answer is not in Loki's shape; check that the address is its own",
                reason=Reason.MALFORMED,
            ) from error


def _line(labels: Mapping[str, str], entry: Any) -> LogLine:
    extra = entry[2] if len(entry) > 2 else None
    metadata: dict[str, str] = {}
    if isinstance(extra, Mapping):
        for part in ("structuredMetadata", "parsed"):
            found = extra.get(part)
            if isinstance(found, Mapping):
                metadata.update((str(key), str(value)) for key, value in found.items())
    return LogLine(at_ns=int(entry[0]), labels=labels, text=str(entry[1]), metadata=metadata)


def _sample(pair: Any) -> Sample:
    value = float(pair[1])
    return Sample(
        at=_EPOCH + timedelta(seconds=float(pair[0])),
        value=value if math.isfinite(value) else None,
    )


def _nanoseconds(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000


SOURCE = HttpSource(
    name="loki",
    source=EvidenceSource.LOGS,
    summary="LogQL over the Loki HTTP API",
    setting="loki_url",
    connect=Loki,
)
