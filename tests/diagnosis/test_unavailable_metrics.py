"""A metrics store that is not available: said so, given up in time, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from bot.diagnosis.engine import diagnose
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.evidence import SourceState
from bot.domain.hypothesis import Diagnosis
from bot.source import Connection
from bot.sources.prometheus import Prometheus
from tests.diagnosis.test_collect import INVENTORY, Logs, Probes
from tests.diagnosis.worlds import AT, CATALOGUE, SERVICE


class Unavailable:
    """Answers every question with 503, at once or when it is let go."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let_go = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer.let_go.wait(120)
                try:
                    self.send_response(503)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def store() -> Iterator[Unavailable]:
    made = Unavailable()
    yield made
    made.let_go.set()
    made.http.shutdown()
    made.http.server_close()


@asynccontextmanager
async def metrics_of(store: Unavailable) -> AsyncIterator[Prometheus]:
    async with httpx.AsyncClient(trust_env=False) as http:
        metrics = Prometheus(Connection(url=store.url, http=http))
        try:
            yield metrics
        finally:
            await metrics.aclose()


async def diagnosed(metrics: Prometheus, seconds: float) -> Diagnosis:
    request = DiagnosisRequest(service=SERVICE.name, at=AT, deadline_seconds=seconds)
    return await diagnose(
        request,
        DiagnosisPorts(
            inventory=INVENTORY, catalogue=CATALOGUE, clock=lambda: datetime.now(UTC), metrics=metrics,
            logs=Logs(), probes=Probes(),
        ),
    )  # fmt: skip


async def test_store_that_is_not_available_is_a_gap_that_says_so(store: Unavailable) -> None:
    store.let_go.set()
    async with metrics_of(store) as metrics:
        found = await diagnosed(metrics, 60)
    assert found.sources["metrics"] is SourceState.UNREACHABLE
    assert found.sources["logs"] is SourceState.OK
    (gap,) = [item for item in found.gaps if item.plugin == "metrics"]
    assert gap.reason == "refused"
    assert "answered 503" in gap.detail
    assert "not available now" in gap.detail
    (spot,) = [item for item in found.blind_spots if "503" in item.why.en]
    assert (spot.what.en, spot.what.zh) == ("metrics", "指标")
    assert len(store.asked) == 1, "asked once: neither the library nor the engine hammers it"


async def test_store_that_keeps_everyone_waiting_holds_up_nobody_else(store: Unavailable) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.02)
            turns += 1

    beside = asyncio.create_task(others())
    async with metrics_of(store) as metrics:
        found = await diagnosed(metrics, 1)
    beside.cancel()
    assert not store.let_go.is_set()
    assert turns >= 5
    assert found.sources["metrics"] is SourceState.UNREACHABLE
    assert found.sources["probes"] is SourceState.OK
    assert [item.reason for item in found.gaps if item.plugin == "metrics"] == ["timeout"]
