"""The Prometheus client against answers that a real server gives."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot.domain.instant import Window
from bot.source import Connection
from bot.sources.prometheus import Prometheus

END = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


class Fake:
    """Answers `query` and `query_range` with what a test wrote, and keeps the parameters."""

    def __init__(self) -> None:
        self.data: Any = {"resultType": "matrix", "result": []}
        self.extra: dict[str, Any] = {}
        self.asked: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                outer.asked.append({key: value[0] for key, value in query.items()})
                start, end = (float(query.get(key, ["0"])[0]) for key in ("start", "end"))
                step = float(query.get("step", ["1"])[0])
                status, body = 200, {"status": "success", "data": outer.data, **outer.extra}
                if (end - start) / step > 11_000:
                    status = 400
                    body = {
                        "status": "error",
                        "error": "exceeded maximum resolution of 11,000 points",
                    }
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
async def fake() -> AsyncIterator[Fake]:
    made = Fake()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture
async def client(fake: Fake) -> AsyncIterator[Prometheus]:
    async with httpx.AsyncClient(trust_env=False) as http:
        made = Prometheus(Connection(url=fake.url, http=http))
        yield made
        await made.aclose()


def matrix(*values: tuple[float, str]) -> dict[str, Any]:
    return {
        "resultType": "matrix",
        "result": [{"metric": {"node": "a"}, "values": [list(pair) for pair in values]}],
    }


async def test_nan_and_infinity_become_gaps_and_are_counted(client: Prometheus, fake: Fake) -> None:
    fake.data = matrix((0, "1"), (15, "NaN"), (30, "+Inf"), (45, "-Inf"), (60, "2"))
    answer = await client.range("x", Window.before(END, 60), step_seconds=15, timeout_seconds=5)
    assert [sample.value for sample in answer.items[0].samples] == [1.0, None, None, None, 2.0]
    assert answer.dropped == 3


async def test_mark_for_not_told_of_a_gpu_exporter_is_a_gap(client: Prometheus, fake: Fake) -> None:
    fake.data = matrix(
        (0, "9223372036854775794"), (15, "9.223372036854776e+18"), (30, "4294967295")
    )
    answer = await client.range("x", Window.before(END, 60), step_seconds=15, timeout_seconds=5)
    assert [sample.value for sample in answer.items[0].samples] == [None, None, 4294967295.0]


async def test_hole_in_a_series_stays_a_hole(client: Prometheus, fake: Fake) -> None:
    fake.data = matrix((0, "1"), (15, "1"), (210, "1"))
    answer = await client.range("x", Window.before(END, 300), step_seconds=15, timeout_seconds=5)
    assert [sample.value for sample in answer.items[0].samples] == [1.0, 1.0, None, 1.0]


async def test_two_days_at_ten_seconds_raise_the_step_instead_of_failing(
    client: Prometheus, fake: Fake
) -> None:
    fake.data = matrix((0, "1"))
    window = Window.before(END, 172_800)
    answer = await client.range("x", window, step_seconds=10, timeout_seconds=5)
    assert answer.items[0].step_seconds == 16
    assert len(fake.asked) == 1
    assert float(fake.asked[0]["end"]) - float(fake.asked[0]["start"]) == 172_800


async def test_warnings_are_kept_and_the_series_used(client: Prometheus, fake: Fake) -> None:
    fake.data = matrix((0, "1"))
    fake.extra = {"warnings": ["store bj-c timed out"], "infos": ["just so you know"]}
    answer = await client.range("x", Window.before(END, 60), step_seconds=15, timeout_seconds=5)
    assert answer.partial == ("store bj-c timed out",)
    assert answer.items
    fake.extra = {}
    clean = await client.range("x", Window.before(END, 60), step_seconds=15, timeout_seconds=5)
    assert clean.partial == ()


async def test_scalar_answer_is_one_series(client: Prometheus, fake: Fake) -> None:
    fake.data = {"resultType": "scalar", "result": [0, "42"]}
    answer = await client.instant("42", END, timeout_seconds=5)
    assert [sample.value for sample in answer.items[0].samples] == [42.0]


async def test_any_zone_asks_for_the_same_moment(client: Prometheus, fake: Fake) -> None:
    shanghai = END.astimezone(timezone(timedelta(hours=8)))
    for end in (END, shanghai):
        await client.range("x", Window.before(end, 600), step_seconds=15, timeout_seconds=5)
    assert fake.asked[0] == fake.asked[1]
    assert float(fake.asked[0]["end"]) == END.timestamp()


async def test_native_histogram_reads_as_its_mean(client: Prometheus, fake: Fake) -> None:
    def told(count: str, total: str) -> dict[str, Any]:
        return {"count": count, "sum": total, "buckets": [[0, "0.5", "1", count]]}

    fake.data = {
        "resultType": "matrix",
        "result": [
            {"metric": {"a": "b"}, "histograms": [[0, told("4", "2")], [15, told("0", "0")]]}
        ],
    }
    answer = await client.range("x", Window.before(END, 60), step_seconds=15, timeout_seconds=5)
    assert [sample.value for sample in answer.items[0].samples] == [0.5, None]
    assert answer.dropped == 1
    fake.data = {
        "resultType": "vector",
        "result": [{"metric": {}, "histogram": [0, told("10", "25")]}],
    }
    instant = await client.instant("x", END, timeout_seconds=5)
    assert [sample.value for sample in instant.items[0].samples] == [2.5]
