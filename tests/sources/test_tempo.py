"""Tempo's documented answers: the search, a trace in OTLP JSON with ids in base64, and what is odd in real traces."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from bot.diagnosis.trace_gaps import clock_skews, orphans, unfinished
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.source import Connection, Span
from bot.sources.tempo import Tempo

WINDOW = Window.before(datetime(2026, 11, 30, 8, 0, tzinfo=UTC), 600)
START = 1_796_025_000_000_000_000
TRACE = "2f3e0cee77ae5dc9c17ade3689eb2e54"
SEARCH: dict[str, Any] = {
    "traces": [
        {
            "traceID": TRACE, "rootServiceName": "gateway", "rootTraceName": "POST /v1/rank",
            "startTimeUnixNano": str(START), "durationMs": 640,
        }
    ],
    "metrics": {"inspectedTraces": 12, "inspectedBytes": "83720"},
}  # fmt: skip


def coded(number: int) -> str:
    return base64.b64encode(number.to_bytes(8)).decode()


def span(
    number: int, parent: int | None, start_ms: float, end_ms: float | None, **more: Any
) -> Any:
    body = {
        "traceId": base64.b64encode(bytes.fromhex(TRACE)).decode(),
        "spanId": coded(number),
        "name": more.pop("name", f"op-{number}"),
        "kind": "SPAN_KIND_SERVER",
        "startTimeUnixNano": str(START + round(start_ms * 1e6)),
        "status": {},
        **more,
    }
    if parent is not None:
        body["parentSpanId"] = coded(parent)
    if end_ms is not None:
        body["endTimeUnixNano"] = str(START + round(end_ms * 1e6))
    return body


def batch(service: str, *spans: Any) -> dict[str, Any]:
    name = {"key": "service.name", "value": {"stringValue": service}}
    return {
        "resource": {"attributes": [name, {"key": "host.name", "value": {"stringValue": "n1"}}]},
        "scopeSpans": [{"scope": {"name": "otel"}, "spans": list(spans)}, {"scope": {"name": "b"}}],
    }


RECORDED = {
    "batches": [
        batch("gateway", span(1, None, 0, 640), span(2, 1, 5, None, name="call ranker")),
        # The ranker's clock is 300 ms behind: its span begins before the call that caused it.
        batch(
            "ranker",
            span(
                3, 2, -290, 320, status={"code": "STATUS_CODE_ERROR", "message": "deadline exceeded"},
                attributes=[
                    {"key": "http.response.status_code", "value": {"intValue": "504"}},
                    {"key": "retried", "value": {"boolValue": True}},
                ],
            ),
            span(4, 99, 20, 30),
        ),
    ]
}  # fmt: skip


async def read(traces: dict[str, Any], search: dict[str, Any] = SEARCH) -> Any:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/search":
            assert request.url.params["q"] == '{ resource.service.name = "ranker" }'
            assert int(request.url.params["start"]) < int(request.url.params["end"])
            return httpx.Response(200, json=search)
        found = traces.get(request.url.path.rsplit("/", 1)[1])
        if found is None:
            return httpx.Response(404, text="trace not found")
        return httpx.Response(200, json=found)

    http = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    tempo = Tempo(Connection(url="http://tempo", http=http))
    return await tempo.spans("ranker", WINDOW, limit=20, timeout_seconds=1)


async def test_recorded_trace_keeps_parents_errors_and_kinds() -> None:
    answer = await read({TRACE: RECORDED})
    found: dict[str, Span] = {item.span_id: item for item in answer.items}
    call, ranker = found[f"{2:016x}"], found[f"{3:016x}"]
    assert ranker.parent == call.span_id
    assert (ranker.service, ranker.trace_id) == ("ranker", TRACE)
    assert ranker.tags["otel.status_code"] == "ERROR"
    assert ranker.tags["otel.status_description"] == "deadline exceeded"
    assert ranker.tags["http.response.status_code"] == "504"
    assert ranker.tags["retried"] == "true"
    assert ranker.tags["span.kind"] == "server"
    assert "otel.status_code" not in call.tags
    assert found[f"{1:016x}"].duration_us == 640_000


async def test_span_without_an_end_lasts_as_long_as_what_is_beneath_it_and_is_told() -> None:
    answer = await read({TRACE: RECORDED})
    call = next(item for item in answer.items if item.operation == "call ranker")
    assert call.duration_us == 315_000
    assert unfinished(answer.items) == 1


async def test_clocks_and_lost_parents_of_a_trace_are_told() -> None:
    answer = await read({TRACE: RECORDED})
    assert clock_skews(answer.items) == {("gateway", "ranker"): pytest.approx(0.295)}
    assert orphans(answer.items) == 1
    assert next(item for item in answer.items if item.parent_missing).parent is None


async def test_trace_that_is_gone_when_it_is_read_leaves_the_others_and_is_told() -> None:
    other = {"traceID": "1f", "rootServiceName": "gateway"}
    answer = await read({TRACE: RECORDED}, {"traces": [*SEARCH["traces"], other]})
    assert len(answer.items) == 4
    assert answer.partial == ("1 of 2 traces were found and could not be read",)


async def test_empty_search_and_odd_shapes_are_told_apart() -> None:
    assert (await read({}, {"metrics": {}})).items == ()
    with pytest.raises(EvidenceError) as raised:
        await read({TRACE: {"batches": [{"scopeSpans": [{"spans": [{"spanId": "x"}]}]}]}})
    assert raised.value.reason is Reason.MALFORMED
