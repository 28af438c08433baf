"""Traces of the demo, received as OTLP and kept in memory in the shapes of the Jaeger query API."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_KEEP_TRACES = 20_000
Tags = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpan:
    """One span; times are microseconds since the epoch."""

    trace_id: str
    span_id: str
    parent_id: str
    service: str
    host: str
    operation: str
    start_us: int
    duration_us: int
    tags: Tags

    def to_jaeger(self, process_id: str) -> dict[str, Any]:
        """Jaeger's JSON form."""
        references = [
            {"refType": "CHILD_OF", "traceID": self.trace_id, "spanID": self.parent_id}
        ] if self.parent_id else []  # fmt: skip
        return {
            "traceID": self.trace_id,
            "spanID": self.span_id,
            "operationName": self.operation,
            "references": references,
            "startTime": self.start_us,
            "duration": self.duration_us,
            "tags": [_tag(key, value) for key, value in self.tags.items()],
            "logs": [],
            "processID": process_id,
            "warnings": None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """What `GET /api/traces` asks for; times are microseconds; `service` must take part in the trace."""

    service: str
    start_us: int
    end_us: int
    operation: str | None = None
    tags: Mapping[str, str] | None = None
    min_duration_us: int = 0
    max_duration_us: int | None = None
    limit: int = 20

    def accepts(self, span: StoredSpan) -> bool:
        """Whether one span of a trace answers the query, as Jaeger decides it."""
        return (
            span.service == self.service
            and self.start_us <= span.start_us <= self.end_us
            and self.operation in (None, "", span.operation)
            and span.duration_us >= self.min_duration_us
            and (self.max_duration_us is None or span.duration_us <= self.max_duration_us)
            and all(str(span.tags.get(k)) == v for k, v in (self.tags or {}).items())
        )


class TraceStore:
    """The newest traces, oldest dropped first."""

    def __init__(self) -> None:
        self._traces: OrderedDict[str, list[StoredSpan]] = OrderedDict()
        self._lock = threading.Lock()
        self.received = 0

    def add(self, spans: Iterable[StoredSpan]) -> None:
        """Files spans under their trace."""
        with self._lock:
            for span in spans:
                self._traces.setdefault(span.trace_id, []).append(span)
                self.received += 1
            while len(self._traces) > _KEEP_TRACES:
                self._traces.popitem(last=False)

    def find(self, query: TraceQuery) -> list[list[StoredSpan]]:
        """Matching traces, newest first."""
        return self._newest(lambda spans: any(query.accepts(span) for span in spans), query.limit)

    def trace(self, trace_id: str) -> list[StoredSpan]:
        """One trace; empty when unknown."""
        with self._lock:
            return list(self._traces.get(trace_id, ()))

    def services(self) -> list[str]:
        """Every service seen."""
        return sorted({span.service for span in self._spans()})

    def operations(self, service: str) -> list[str]:
        """Every operation of a service."""
        return sorted({span.operation for span in self._spans() if span.service == service})

    def dependencies(self) -> dict[tuple[str, str], int]:
        """Calls from one service to another."""
        spans = self._spans()
        owner = {span.span_id: span.service for span in spans}
        calls: dict[tuple[str, str], int] = {}
        for span in spans:
            caller = owner.get(span.parent_id)
            if caller is not None and caller != span.service:
                calls[caller, span.service] = calls.get((caller, span.service), 0) + 1
        return calls

    def _newest(
        self, wanted: Callable[[list[StoredSpan]], bool], limit: int
    ) -> list[list[StoredSpan]]:
        found: list[list[StoredSpan]] = []
        with self._lock:
            for spans in reversed(self._traces.values()):
                if wanted(spans):
                    found.append(list(spans))
                if len(found) >= limit:
                    break
        return found

    def _spans(self) -> list[StoredSpan]:
        with self._lock:
            return [span for spans in self._traces.values() for span in spans]


def to_jaeger_trace(spans: list[StoredSpan]) -> dict[str, Any]:
    """One trace in Jaeger's JSON form."""
    processes: dict[tuple[str, str], str] = {}
    for span in spans:
        processes.setdefault((span.service, span.host), f"p{len(processes) + 1}")
    return {
        "traceID": spans[0].trace_id,
        "spans": [span.to_jaeger(processes[span.service, span.host]) for span in spans],
        "processes": {
            name: {"serviceName": service, "tags": [_tag("host.name", host)]}
            for (service, host), name in processes.items()
        },
        "warnings": None,
    }


def from_otlp(request: Mapping[str, Any]) -> list[StoredSpan]:
    """Reads an `ExportTraceServiceRequest` in its JSON form.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    spans = []
    for resource in request["resourceSpans"]:
        about = _values(resource["resource"]["attributes"])
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                start_ns, end_ns = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
                spans.append(
                    StoredSpan(
                        trace_id=str(span["traceId"]),
                        span_id=str(span["spanId"]),
                        parent_id=str(span.get("parentSpanId") or ""),
                        service=str(about["service.name"]),
                        host=str(about.get("host.name", "")),
                        operation=str(span["name"]),
                        start_us=start_ns // 1000,
                        duration_us=max(0, end_ns - start_ns) // 1000,
                        tags=_values(span.get("attributes") or []),
                    )
                )
    return spans


def _values(attributes: Iterable[Mapping[str, Any]]) -> dict[str, str | int | float | bool]:
    found: dict[str, str | int | float | bool] = {}
    for attribute in attributes:
        value = attribute["value"]
        if "intValue" in value:
            found[attribute["key"]] = int(value["intValue"])
        elif "doubleValue" in value:
            found[attribute["key"]] = float(value["doubleValue"])
        elif "boolValue" in value:
            found[attribute["key"]] = bool(value["boolValue"])
        else:
            found[attribute["key"]] = str(value.get("stringValue", ""))
    return found


def _tag(key: str, value: str | float | bool) -> dict[str, Any]:
    kinds = {bool: "bool", int: "int64", float: "float64"}
    return {"key": key, "type": kinds.get(type(value), "string"), "value": value}
