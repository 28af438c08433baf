"""Reads spans in OTLP's JSON, as trace stores write it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from bot.source import UNFINISHED, Span

_BASE64_LETTERS = 12
_KINDS = {"0": "", "1": "internal", "2": "server", "3": "client", "4": "producer", "5": "consumer"}
"""Source: `SpanKind` of OpenTelemetry's trace.proto; 0 is unspecified."""


def read_otlp(trace_id: str, body: Mapping[str, Any]) -> tuple[Span, ...]:
    """The spans of one trace in OTLP JSON, as Tempo gives it; ids are hexadecimal however it wrote them.

    A status of error and the kind become the tags that other tracers write. A span without an end has not finished:
    it lasts as long as what was recorded beneath it, and is marked.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: not OTLP's shape.
    """
    raw: list[tuple[str, Mapping[str, Any]]] = []
    for batch in body.get("batches") or body.get("resourceSpans") or ():
        resource = _attributes((batch.get("resource") or {}).get("attributes"))
        for scope in batch.get("scopeSpans") or batch.get("instrumentationLibrarySpans") or ():
            raw.extend(
                (resource.get("service.name", ""), span) for span in scope.get("spans") or ()
            )
    known = {_span_id(span["spanId"]) for _, span in raw}
    latest: dict[str, int] = {}
    for _, span in raw:
        parent = _span_id(span.get("parentSpanId") or "")
        latest[parent] = max(latest.get(parent, 0), int(span.get("endTimeUnixNano") or 0))
    spans: list[Span] = []
    for service, span in raw:
        name, parent = _span_id(span["spanId"]), _span_id(span.get("parentSpanId") or "")
        start, end = int(span["startTimeUnixNano"]), int(span.get("endTimeUnixNano") or 0)
        tags = {**_attributes(span.get("attributes")), **_told(span)}
        if end < start:
            tags[UNFINISHED] = "true"
            end = max(start, latest.get(name, 0))
        spans.append(
            Span(
                trace_id=trace_id,
                span_id=name,
                parent=parent if parent in known else None,
                service=service,
                operation=str(span.get("name") or ""),
                start_us=start // 1_000,
                duration_us=(end - start) // 1_000,
                tags=tags,
                parent_missing=bool(parent) and parent not in known,
            )
        )
    return tuple(spans)


def _told(span: Mapping[str, Any]) -> dict[str, str]:
    """What OTLP keeps beside the attributes; enums come by name or by number."""
    told: dict[str, str] = {}
    status = span.get("status") or {}
    if str(status.get("code")) in ("2", "STATUS_CODE_ERROR"):
        told["otel.status_code"] = "ERROR"
        if message := status.get("message"):
            told["otel.status_description"] = str(message)
    kind = str(span.get("kind") or "").removeprefix("SPAN_KIND_").lower()
    if kind := _KINDS.get(kind, kind):
        told["span.kind"] = kind
    return told


def _attributes(items: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items or ():
        value = item.get("value")
        if isinstance(value, Mapping) and value:
            first = next(iter(value.values()))
            found[str(item["key"])] = str(first).lower() if isinstance(first, bool) else str(first)
    return found


def _span_id(text: Any) -> str:
    """A span's id in hexadecimal; Protobuf's JSON writes its eight bytes in base64, which is eleven letters and `=`."""
    name = str(text)
    if len(name) == _BASE64_LETTERS:
        try:
            return base64.b64decode(name, validate=True).hex()
        except binascii.Error:
            return name
    return name.lower()
