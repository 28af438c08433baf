"""Log lines keep all digits and their order; spans keep lost parents; OTLP is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx

from bot.domain.instant import Window
from bot.source import Connection
from bot.sources._otlp import read_otlp
from bot.sources.jaeger import read_trace
from bot.sources.loki import Loki

WINDOW = Window.before(datetime(2026, 11, 30, 8, 0, tzinfo=UTC), 600)


def loki(body: dict[str, Any], seen: list[httpx.Request] | None = None) -> Loki:
    def handle(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        return httpx.Response(200, json=body)

    http = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    return Loki(Connection(url="http://loki", http=http))


async def test_streams_merge_by_time_with_all_digits_and_metadata() -> None:
    body = {
        "data": {
            "result": [
                {
                    "stream": {"app": "a"},
                    "values": [
                        [
                            "1764489600123456790",
                            "third",
                            {"structuredMetadata": {"trace_id": "t1"}},
                        ],
                        ["1764489600123456788", "first", {}],
                    ],
                },
                {"stream": {"app": "b"}, "values": [["1764489600123456789", "第二行"]]},
            ]
        }
    }
    answer = await loki(body).lines('{app=~"a|b"}', WINDOW, limit=10, timeout_seconds=1)
    assert [line.text for line in answer.items] == ["first", "第二行", "third"]
    assert answer.items[2].at_ns == 1764489600123456790
    assert answer.items[2].metadata == {"trace_id": "t1"}


async def test_lines_of_one_nanosecond_are_all_kept() -> None:
    values = [["1764489600000000000", text] for text in ("c", "b", "a")]
    body = {"data": {"result": [{"stream": {}, "values": values}]}}
    answer = await loki(body).lines("{}", WINDOW, limit=10, timeout_seconds=1)
    assert [line.text for line in answer.items] == ["a", "b", "c"]


async def test_full_page_says_that_it_is_only_the_newest_lines() -> None:
    values = [[str(10**18 + at), "x"] for at in range(3)]
    body = {"data": {"result": [{"stream": {}, "values": values}]}}
    seen: list[httpx.Request] = []
    answer = await loki(body, seen).lines("{}", WINDOW, limit=3, timeout_seconds=1)
    assert answer.partial == ("only the newest 3 lines were read",)
    assert len(seen[0].url.params["start"]) == 19


def span(name: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    references = [{"refType": more.pop("kind", "CHILD_OF"), "spanID": parent}] if parent else []
    return {
        "spanID": name, "operationName": name, "references": references, "startTime": 0,
        "duration": 5, "processID": "p", **more,
    }  # fmt: skip


def test_lost_parent_and_follower_are_marked() -> None:
    trace = {
        "traceID": "ABC",
        "processes": {"p": {"serviceName": "api"}},
        "spans": [
            span("root"),
            span("child", "root"),
            span("orphan", "gone", tags=None),
            span("audit", "root", kind="FOLLOWS_FROM"),
        ],
    }
    found = {item.span_id: item for item in read_trace(trace)}
    assert found["child"].parent == "root"
    assert found["orphan"].parent is None
    assert found["orphan"].parent_missing
    assert not found["root"].parent_missing
    assert found["audit"].follows


def test_otlp_times_are_microseconds_and_service_is_the_resource() -> None:
    attributes = [{"key": "service.name", "value": {"stringValue": "api"}}]
    spans = [
        {
            "spanId": "s1", "name": "copy", "startTimeUnixNano": "1000000",
            "endTimeUnixNano": "3500000",
        }
    ]  # fmt: skip
    body = {"batches": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": spans}]}]}
    (found,) = read_otlp("t", body)
    assert (found.service, found.start_us, found.duration_us) == ("api", 1000, 2500)
