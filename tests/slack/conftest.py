"""A running bot in this process against a real Redis and the local workspace; a person's hands on both."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.app import utc_now
from bot.cause import Catalogue, Category, Cause, SymptomKind
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.hypothesis import Layer
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import Entry
from bot.incidents.journal import UnknownIncidentError
from bot.inventory import Inventory, Node, Service
from bot.serving import Deployment
from bot.settings import Settings, load_settings
from bot.store.transaction import Store
from bot.workspace.client import Person, SeenMessage, WorkspaceClient
from bot.workspace.config import WorkspaceConfig
from bot.workspace.server import running
from tests.conftest import free_port
from tests.waiting import PATIENCE_SECONDS, until

CHANNEL = "C0INCIDENTS"
ALERTS = "C0ALERTS"


@dataclass(repr=False)
class Stage:
    """All parts of one test."""

    settings: Settings
    config: WorkspaceConfig
    store: Store
    bot: Deployment
    client: WorkspaceClient
    workspace: Any

    def __repr__(self) -> str:
        # A property prints its arguments; all that the workspace holds would be a megabyte.
        return "Stage()"

    @property
    def lead(self) -> Person:
        return self.client.person("U0LEAD")

    @property
    def sre(self) -> Person:
        return self.client.person("U0SRE")

    async def until(self, check: Callable[[], Awaitable[Any]], what: str) -> Any:
        return await until(check, what)

    async def start(self, text: str = "sev2 P99 of translate-api is 600 ms") -> str:
        """Opens INC-1 by command and gives its thread's ts."""
        assert (await self.lead.command(CHANNEL, f"/rca start {text}")).is_good
        anchor = await self.client.wait_for(
            lambda m: "INC-1" in m.all_text and not m.is_reply and m.only_for is None,
            channel=CHANNEL,
        )

        async def attached() -> bool:
            return (await self.incident()).card_ts is not None

        await self.until(attached, "the incident knows its thread")
        return anchor.ts

    async def incident(self, name: str = "INC-1") -> Incident:
        return (await self.bot.services.journal.load(name)).incident

    async def entries(self, name: str = "INC-1") -> tuple[Entry, ...]:
        return (await self.bot.services.journal.load(name)).entries

    async def entry(self, check: Callable[[Entry], bool], what: str = "an entry") -> Entry:
        async def find() -> Entry | None:
            with contextlib.suppress(UnknownIncidentError):
                return next((item for item in await self.entries() if check(item)), None)
            return None

        return await self.until(find, what)

    async def reply(self, thread: str, check: Callable[[SeenMessage], bool]) -> SeenMessage:
        # A channel takes a message a second, and a step says several things.
        return await self.client.wait_for(
            lambda m: m.is_reply and m.only_for is None and check(m),
            30.0,
            channel=CHANNEL,
            thread_ts=thread,
        )

    async def whispered(self, person: Person, words: str) -> SeenMessage:
        return await person.wait_for(lambda m: m.only_for == person.user and words in m.all_text)

    async def calm(self) -> None:
        """Waits until every lane is empty; a timer whose time has not come is no work yet."""

        async def idle() -> bool:
            lanes = await self.store.text.zrange("rca:q:lanes", 0, -1, withscores=True)
            now = time.time() * 1000
            return all(str(lane).startswith("timer:") and due > now for lane, due in lanes)

        await self.client.settle()
        await self.until(idle, "the queue is empty")

    async def deliver(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        """Posts an event to the bot as Slack does, signed."""
        import json

        from slack_sdk.signature import SignatureVerifier

        raw = json.dumps(body, ensure_ascii=False)
        stamp = str(int(time.time()))
        secret = self.config.signing_secret
        signature = SignatureVerifier(secret).generate_signature(timestamp=stamp, body=raw)
        async with httpx.AsyncClient(trust_env=False) as http:
            return await http.post(
                f"http://127.0.0.1:{self.settings.port}/slack/events",
                content=raw.encode(),
                headers={
                    "content-type": "application/json",
                    "x-slack-request-timestamp": stamp,
                    "x-slack-signature": signature,
                    **headers,
                },
            )

    def event(self, event: dict[str, Any], event_id: str = "Ev1") -> dict[str, Any]:
        return {
            "type": "event_callback",
            "team_id": "T0LOCAL",
            "api_app_id": "A0RCABOT",
            "event_id": event_id,
            "event_time": int(time.time()),
            "event": event,
        }


def small_catalogue() -> Catalogue:
    """Two causes without evidence: these tests are about the surface, not about the engine."""
    causes = {
        name: Cause(
            id=name,
            title=title,
            summary=title,
            layer=Layer.HOST,
            category=Category.LATENCY,
            prior=0.1,
            local=True,
            families=2,
            symptoms=(SymptomKind.LATENCY,),
            evidence=(),
            refuters=(),
            experiments=(),
            guilt=None,
            commands=(),
            fixes=(),
            prevention=(),
            checklist=(),
        )
        for name, title in (
            ("cpu_contention", Localized("CPU contention", "CPU 争用")),
            ("lock_contention", Localized("lock contention", "锁竞争")),
        )
    }
    return Catalogue(causes=causes)


@contextlib.asynccontextmanager
async def staged(redis_url: str, folder: Path, **more: Any) -> AsyncIterator[Stage]:
    port = free_port()
    config = WorkspaceConfig(
        port=0,
        bot_url=f"http://127.0.0.1:{port}",
        # How fast a busy machine acknowledges is not what these tests are about.
        ack_seconds=PATIENCE_SECONDS,
        trigger_seconds=PATIENCE_SECONDS,
        **more.pop("workspace", {}),
    )
    locales = {"U0LEAD": "en-US", **more.pop("locales", {})}
    async with running(config) as workspace, WorkspaceClient(workspace.url) as client:
        # Both people of most tests read English; a test about languages says which.
        for user, tag in locales.items():
            workspace.workspace.users[user].locale = tag
        environment = {
            "SLACK_BOT_TOKEN": config.bot_token,
            "SLACK_SIGNING_SECRET": config.signing_secret,
            "SLACK_API_URL": workspace.api_url,
            "REDIS_URL": redis_url,
            "RCA_DATA_DIR": str(folder),
            "RCA_PORT": str(port),
            "RCA_WEBHOOK_TOKEN": "hook",
            **more.pop("environment", {}),
        }
        settings = load_settings(environment).model_copy(update=more)
        inventory = Inventory(
            nodes={name: Node(name=name, url=None) for name in ("gpu-1", "gpu-2")},
            services={"translate-api": Service(name="translate-api", nodes=("gpu-1",))},
        )
        store = Store(redis_url)
        ports = DiagnosisPorts(inventory=inventory, catalogue=small_catalogue(), clock=utc_now)
        bot = Deployment(settings, store, ports, lease_seconds=5.0)
        stop = asyncio.Event()
        task = asyncio.create_task(bot.run(stop))
        try:
            await _up(port, task)
            yield Stage(settings, config, store, bot, client, workspace)
        finally:
            stop.set()
            await task
            await store.close()


async def _up(port: int, task: asyncio.Task[None]) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:

        async def answers() -> bool:
            if task.done():
                await task
            return (await http.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200

        await until(answers, "the bot is up")


@pytest.fixture
async def stage(redis_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(redis_url, tmp_path) as made:
        yield made
