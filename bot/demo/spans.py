"""Spans of the demo's processes, sent as OTLP over HTTP in its JSON form.

Source of the shapes: OpenTelemetry protocol specification, `ExportTraceServiceRequest` (JSON encoding: ids are
hex strings, 64-bit numbers are decimal strings), and W3C Trace Context for the `traceparent` header.
"""

from __future__ import annotations

import json
import queue
import re
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_FLUSH_SECONDS = 0.5
_BATCH = 2_000
_DEADLINE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One timed operation; times are nanoseconds since the epoch."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanContext:
    """Which trace the work belongs to, and the span that caused it."""

    trace_id: str
    span_id: str | None

    @classmethod
    def fresh(cls) -> SpanContext:
        """The start of a new trace."""
        return cls(secrets.token_hex(16), None)

    @classmethod
    def from_traceparent(cls, header: str | None) -> SpanContext:
        """Reads a `traceparent` header; anything else starts a new trace.

        >>> SpanContext.from_traceparent("00-" + "a" * 32 + "-" + "b" * 16 + "-01").span_id
        'bbbbbbbbbbbbbbbb'
        """
        found = _TRACEPARENT.fullmatch(header or "")
        return cls(found[1], found[2]) if found else cls.fresh()


def new_span_id() -> str:
    """Sixteen hex digits."""
    return secrets.token_hex(8)


def traceparent(trace_id: str, span_id: str) -> str:
    """The header that hands a trace on; always sampled."""
    return f"00-{trace_id}-{span_id}-01"


def to_otlp(spans: list[Span], *, service: str, host: str) -> dict[str, Any]:
    """`ExportTraceServiceRequest` as JSON data."""
    resource = {"service.name": service, "host.name": host}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": {"name": "bot.demo"}, "spans": [_span(s) for s in spans]}],
            }
        ]
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id or "",
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
    }


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for key, v in values.items()
    ]


class SpanExporter:
    """Sends finished spans in the background; what cannot be delivered is dropped and counted."""

    def __init__(self, endpoint: str | None, *, service: str, host: str) -> None:
        self._endpoint = endpoint
        self._service = service
        self._host = host
        self._finished: queue.SimpleQueue[Span] = queue.SimpleQueue()
        self._stopping = False
        self.exported = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="span-exporter", daemon=True)
        if endpoint is not None:
            self._thread.start()

    def add(self, *spans: Span) -> None:
        """Takes finished spans; never blocks."""
        if self._endpoint is not None:
            for span in spans:
                self._finished.put(span)

    def close(self) -> None:
        """Sends what is left, within the export deadline."""
        self._stopping = True
        if self._thread.is_alive():
            self._thread.join(_DEADLINE_SECONDS + _FLUSH_SECONDS)

    def _run(self) -> None:
        while not self._stopping:
            # Sleeping, not waiting on the queue: an idle exporter must not look like a thread held by a lock.
            time.sleep(_FLUSH_SECONDS)
            self._flush()
        self._flush()

    def _flush(self) -> None:
        while batch := self._drain():
            body = json.dumps(to_otlp(batch, service=self._service, host=self._host)).encode()
            request = urllib.request.Request(  # noqa: S310 - the endpoint is the demo's own loopback address
                f"{self._endpoint}/v1/traces",
                data=body,
                headers={"Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=_DEADLINE_SECONDS):  # noqa: S310
                    self.exported += len(batch)
            except (urllib.error.URLError, OSError):
                self.dropped += len(batch)

    def _drain(self) -> list[Span]:
        batch: list[Span] = []
        while len(batch) < _BATCH:
            try:
                batch.append(self._finished.get_nowait())
            except queue.Empty:
                break
        return batch
