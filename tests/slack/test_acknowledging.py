"""What stands before an acknowledgement: that the payload is kept, and nothing else."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import redis
from slack_sdk.signature import SignatureVerifier
from starlette.applications import Starlette

from bot.domain.timeline import EntryKind
from bot.slack.surface import SlackSurface
from tests.conftest import free_port
from tests.slack.conftest import CHANNEL, staged
from tests.slack.test_receiver import post
from tests.waiting import wait_until
from tests.web.door import opened

SECRET = "s3cret"
PERSON = {"user": {"id": "U0SRE", "team_id": "T0LOCAL"}, "team": {"id": "T0LOCAL"}}
SAID = {"type": "message", "channel": CHANNEL, "user": "U0SRE", "text": "<@U0RCABOT> status"}


def _form(payload: dict[str, Any]) -> str:
    return urlencode({"payload": json.dumps(payload | PERSON)})


COMMAND = urlencode(
    {
        "command": "/rca",
        "text": "status",
        "user_id": "U0LEAD",
        "channel_id": CHANNEL,
        "trigger_id": "1.2.3",
        "team_id": "T0LOCAL",
        "is_enterprise_install": "false",
    }
)
VIEW = {"id": "V1", "type": "modal", "hash": "1", "callback_id": "rca_symptom"}
ACTION = {"type": "button", "action_id": "rca.symptom", "value": "x", "block_id": "b"}
BODIES = {
    "event": json.dumps(
        {"type": "event_callback", "event_id": "Ev1", "event": {**SAID, "ts": "1.1"}}
    ),
    "command": COMMAND,
    "action": _form({"type": "block_actions", "trigger_id": "2.2", "actions": [ACTION]}),
    "view": _form({"type": "view_submission", "view": {**VIEW, "state": {"values": {}}}}),
    "shortcut": _form(
        {"type": "message_action", "callback_id": "rca_start_here", "trigger_id": "3.3"}
    ),
    "options": _form({"type": "block_suggestion", "action_id": "rca.pick.cause", "value": "cpu"}),
}


@pytest.mark.parametrize("kind", BODIES)
async def test_nothing_of_slack_is_asked_before_an_acknowledgement(
    redis_url: str, kind: str
) -> None:
    """A bot whose queue nobody works off: what it has asked Slack by then, it asked for the acknowledgement."""
    raw = BODIES[kind]
    environment = {
        "SLACK_BOT_TOKEN": "xoxb-1",
        "SLACK_SIGNING_SECRET": SECRET,
        "SLACK_API_URL": f"http://127.0.0.1:{free_port()}/api/",
    }
    async with opened(redis_url, **environment) as door:
        surface = SlackSurface(door.services)
        transport = httpx.ASGITransport(Starlette(routes=surface.routes()))
        stamp = str(int(time.time()))
        sign = SignatureVerifier(SECRET)
        headers = {
            "content-type": "application/json"
            if raw.startswith("{")
            else "application/x-www-form-urlencoded",
            "x-slack-request-timestamp": stamp,
            "x-slack-signature": sign.generate_signature(timestamp=stamp, body=raw) or "",
        }
        async with httpx.AsyncClient(transport=transport, base_url="http://bot") as http:
            answer = await http.post("/slack/events", content=raw.encode(), headers=headers)
        assert answer.status_code == 200
        # None: no call was tried.
        assert surface.state()["connected"] is None
        assert await door.services.queue.depth() == (0 if kind == "options" else 1)


class OwnRedis:
    """A server that keeps what it took on disk, for a test that takes it away and brings it back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        binary = shutil.which("redis-server")
        assert binary
        self._process = subprocess.Popen(
            [
                *(binary, "--bind", "127.0.0.1", "--port", str(self._port)),
                *("--dir", str(self._folder), "--save", ""),
                *("--appendonly", "yes", "--appendfsync", "always"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with redis.Redis(port=self._port) as client:
            wait_until(client.ping, "redis-server is up", passing=(redis.ConnectionError,))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[OwnRedis]:
    folder = tmp_path / "own"
    folder.mkdir()
    server = OwnRedis(folder)
    with contextlib.ExitStack() as stack:
        stack.callback(server.kill)
        server.start()
        yield server


async def test_what_cannot_be_kept_is_not_acknowledged_and_is_there_once_it_can(
    own_redis: OwnRedis, tmp_path: Path
) -> None:
    async with staged(own_redis.url, tmp_path) as stage:
        thread = await stage.start()
        await stage.calm()
        said = {**SAID, "text": "the pool lock", "thread_ts": thread, "ts": "1796070000.000100"}
        own_redis.kill()
        # Slack sends an event again; of a command and a form it tells the person.
        assert (await stage.deliver(stage.event(said, "EvX"))).status_code == 503
        told = await post(stage, COMMAND, form=True)
        assert told.status_code == 200
        assert "REDIS_URL" in told.json()["text"]
        inputs = [{"type": "input", "block_id": "text"}]
        sent = {"type": "view_submission", "view": {**VIEW, "blocks": inputs}}
        told = await post(stage, _form(sent), form=True)
        assert set(told.json()["errors"]) == {"text"}
        own_redis.start()

        async def taken() -> bool:
            again = {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_error"}
            return (await stage.deliver(stage.event(said, "EvX"), **again)).status_code == 200

        await stage.until(taken, "the event is taken when it comes again")
        assert (await stage.deliver(stage.event(said, "EvX"))).status_code == 200
        await stage.entry(lambda e: e.data.get("ts") == said["ts"])
        await stage.calm()
        kept = [e for e in await stage.entries() if e.kind is EntryKind.MESSAGE]
        assert [e.text.en for e in kept if e.text] == ["the pool lock"]


async def test_an_acknowledged_event_outlives_the_bot(own_redis: OwnRedis, tmp_path: Path) -> None:
    """Acknowledged and not yet worked on when bot and Redis die at once: the next bot finds it."""
    async with opened(own_redis.url, SLACK_BOT_TOKEN="xoxb-1", SLACK_SIGNING_SECRET=SECRET) as door:
        surface = SlackSurface(door.services)
        transport = httpx.ASGITransport(Starlette(routes=surface.routes()))
        raw = BODIES["event"].replace("status", "start sev2 P99 600 ms")
        stamp = str(int(time.time()))
        sign = SignatureVerifier(SECRET)
        headers = {
            "content-type": "application/json",
            "x-slack-request-timestamp": stamp,
            "x-slack-signature": sign.generate_signature(timestamp=stamp, body=raw) or "",
        }
        async with httpx.AsyncClient(transport=transport, base_url="http://bot") as http:
            assert (
                await http.post("/slack/events", content=raw.encode(), headers=headers)
            ).status_code == 200
    own_redis.kill()
    own_redis.start()
    async with staged(own_redis.url, tmp_path) as stage:
        await stage.entry(lambda e: e.data.get("op") == "opened")
        assert (await stage.incident()).severity.value == "sev2"
