"""What every source must do when its server refuses, is slow, denies, limits, fails, is empty or talks nonsense."""

from __future__ import annotations

import importlib
import json
import pkgutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

import bot.sources
from bot.domain.change import Change, ChangeKind
from bot.domain.evidence import SourceState
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason, StoreError
from bot.source import Answer, Connection, HttpSource
from bot.sources.changes import RecordedChanges
from tests.conftest import free_port
from tests.waiting import PATIENCE_SECONDS

AT = datetime(2026, 11, 30, 8, 15, tzinfo=UTC)
WINDOW = Window.before(AT, 600)
TOKEN = "s3cret-t0ken"
OTHER_DOORS = {"alertmanager", "changes", "node_agent"}
"""Modules that are no HTTP source: the bot's own store, silences (no evidence), and the agents' client with its own contract test."""

EMPTY = {
    "prometheus": {"status": "success", "data": {"resultType": "matrix", "result": []}},
    "loki": {"status": "success", "data": {"resultType": "streams", "result": []}},
    "jaeger": {"data": [], "total": 0, "errors": None},
    "tempo": {"traces": []},
    "kubernetes": {"kind": "EventList", "metadata": {}, "items": []},
}


def sources() -> dict[str, HttpSource]:
    found = {}
    for info in pkgutil.iter_modules(bot.sources.__path__):
        if info.name not in OTHER_DOORS and not info.name.startswith("_"):
            found[info.name] = importlib.import_module(f"bot.sources.{info.name}").SOURCE
    return found


SOURCES = sources()


class Server:
    """A real HTTP server whose one answer a test chooses."""

    def __init__(self) -> None:
        self.status = 200
        self.body: bytes = b"{}"
        self.is_silent = False
        self.seen: list[str] = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.seen.append(self.headers.get("Authorization", ""))
                if outer.is_silent:
                    outer.released.wait(PATIENCE_SECONDS)
                self.send_response(outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                try:
                    self.wfile.write(outer.body)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, value: object, status: int = 200) -> None:
        self.status = status
        self.body = value if isinstance(value, bytes) else json.dumps(value).encode()

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@asynccontextmanager
async def opened(name: str, url: str) -> AsyncIterator[Callable[..., Awaitable[Answer[Any]]]]:
    # Without a deadline of its own: only the source's may end a call.
    async with httpx.AsyncClient(trust_env=False, timeout=None) as http:
        client: Any = SOURCES[name].connect(Connection(url=url, http=http, token=TOKEN))

        async def ask(timeout_seconds: float = PATIENCE_SECONDS) -> Answer[Any]:
            answer: Answer[Any]
            if hasattr(client, "range"):
                answer = await client.range(
                    "up", WINDOW, step_seconds=15, timeout_seconds=timeout_seconds
                )
            elif hasattr(client, "lines"):
                answer = await client.lines(
                    '{app="a"}', WINDOW, limit=10, timeout_seconds=timeout_seconds
                )
            elif hasattr(client, "changes"):
                answer = await client.changes(WINDOW, timeout_seconds=timeout_seconds)
            else:
                answer = await client.spans("a", WINDOW, limit=5, timeout_seconds=timeout_seconds)
            return answer

        try:
            yield ask
        finally:
            if hasattr(client, "aclose"):
                await client.aclose()


def test_every_module_is_a_source_under_its_own_name() -> None:
    assert set(SOURCES) == set(EMPTY)
    assert all(isinstance(item, HttpSource) and item.name == key for key, item in SOURCES.items())


@pytest.mark.parametrize("name", sorted(SOURCES))
async def test_nothing_listens_is_refused(name: str) -> None:
    async with opened(name, f"http://127.0.0.1:{free_port()}") as ask:
        with pytest.raises(EvidenceError) as raised:
            await ask()
    assert raised.value.reason is Reason.REFUSED
    assert TOKEN not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", sorted(SOURCES))
async def test_slow_server_ends_at_the_deadline(name: str, server: Server) -> None:
    server.is_silent = True
    server.answer(EMPTY[name])
    async with opened(name, server.url) as ask:
        with pytest.raises(EvidenceError) as raised:
            await ask(0.4)
        server.released.set()
    assert raised.value.reason is Reason.TIMEOUT


@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize(
    ("status", "reason", "advice"),
    [
        (401, Reason.UNAUTHORISED, "credentials"),
        (403, Reason.UNAUTHORISED, "credentials"),
        (429, Reason.RATE_LIMITED, "later"),
        (400, Reason.MALFORMED, "query"),
        (404, Reason.NOT_FOUND, "address"),
        (500, Reason.REFUSED, "not available now"),
        (503, Reason.REFUSED, "not available now"),
    ],
)
async def test_each_status_has_its_reason_and_advice_and_hides_the_token(
    name: str, status: int, reason: Reason, advice: str, server: Server
) -> None:
    server.answer({"status": "error", "error": "no"}, status)
    async with opened(name, server.url) as ask:
        with pytest.raises(EvidenceError) as raised:
            await ask()
    assert raised.value.reason is reason
    assert f"answered {status}" in str(raised.value)
    assert advice in str(raised.value).partition("; ")[2]
    assert TOKEN not in str(raised.value)
    assert "query=" not in str(raised.value)
    assert server.seen == [f"Bearer {TOKEN}"], "asked once, without retries of its own"


@pytest.mark.parametrize("name", sorted(SOURCES))
async def test_empty_answer_is_empty_and_no_failure(name: str, server: Server) -> None:
    server.answer(EMPTY[name])
    async with opened(name, server.url) as ask:
        answer = await ask()
    assert answer.state is SourceState.EMPTY
    assert answer.items == ()


@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>sign in</html>", id="a sign-in page"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"[1, 2]", id="a list"),
        pytest.param(
            b'{"data": [{"x": 1}], "traces": [{"y": 2}], "status": "success"}', id="another shape"
        ),
    ],
)
async def test_nonsense_is_malformed(name: str, body: bytes, server: Server) -> None:
    server.answer(body)
    async with opened(name, server.url) as ask:
        with pytest.raises(EvidenceError) as raised:
            await ask()
    assert raised.value.reason is Reason.MALFORMED


class Store:
    def __init__(self, changes: list[Change], error: Exception | None = None) -> None:
        self._changes, self._error = changes, error

    async def between(self, start: datetime, end: datetime) -> list[Change]:
        if self._error is not None:
            raise self._error
        return [change for change in self._changes if start <= change.at <= end]


def change(name: str, at: datetime) -> Change:
    return Change(id=name, kind=ChangeKind.DEPLOY, service="a", summary="release", at=at)


async def test_changes_come_once_and_in_order() -> None:
    late, early = change("c-2", AT), change("c-1", WINDOW.start)
    source = RecordedChanges(Store([late, early, late]))
    answer = await source.changes(WINDOW, timeout_seconds=PATIENCE_SECONDS)
    assert [item.id for item in answer.items] == ["c-1", "c-2"]


async def test_change_store_down_is_an_evidence_error() -> None:
    source = RecordedChanges(Store([], StoreError("redis: refused", reason=Reason.REFUSED)))
    with pytest.raises(EvidenceError) as raised:
        await source.changes(WINDOW, timeout_seconds=PATIENCE_SECONDS)
    assert raised.value.reason is Reason.REFUSED
