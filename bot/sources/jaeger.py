"""Spans from the Jaeger query API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.evidence import EvidenceSource
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.source import Answer, Connection, HttpSource, Span, get_json, host_of

_EPOCH = datetime.fromtimestamp(0, UTC)


class Jaeger:
    """A client of one Jaeger."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def spans(
        self, service: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[Span]:
        """All spans of up to `limit` traces that touch `service`, in order of start.

        Raises:
            EvidenceError: the server did not answer in shape.
        """
        body = await get_json(
            self._connection,
            "Jaeger",
            "/api/traces",
            {
                "service": service,
                "start": _microseconds(window.start),
                "end": _microseconds(window.end),
                "limit": limit,
            },
            timeout_seconds=timeout_seconds,
        )
        query = f"traces of {service}, limit {limit}"
        try:
            spans = [span for trace in body["data"] or () for span in read_trace(trace)]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvidenceError(
                f"Jaeger at {host_of(self._connection.url)}: the answer is not in Jaeger's shape; "
                "check that the address is its own",
                reason=Reason.MALFORMED,
            ) from error
        spans.sort(key=lambda span: (span.start_us, span.trace_id, span.span_id))
        return Answer(items=tuple(spans), query=query, window=window)


def read_trace(trace: Mapping[str, Any]) -> tuple[Span, ...]:
    """The spans of one trace in Jaeger's JSON.

    Ids are compared by their low 64 bits: a child may carry only those of a 128-bit trace id. A parent that is not
    in the trace is kept as missing.

    Raises:
        KeyError, TypeError, ValueError: not Jaeger's shape.
    """
    processes = trace["processes"]
    known = {str(span["spanID"]) for span in trace["spans"]}
    spans: list[Span] = []
    for span in trace["spans"]:
        parent: str | None = None
        follows = False
        for reference in span.get("references") or ():
            if parent is None or reference.get("refType") == "CHILD_OF":
                parent = str(reference["spanID"])
                follows = reference.get("refType") != "CHILD_OF"
        process = processes.get(span.get("processID")) or {}
        spans.append(
            Span(
                trace_id=str(trace["traceID"]).lower(),
                span_id=str(span["spanID"]),
                parent=parent if parent in known else None,
                service=str(process.get("serviceName", "")),
                operation=str(span["operationName"]),
                start_us=int(span["startTime"]),
                duration_us=int(span["duration"]),
                tags={str(tag["key"]): str(tag.get("value", "")) for tag in span.get("tags") or ()},
                follows=follows,
                parent_missing=parent is not None and parent not in known,
            )
        )
    return tuple(spans)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


SOURCE = HttpSource(
    name="jaeger",
    source=EvidenceSource.TRACES,
    summary="traces over the Jaeger query API",
    setting="jaeger_url",
    connect=Jaeger,
)
