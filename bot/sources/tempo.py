"""Spans from Tempo: a TraceQL search, then each trace in OTLP JSON."""

from __future__ import annotations

import asyncio
import base64
import binascii
import math

from bot.domain.evidence import EvidenceSource
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.source import Answer, Connection, HttpSource, Span, get_json, host_of
from bot.sources._otlp import read_otlp

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

        async def trace(trace_id: str) -> tuple[Span, ...] | None:
            async with gate:
                try:
                    body = await get_json(
                        self._connection,
                        "Tempo",
                        f"/api/traces/{trace_id}",
                        {},
                        timeout_seconds=timeout_seconds,
                    )
                except EvidenceError as error:
                    # Found by the search and gone: not flushed yet, or compacted away meanwhile.
                    if error.reason is Reason.NOT_FOUND:
                        return None
                    raise
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
        read = [task.result() for task in tasks]
        spans = sorted(
            (span for trace_spans in read for span in trace_spans or ()),
            key=lambda span: (span.start_us, span.trace_id, span.span_id),
        )
        gone = sum(1 for trace_spans in read if trace_spans is None)
        partial = (
            (f"{gone} of {len(read)} traces were found and could not be read",) if gone else ()
        )
        return Answer(items=tuple(spans), query=query, window=window, partial=partial)

    def _malformed(self) -> EvidenceError:
        return EvidenceError(
            f"Tempo at {host_of(self._connection.url)}: the answer is not in Tempo's shape; "
            "check that the address is its own",
            reason=Reason.MALFORMED,
        )


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
