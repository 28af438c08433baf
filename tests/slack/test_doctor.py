"""The doctor's view of Slack: what it finds, and what it says to do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from bot.settings import Settings
from bot.slack.doctor import check_slack
from tests.conftest import free_port
from tests.slack.conftest import Stage


async def _door(settings: Settings) -> tuple[str, str]:
    verdicts = await check_slack(settings)
    return next((grade, text) for grade, name, text in verdicts if name == "door")


@contextlib.asynccontextmanager
async def _answering(status: str) -> AsyncIterator[str]:
    """Something else in front of the bot, which answers everything in its own way."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno".encode()
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_public_address_is_tried_with_a_signed_request(stage: Stage) -> None:
    own = f"http://127.0.0.1:{stage.settings.port}"
    settings = stage.settings.model_copy(update={"public_url": own})
    assert (await _door(settings))[0] == "ok"
    other = settings.model_copy(update={"slack_signing_secret": SecretStr("another")})
    grade, text = await _door(other)
    assert grade == "fail"
    assert "SLACK_SIGNING_SECRET" in text
    assert "another" not in text


@pytest.mark.parametrize("status", ["403 Forbidden", "302 Found", "200 OK"])
async def test_something_else_at_the_public_address_is_named(stage: Stage, status: str) -> None:
    async with _answering(status) as url:
        grade, text = await _door(stage.settings.model_copy(update={"public_url": url}))
    assert grade == "fail"
    assert "let POST /slack/events through" in text


async def test_bot_that_does_not_run_yet_is_a_warning(stage: Stage) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert (await _door(stage.settings.model_copy(update={"public_url": url})))[0] == "warn"


async def test_token_that_works_and_one_that_does_not_are_told_apart(stage: Stage) -> None:
    assert ("ok", "token") in [verdict[:2] for verdict in await check_slack(stage.settings)]
    bad = stage.settings.model_copy(update={"slack_bot_token": SecretStr("xoxb-wrong")})
    said = [verdict for verdict in await check_slack(bad) if verdict[1] == "token"]
    assert [verdict[0] for verdict in said] == ["fail"]
    assert "xoxb-wrong" not in said[0][2]
