"""The parts of a saved case as JSON: series, lines, spans, changes and probe results, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.diagnosis.collected import Reading
from bot.domain.evidence import Sample, Series
from bot.domain.finding import ProbeResult
from bot.domain.instant import Window
from bot.source import LogLine, Span
from bot.sources.jaeger import read_trace

Json = dict[str, Any]
_EPOCH = datetime.fromtimestamp(0, UTC)


def seconds(at: datetime) -> float:
    """Seconds since the epoch, to the microsecond."""
    return (at - _EPOCH) // timedelta(microseconds=1) / 1e6


def moment(value: float) -> datetime:
    """The inverse of `seconds`."""
    return _EPOCH + timedelta(microseconds=round(value * 1e6))


def reading_to_json(part: str, signal: str, reading: Reading) -> Json:
    """One line of `metrics.jsonl`; part: `now`, `history` or `trends`."""
    return {
        "part": part,
        "signal": signal,
        "query": reading.query,
        "start": seconds(reading.window.start),
        "end": seconds(reading.window.end),
        "partial": list(reading.partial),
        "series": [
            {
                "name": series.name,
                "labels": dict(series.labels),
                "unit": series.unit,
                "step_s": series.step_seconds,
                "values": [[seconds(item.at), item.value] for item in series.samples],
            }
            for series in reading.series
        ],
    }


def reading_from_json(value: Mapping[str, Any]) -> tuple[str, str, Reading]:
    """Part, signal and reading of one line of `metrics.jsonl`."""
    reading = Reading(
        query=str(value["query"]),
        window=Window(moment(value["start"]), moment(value["end"])),
        partial=tuple(value.get("partial") or ()),
        series=tuple(
            Series(
                name=str(item.get("name", "")),
                labels=dict(item["labels"]),
                unit=str(item.get("unit", "")),
                step_seconds=float(item["step_s"]),
                samples=tuple(Sample(at=moment(at), value=got) for at, got in item["values"]),
            )
            for item in value["series"]
        ),
    )
    return str(value["part"]), str(value["signal"]), reading


def line_to_json(part: str, line: LogLine) -> Json:
    """One line of `logs.jsonl`; part: `service`, `node` or `old`."""
    body: Json = {
        "part": part,
        "ts_ns": line.at_ns,
        "labels": dict(line.labels),
        "line": line.text,
    }
    return {**body, "metadata": dict(line.metadata)} if line.metadata else body


def line_from_json(value: Mapping[str, Any]) -> tuple[str, LogLine]:
    """Part and log line of one line of `logs.jsonl`."""
    line = LogLine(
        at_ns=int(value["ts_ns"]),
        labels=dict(value["labels"]),
        text=str(value["line"]),
        metadata=dict(value.get("metadata") or {}),
    )
    return str(value.get("part", "service")), line


def spans_to_json(spans: Sequence[Span]) -> Json:
    """Jaeger's shape, one trace an item."""
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    return {"data": [_trace(name, items) for name, items in sorted(traces.items())]}


def _trace(name: str, spans: Iterable[Span]) -> Json:
    services: dict[str, str] = {}
    body: list[Json] = []
    for span in spans:
        process = services.setdefault(span.service, f"p{len(services) + 1}")
        parent = span.parent or ("missing" if span.parent_missing else None)
        kind = "FOLLOWS_FROM" if span.follows else "CHILD_OF"
        body.append(
            {
                "traceID": name,
                "spanID": span.span_id,
                "operationName": span.operation,
                "startTime": span.start_us,
                "duration": span.duration_us,
                "references": [{"refType": kind, "traceID": name, "spanID": parent}]
                if parent
                else [],
                "tags": [
                    {"key": key, "type": "string", "value": value}
                    for key, value in sorted(span.tags.items())
                ],
                "processID": process,
            }
        )
    processes = {key: {"serviceName": service} for service, key in services.items()}
    return {"traceID": name, "spans": body, "processes": processes}


def spans_from_json(value: Mapping[str, Any]) -> tuple[Span, ...]:
    """The spans of `traces.json`, in the order that a diagnosis reads them."""
    spans = [span for trace in value.get("data") or () for span in read_trace(trace)]
    return tuple(sorted(spans, key=lambda span: (span.start_us, span.trace_id, span.span_id)))


def probes_to_json(results: Sequence[ProbeResult]) -> dict[str, Json]:
    """`{node: {probe: result}}`."""
    found: dict[str, Json] = {}
    for result in results:
        found.setdefault(result.node, {})[result.probe] = result.to_json()
    return found


def probes_from_json(value: Mapping[str, Mapping[str, Any]]) -> tuple[ProbeResult, ...]:
    """The inverse of `probes_to_json`, ordered by node and probe."""
    found = [
        ProbeResult.from_json(result) for by_probe in value.values() for result in by_probe.values()
    ]
    return tuple(sorted(found, key=lambda result: (result.node, result.probe)))
