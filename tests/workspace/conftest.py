"""A running workspace with a real Bolt app behind it; whatever crossed the wire is held against Slack's shapes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
import uvicorn
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.workspace.client import WorkspaceClient
from bot.workspace.config import WorkspaceConfig
from bot.workspace.server import RunningWorkspace, running
from tests.workspace.slack_schemas import fault_of_answer, fault_of_event, fault_of_payload

INCIDENTS = "C0INCIDENTS"
_PAYLOADS = frozenset(
    {"block_actions", "view_submission", "view_closed", "block_suggestion", "message_action"}
)


async def faults_on_the_wire(client: WorkspaceClient) -> list[str]:
    """Everything in the record that Slack would never have sent or answered."""
    faults: list[str | None] = []
    for exchange in await client.traffic():
        request, answer, what = exchange["request"], exchange["answer"], exchange["what"]
        if exchange["direction"] == "from_app":
            if what not in ("upload", "response_url") and answer and exchange["status"] == 200:
                faults.append(fault_of_answer(what, answer))
        elif not isinstance(request, dict):
            continue
        elif request.get("type") == "event_callback":
            faults.append(fault_of_event(request["event"]))
        elif what.startswith("/"):
            faults.append(fault_of_payload("slash_command", request))
        elif what in _PAYLOADS:
            faults.append(fault_of_payload(what, request))
    return [fault for fault in faults if fault]


@pytest_asyncio.fixture
async def workspace() -> AsyncIterator[RunningWorkspace]:
    async with running(WorkspaceConfig(port=0, share_delay_seconds=0.01)) as up:
        yield up


@pytest_asyncio.fixture
async def client(workspace: RunningWorkspace) -> AsyncIterator[WorkspaceClient]:
    async with WorkspaceClient(workspace.url) as connected:
        yield connected
        assert await faults_on_the_wire(connected) == []


@pytest.fixture
def slack(workspace: RunningWorkspace) -> AsyncWebClient:
    """The real SDK, as the bot uses it."""
    return AsyncWebClient(token=workspace.config.bot_token, base_url=workspace.api_url)


class Bot:
    """A Bolt app on a free port, and the raw requests that reached it."""

    def __init__(self, app: AsyncApp, url: str) -> None:
        self.app = app
        self.url = url
        self.headers: list[dict[str, str]] = []
        self.seen: list[dict[str, Any]] = []
        self.answer_with: Callable[[Request], Awaitable[Response | None]] | None = None

    async def saw(self, count: int, timeout: float = 5.0) -> list[dict[str, Any]]:
        """The bodies that listeners noted, once there are so many."""
        async with asyncio.timeout(timeout):
            while len(self.seen) < count:
                await asyncio.sleep(0.005)
        return self.seen


@asynccontextmanager
async def bolt_over_http(workspace: RunningWorkspace) -> AsyncIterator[Bot]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    app = AsyncApp(
        token=workspace.config.bot_token,
        signing_secret=workspace.config.signing_secret,
        client=AsyncWebClient(token=workspace.config.bot_token, base_url=workspace.api_url),
    )
    bot = Bot(app, f"http://127.0.0.1:{listener.getsockname()[1]}")
    handler = AsyncSlackRequestHandler(app)

    async def endpoint(request: Request) -> Response:
        bot.headers.append(dict(request.headers))
        if bot.answer_with is not None and (early := await bot.answer_with(request)) is not None:
            return early
        return await handler.handle(request)

    server = uvicorn.Server(
        uvicorn.Config(
            Starlette(
                routes=[
                    Route("/slack/events", endpoint, methods=["POST"]),
                    Route("/webhooks/{sender}", endpoint, methods=["POST"]),
                ]
            ),
            log_level="critical",
            lifespan="off",
        )
    )
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield bot
    finally:
        server.should_exit = True
        await task


@pytest_asyncio.fixture
async def bot(workspace: RunningWorkspace, client: WorkspaceClient) -> AsyncIterator[Bot]:
    """A Bolt app that the workspace delivers to."""
    async with bolt_over_http(workspace) as up:
        await client.set_bot_url(up.url)
        yield up


@asynccontextmanager
async def bot_behind(config: WorkspaceConfig) -> AsyncIterator[tuple[Bot, WorkspaceClient]]:
    """A workspace with these settings, and the app that it delivers to."""
    async with (
        running(config) as workspace,
        WorkspaceClient(workspace.url) as client,
        bolt_over_http(workspace) as bot,
    ):
        await client.set_bot_url(bot.url)
        yield bot, client
        assert await faults_on_the_wire(client) == []
