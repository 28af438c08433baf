"""Spans from Tempo: a TraceQL search, then each trace in OTLP JSON."""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

from bot.domain.evidence import EvidenceSource
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.source import Answer, Connection, HttpSource, Span, get_json, host_of

_PARALLEL = 6


class Tempo:
    """A client of one Tempo."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def spans(
        self, service: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[Span]:
        """All spans of up to `limit` traces that touch `service`, in order of start.

        Raises:
            EvidenceError: the server did not answer in shape.
        """
        quoted = service.replace("\\", "\\\\").replace('"', '\\"')
        query = f'{{ resource.service.name = "{quoted}" }}'
        found = await get_json(
            self._connection,
            "Tempo",
            "/api/search",
            {
                "q": query,
                "start": math.floor(window.start.timestamp()),
                "end": math.ceil(window.end.timestamp()),
                "limit": limit,
            },
            timeout_seconds=timeout_seconds,
        )
        gate = asyncio.Semaphore(_PARALLEL)

        async def trace(trace_id: str) -> tuple[Span, ...]:
            async with gate:
                body = await get_json(
                    self._connection,
                    "Tempo",
                    f"/api/traces/{trace_id}",
                    {},
                    timeout_seconds=timeout_seconds,
                )
            return read_otlp(trace_id, body)

        try:
            ids = [_hexadecimal(str(item["traceID"])) for item in found.get("traces") or ()]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(trace(trace_id)) for trace_id in ids]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._malformed() from error
        except ExceptionGroup as errors:
            first = errors.exceptions[0]
            if isinstance(first, EvidenceError):
                raise first from errors
            raise self._malformed() from errors
        spans = sorted(
            (span for task in tasks for span in task.result()),
            key=lambda span: (span.start_us, span.trace_id, span.span_id),
        )
        return Answer(items=tuple(spans), query=query, window=window)

    def _malformed(self) -> EvidenceError:
        return EvidenceError(
            f"Tempo at {host_of(self._connection.url)}: the answer is not in Tempo's shape; "
            "check that the address is its own",
            reason=Reason.MALFORMED,
        )


def read_otlp(trace_id: str, body: Mapping[str, Any]) -> tuple[Span, ...]:
    """The spans of one trace in OTLP JSON, as Tempo gives it.

    Raises:
        KeyError, TypeError, ValueError: not OTLP's shape.
    """
    batches = body.get("batches") or body.get("resourceSpans") or ()
    raw: list[tuple[str, Mapping[str, Any]]] = []
    for batch in batches:
        service = _attributes((batch.get("resource") or {}).get("attributes")).get(
            "service.name", ""
        )
        for scope in batch.get("scopeSpans") or batch.get("instrumentationLibrarySpans") or ():
            raw.extend((service, span) for span in scope["spans"])
    known = {str(span["spanId"]) for _, span in raw}
    spans: list[Span] = []
    for service, span in raw:
        parent = str(span.get("parentSpanId") or "") or None
        start = int(span["startTimeUnixNano"])
        spans.append(
            Span(
                trace_id=trace_id,
                span_id=str(span["spanId"]),
                parent=parent if parent in known else None,
                service=service,
                operation=str(span["name"]),
                start_us=start // 1_000,
                duration_us=(int(span["endTimeUnixNano"]) - start) // 1_000,
                tags=_attributes(span.get("attributes")),
                parent_missing=parent is not None and parent not in known,
            )
        )
    return tuple(spans)


def _attributes(items: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items or ():
        value = item.get("value")
        if isinstance(value, Mapping) and value:
            found[str(item["key"])] = str(next(iter(value.values())))
    return found


def _hexadecimal(trace_id: str) -> str:
    """A trace id as Tempo's path wants it; older versions answer it in base64."""
    if all(letter in "0123456789abcdefABCDEF" for letter in trace_id):
        return trace_id.lower()
    try:
        return base64.b64decode(trace_id, validate=True).hex()
    except binascii.Error as error:
        raise ValueError(f"{trace_id!r} is no trace id") from error


SOURCE = HttpSource(
    name="tempo",
    source=EvidenceSource.TRACES,
    summary="traces over the Tempo HTTP API",
    setting="tempo_url",
    connect=Tempo,
)
