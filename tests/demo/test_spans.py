import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from bot.demo.pipeline import Stage, StageTime, Translation
from bot.demo.request_spans import request_spans
from bot.demo.spans import SpanContext, SpanExporter, traceparent

MS = 1_000_000


def translation() -> Translation:
    times = [
        (Stage.PREPROCESS, 0, 3),
        (Stage.HOST_TO_DEVICE, 3, 503),
        (Stage.WAIT_SLOT, 503, 503),
        (Stage.FORWARD, 503, 543),
        (Stage.POSTPROCESS, 543, 544),
    ]
    stages = tuple(StageTime(stage=s, start_ns=a * MS, end_ns=b * MS) for s, a, b in times)
    return Translation(text="", tokens=1, stages=stages)


def test_time_on_the_device_hangs_under_one_inference_span() -> None:
    caller = SpanContext.from_traceparent(traceparent("a" * 32, "b" * 16))

    spans = {s.name: s for s in request_spans(caller, 0, 545 * MS, translation(), model="m")}

    assert spans["handle"].parent_id == "b" * 16
    assert spans["inference"].parent_id == spans["handle"].span_id
    assert spans["copy_to_device"].parent_id == spans["inference"].span_id
    assert spans["inference"].start_ns == 3 * MS
    assert spans["inference"].end_ns == 543 * MS
    assert spans["preprocess"].parent_id == spans["handle"].span_id
    assert {span.trace_id for span in spans.values()} == {"a" * 32}


def test_header_that_is_none_starts_a_new_trace() -> None:
    first, second = (SpanContext.from_traceparent(header) for header in (None, "00-xyz"))

    assert first.span_id is None
    assert first.trace_id != second.trace_id


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_spans_that_wait_at_the_end_are_still_sent(collector: tuple[str, list[Any]]) -> None:
    url, bodies = collector
    exporter = SpanExporter(url, service="shop", host="node-1")
    exporter.add(*request_spans(SpanContext.fresh(), 0, 545 * MS, translation(), model="m"))

    exporter.close()

    sent = [s for body in bodies for s in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert len(sent) == exporter.exported == 7
    assert exporter.dropped == 0


def test_collector_that_is_gone_costs_spans_and_nothing_else() -> None:
    exporter = SpanExporter("http://127.0.0.1:1", service="shop", host="node-1")
    exporter.add(*request_spans(SpanContext.fresh(), 0, 545 * MS, translation(), model="m"))

    exporter.close()

    assert (exporter.exported, exporter.dropped) == (0, 7)
