from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from bot.demo.jaeger import create_app
from bot.demo.spans import Span, to_otlp
from bot.demo.trace_store import TraceStore
from bot.domain.instant import Window
from bot.source import Connection
from bot.sources.jaeger import Jaeger

START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
URL = "http://jaeger.test"


def span(trace: str, own: str, parent: str | None, name: str, at_ms: int, length_ms: int) -> Span:
    start_ns = int(START.timestamp() * 1e9) + at_ms * 1_000_000
    return Span(
        trace_id=trace * 32,
        span_id=own * 16,
        parent_id=parent and parent * 16,
        name=name,
        start_ns=start_ns,
        end_ns=start_ns + length_ms * 1_000_000,
        attributes={"http.status_code": 200, "model": "m1"},
    )


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(TraceStore()))
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        for service, spans in {
            "gateway": [
                span("a", "1", None, "POST /x", 0, 90),
                span("b", "3", None, "POST /x", 50, 600),
            ],
            "shop": [span("a", "2", "1", "handle", 1, 80), span("b", "4", "3", "handle", 51, 580)],
        }.items():
            body = to_otlp(spans, service=service, host="node-1")
            (await client.post("/v1/traces", json=body)).raise_for_status()
        yield client


def query(**more: str) -> dict[str, str]:
    start, end = START - timedelta(minutes=1), START + timedelta(minutes=1)
    return {
        "service": "shop",
        "start": str(int(start.timestamp() * 1e6)),
        "end": str(int(end.timestamp() * 1e6)),
        **more,
    }


async def test_bot_source_reads_whole_traces_across_services(client: httpx.AsyncClient) -> None:
    window = Window(START - timedelta(minutes=1), START + timedelta(minutes=1))

    answer = await Jaeger(Connection(url=URL, http=client)).spans(
        "shop", window, limit=10, timeout_seconds=5
    )

    seen = [(item.service, item.operation, item.duration_us, item.parent) for item in answer.items]
    assert seen == [
        ("gateway", "POST /x", 90_000, None),
        ("shop", "handle", 80_000, "1" * 16),
        ("gateway", "POST /x", 600_000, None),
        ("shop", "handle", 580_000, "3" * 16),
    ]
    assert answer.items[0].tags["http.status_code"] == "200"


@pytest.mark.parametrize(
    ("more", "traces"),
    [
        pytest.param({}, ["b", "a"], id="newest-first"),
        pytest.param({"limit": "1"}, ["b"], id="limit"),
        pytest.param({"minDuration": "100ms"}, ["b"], id="at-least"),
        pytest.param({"maxDuration": "0.1s"}, ["a"], id="at-most"),
        pytest.param({"operation": "other"}, [], id="operation"),
        pytest.param({"tags": '{"model":"m1"}', "limit": "9"}, ["b", "a"], id="tag"),
        pytest.param({"tags": '{"model":"m2"}'}, [], id="other-tag"),
        pytest.param({"service": "nobody"}, [], id="unknown-service"),
    ],
)
async def test_find_traces(
    client: httpx.AsyncClient, more: dict[str, str], traces: list[str]
) -> None:
    found = (await client.get("/api/traces", params=query(**more))).json()["data"]

    assert [item["traceID"][0] for item in found] == traces


async def test_one_trace_services_operations_and_dependencies(client: httpx.AsyncClient) -> None:
    async def data(path: str) -> object:
        return (await client.get(path)).json()["data"]

    assert len((await data("/api/traces/" + "a" * 32))[0]["spans"]) == 2  # type: ignore[index]
    assert (await client.get("/api/traces/" + "f" * 32)).status_code == 404
    assert await data("/api/services") == ["gateway", "shop"]
    assert await data("/api/services/shop/operations") == ["handle"]
    assert await data("/api/dependencies") == [
        {"parent": "gateway", "child": "shop", "callCount": 2}
    ]


async def test_bad_questions_and_bodies_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/traces")).status_code == 400
    assert (await client.get("/api/traces", params=query(minDuration="soon"))).status_code == 400
    assert (await client.get("/api/traces", params=query(tags="[1]"))).status_code == 400
    assert (await client.post("/v1/traces", content=b"no json")).status_code == 400
    assert (await client.post("/v1/traces", json={"resourceSpans": [1]})).status_code == 400
