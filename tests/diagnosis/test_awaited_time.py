"""The time of a request is that of the spans somebody waits for, whatever hosts' clocks and lost ids say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from bot.diagnosis.components.incident import faulty_component
from bot.diagnosis.trace_gaps import clock_skews, orphans
from bot.diagnosis.tracing import TracePath, trace_paths
from bot.domain.instant import Window
from bot.source import Connection, Span
from bot.sources.jaeger import Jaeger

START = 1_772_586_775_000_000
TRACE = "5be210c94f7a3d68e1940b7c2f86ad35"
LOW = TRACE[-16:]
WINDOW = Window.before(datetime.fromtimestamp(START / 1e6 + 60, UTC), 600)


def raw(
    name: str, start_ms: int, duration_ms: int, parent: str | None = None, *, process: str = "p1",
    kind: str = "CHILD_OF", trace: str = TRACE,
) -> dict[str, Any]:  # fmt: skip
    """One span as Jaeger answers it; the id is the operation's name."""
    references = [{"refType": kind, "traceID": trace, "spanID": parent}] if parent else []
    return {
        "traceID": trace, "spanID": name, "flags": 1, "operationName": name, "references": references,
        "startTime": START + 1_000 * start_ms, "duration": 1_000 * duration_ms, "tags": [], "logs": [],
        "processID": process, "warnings": None,
    }  # fmt: skip


SKEWED = {
    "data": [
        {
            "traceID": TRACE,
            "spans": [
                raw("POST /v1/chat", 0, 4_100),
                raw("router.forward", 2, 4_090, "POST /v1/chat"),
                raw("engine.generate", -350, 3_900, "router.forward", process="p2", trace=LOW),
                raw("tokenize", -349, 800, "engine.generate", process="p2"),
                raw("audit.write", 4_200, 50, "POST /v1/chat", kind="FOLLOWS_FROM"),
                raw("orphan.cache", 10, 3, "ffffffffffffffff"),
            ],
            "processes": {
                "p1": {"serviceName": "gateway", "tags": []},
                "p2": {"serviceName": "atlas-chat", "tags": []},
            },
            "warnings": None,
        }
    ],
    "total": 0, "limit": 0, "offset": 0, "errors": None,
}  # fmt: skip


async def read(body: dict[str, Any]) -> tuple[Span, ...]:
    http = httpx.AsyncClient(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    )
    async with http:
        client = Jaeger(Connection(url="http://jaeger", http=http))
        return (await client.spans("atlas-chat", WINDOW, limit=20, timeout_seconds=5)).items


def the_path(spans: tuple[Span, ...], service: str) -> TracePath:
    (found,) = trace_paths(spans, service)
    return found


async def test_slow_part_of_a_skewed_trace_is_found_and_the_follower_left_out() -> None:
    spans = await read(SKEWED)
    assert len(spans) == 6
    by_name = {span.operation: span for span in spans}
    assert by_name["engine.generate"].parent == "router.forward"
    assert by_name["engine.generate"].start_us == START - 350_000, "raw times are kept"
    assert by_name["orphan.cache"].parent_missing
    path = the_path(spans, "atlas-chat")
    assert path.seconds["compute"] == pytest.approx(3.1)
    assert path.seconds["frontend"] == pytest.approx(0.8)
    # 4.1 s of the root less the engine's 3.9, and the orphan's 3 ms; nothing of the audit, and nothing below zero.
    assert path.seconds["outside"] == pytest.approx(0.2 + 0.003)
    assert min(path.seconds.values()) >= 0
    assert clock_skews(spans) == {("gateway", "atlas-chat"): pytest.approx(0.352)}
    assert orphans(spans) == 1


def span(
    name: str, start: float, seconds: float, parent: str | None = None, *, service: str = "api",
    trace: str = TRACE, follows: bool = False, **tags: str,
) -> Span:  # fmt: skip
    return Span(
        trace_id=trace, span_id=name, parent=parent, service=service, operation=name,
        start_us=START + round(start * 1e6), duration_us=round(seconds * 1e6),
        tags={key.replace("_", "."): value for key, value in tags.items()}, follows=follows,
    )  # fmt: skip


def seconds_of(*spans: Span) -> float:
    return sum(the_path(spans, "api").seconds.values())


ROOT = span("root", 0, 4)


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param([span("audit", 4.1, 3, "root", follows=True)], id="follows"),
        pytest.param(
            [span("audit", 1, 9, "root", follows=True), span("write", 1, 8, "audit")],
            id="what a follower calls",
        ),
        pytest.param([span("flush", 4.0, 3, "root")], id="begins when the answer is out"),
        pytest.param(
            [span("consume", 4.2, 5, "root", service="mailer", span_kind="consumer"),
             span("render", 4.3, 4, "consume", service="api")],
            id="taken from a queue later",
        ),
    ],
)  # fmt: skip
def test_what_nobody_waits_for_costs_no_time(beside: list[Span]) -> None:
    assert seconds_of(ROOT, *beside) == pytest.approx(4)


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        pytest.param(span("infer", 3.9, 3, "root"), {"other": 3.9, "compute": 3}, id="ends late"),
        pytest.param(span("infer", 4.5, 3, "root", service="far"), {"other": 1}, id="another clock"),
        pytest.param(
            span("infer", 1, 2, "root", span_kind="consumer"), {"other": 2, "compute": 2},
            id="answered over a queue",
        ),
    ],
)  # fmt: skip
def test_what_may_well_be_waited_for_counts(child: Span, expected: dict[str, float]) -> None:
    assert the_path((ROOT, child), "api").seconds == pytest.approx(expected)


@pytest.mark.parametrize("skew", [0.0, -0.35, 0.35, -30.0])
def test_calls_one_after_another_add_up_under_any_clock(skew: float) -> None:
    calls = [
        span("first", 0.1 + skew, 1.5, "root", service="store"),
        span("second", 1.8 + skew, 2.0, "root", service="store"),
    ]
    own = the_path((ROOT, *calls), "api").seconds["other"]
    assert own == pytest.approx(0.5)


def test_calls_at_the_same_time_count_once() -> None:
    calls = [span(name, 0.1, 3, "root", service=name) for name in ("store", "cache")]
    assert the_path((ROOT, *calls), "api").seconds["other"] == pytest.approx(1)


ONSET = datetime.fromtimestamp(START / 1e6, UTC)


def behind(*, follows: bool, trace: str = "{n:032x}") -> list[Span]:
    """api calls store and hands work to a mailer; in the incident the mailer takes 20 s and the store half a second."""
    spans: list[Span] = []
    for n in range(-180, 36):
        at, sick = 20.0 * n, n >= 0
        whole, low = trace.format(n=n + 1_000), trace.format(n=n + 1_000)[-16:]
        deep = 0.5 if sick else 0.02
        spans += [
            span("call", at, deep + 0.02, trace=whole),
            span("get", at, deep, "call", service="store", trace=low),
            span("mail", at, 20.0 if sick else 0.02, "call", service="mailer", trace=low, follows=follows),
        ]  # fmt: skip
    return spans


@pytest.mark.parametrize(("follows", "named"), [(True, "store"), (False, "mailer")])
def test_a_service_that_only_follows_is_not_blamed_for_the_wait(follows: bool, named: str) -> None:
    incident = Window(ONSET, ONSET + timedelta(minutes=12))
    found = faulty_component(behind(follows=follows), "api", (), incident, failing=False)
    assert found is not None
    assert found.name == named
