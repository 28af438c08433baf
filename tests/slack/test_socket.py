"""Socket Mode: the same surface, over a connection that is replaced when it is lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from slack_bolt.async_app import AsyncApp

from bot.slack import socket
from bot.slack.socket import SocketMode
from bot.workspace.config import Transport, WorkspaceConfig
from tests.slack.conftest import CHANNEL, staged
from tests.waiting import PATIENCE_SECONDS


async def test_socket_mode_carries_commands_and_survives_a_lost_connection(
    redis_url: str, tmp_path: Path
) -> None:
    more = {
        "workspace": {"transport": Transport.SOCKET},
        "environment": {"SLACK_APP_TOKEN": WorkspaceConfig().app_token},
    }
    async with staged(redis_url, tmp_path, **more) as stage:

        async def connected() -> bool:
            return stage.bot._slack.state()["connected"] is True

        await stage.until(connected, "the socket is connected")
        thread = await stage.start()
        prompt = await stage.reply(thread, lambda m: m.button("rca.mitigate") is not None)
        await stage.client.post("socket", {"reason": "refresh_requested"})
        await stage.sre.say(CHANNEL, "still here", thread_ts=thread)

        async def clicked() -> bool:
            return (await stage.sre.click(CHANNEL, prompt.ts, "rca.mitigate")).is_good

        await stage.until(clicked, "a press is acknowledged again")
        await stage.sre.wait_for_view()
        # What was said without a connection comes again a minute later.
        await stage.client.advance_clock(61)
        await stage.entry(lambda e: e.text is not None and e.text.en == "still here")
        assert stage.bot._slack.state()["mode"] == "socket"


class _Client:
    """A client of the library as the watch sees it."""

    def __init__(self, heard: float | None) -> None:
        self.last_ping_pong_time = heard

    async def is_connected(self) -> bool:
        return True


def _mode() -> SocketMode:
    return SocketMode(AsyncApp(name="t", signing_secret="s", token="xoxb-1"), "xapp-1")


async def test_connection_that_is_up_and_deaf_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(socket, "DEAF_AFTER_SECONDS", 0.05)
    mode = _mode()
    deaf: Any = SimpleNamespace(client=_Client(time.time() - 1000))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await mode._watch(deaf, asyncio.Event())
    assert mode.is_connected is False
    assert mode.last_error == "connected but deaf"


async def test_deaf_connection_is_replaced_and_words_come_through(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends nothing by itself for ten seconds: by these limits that is deaf."""
    monkeypatch.setattr(socket, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(socket, "DEAF_AFTER_SECONDS", 0.3)
    monkeypatch.setattr(socket, "FIRST_WAIT_SECONDS", 0.05)
    more = {
        "workspace": {"transport": Transport.SOCKET},
        "environment": {"SLACK_APP_TOKEN": WorkspaceConfig().app_token},
    }
    async with staged(redis_url, tmp_path, **more) as stage:

        async def replaced() -> bool:
            return len(await stage.client.traffic("apps.connections.open")) >= 3

        await stage.until(replaced, "a new connection is opened, and again")

        async def taken() -> bool:
            return (await stage.lead.command(CHANNEL, "/rca start sev2 P99 600 ms")).is_good

        await stage.until(taken, "a word is acknowledged")
        await stage.entry(lambda e: e.op == "opened")


async def test_connection_that_is_heard_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "LOOK_SECONDS", 0.01)
    mode, stop = _mode(), asyncio.Event()
    well: Any = SimpleNamespace(client=_Client(time.time()))
    watching = asyncio.create_task(mode._watch(well, stop))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not mode.is_connected and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert mode.is_connected is True
    assert not watching.done()
    stop.set()
    await watching


async def test_close_that_hangs_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "CLOSE_SECONDS", 0.05)

    async def hang() -> None:
        await asyncio.Event().wait()

    handler: Any = SimpleNamespace(close_async=hang)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await _mode()._close(handler)
