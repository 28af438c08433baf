"""Socket Mode, with Bolt's own client on the other end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
import websockets
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.workspace.client import WorkspaceClient
from bot.workspace.config import Transport, WorkspaceConfig
from bot.workspace.server import RunningWorkspace, running
from tests.waiting import PATIENCE_SECONDS
from tests.workspace.conftest import INCIDENTS, faults_on_the_wire


@pytest_asyncio.fixture
async def workspace() -> AsyncIterator[RunningWorkspace]:
    async with running(WorkspaceConfig(port=0, transport=Transport.SOCKET)) as up:
        yield up


async def connect(workspace: RunningWorkspace) -> websockets.ClientConnection:
    slack = AsyncWebClient(base_url=workspace.api_url)
    opened = await slack.apps_connections_open(app_token=workspace.config.app_token)
    return await websockets.connect(opened["url"])


async def receive(connection: websockets.ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        frame: dict[str, Any] = json.loads(await connection.recv())
        return frame


async def test_bolt_gets_events_and_commands_and_reconnects_after_a_refresh(
    workspace: RunningWorkspace, client: WorkspaceClient
) -> None:
    app = AsyncApp(
        client=AsyncWebClient(token=workspace.config.bot_token, base_url=workspace.api_url)
    )
    mentions: list[str] = []

    @app.event("app_mention")
    async def mentioned(event: dict[str, Any], say: Any) -> None:
        mentions.append(event["text"])
        await say(text="here", thread_ts=event["ts"])

    @app.event("message")
    async def ignored() -> None:
        return

    @app.command("/rca")
    async def rca(ack: Any) -> None:
        await ack("over the socket")

    handler = AsyncSocketModeHandler(app, workspace.config.app_token)
    await handler.connect_async()
    try:
        person = client.person("U0SRE")
        ts = await person.say(INCIDENTS, "@rca status")
        await client.wait_for(lambda m: m.text == "here" and m.thread_ts == ts)
        assert (await person.command(INCIDENTS, "/rca x")).is_good
        await person.wait_for(lambda m: m.text == "over the socket")
        assert (await client.post("socket", {"reason": "refresh_requested"}))["connections"] == 1
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (done := await person.command(INCIDENTS, "/rca again")).is_good:
                assert done.error in ("dispatch_failed", "operation_timeout")
        assert len(mentions) == 1
    finally:
        await handler.close_async()
    assert await client.settle()


async def test_ticket_admits_one_connection_and_hello_counts_them(
    workspace: RunningWorkspace,
) -> None:
    slack = AsyncWebClient(base_url=workspace.api_url)
    url = (await slack.apps_connections_open(app_token=workspace.config.app_token))["url"]
    async with websockets.connect(url) as first, await connect(workspace) as second:
        hello, more = await receive(first), await receive(second)
        assert (hello["type"], hello["num_connections"]) == ("hello", 1)
        assert more["num_connections"] == 2
        try:
            async with websockets.connect(url):
                admitted = True
        except websockets.InvalidStatus:
            admitted = False
        assert not admitted


async def test_envelope_goes_to_one_connection_and_comes_again_when_unacknowledged(
    workspace: RunningWorkspace,
) -> None:
    async with (
        WorkspaceClient(workspace.url) as client,
        await connect(workspace) as first,
        await connect(workspace) as second,
    ):
        await receive(first)
        await receive(second)
        await client.inject("lost_ack", "message")
        await client.person("U0SRE").say(INCIDENTS, "x")
        envelope = await receive(first)
        assert (envelope["type"], envelope["retry_attempt"]) == ("events_api", 0)
        await first.send(json.dumps({"envelope_id": envelope["envelope_id"]}))
        again = await receive(second)
        assert (again["retry_attempt"], again["retry_reason"]) == (1, "http_timeout")
        assert again["payload"]["event_id"] == envelope["payload"]["event_id"]
        assert again["envelope_id"] != envelope["envelope_id"]
        await second.send(json.dumps({"envelope_id": again["envelope_id"]}))
        assert await client.settle()
        assert await faults_on_the_wire(client) == []


async def test_command_without_a_connection_fails_at_once(
    workspace: RunningWorkspace, client: WorkspaceClient
) -> None:
    assert (await client.person("U0SRE").command(INCIDENTS, "/rca x")).error == "dispatch_failed"
