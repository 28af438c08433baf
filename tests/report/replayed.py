"""Plays a saved case as an incident in Slack: the real engine, queue and surface, one job at a time on a clock of its own.

Nothing waits for real time and nothing runs beside anything else, so the same script gives the same record every time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import uvicorn
from starlette.applications import Starlette

from bot.app import build_services, load_catalogue
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.incident import Incident
from bot.exporters import report_worker
from bot.inventory import Inventory
from bot.jobs.charting import request_of
from bot.jobs.handlers import incident_handlers
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler
from bot.learning.cases import Case
from bot.learning.drills.recorded import recorded_ports
from bot.report.charts import chart_worker
from bot.settings import Settings, load_settings
from bot.slack.surface import SlackSurface
from bot.store import queue
from bot.store.index import ChangeLog
from bot.store.queue import Queue
from bot.store.transaction import Store
from bot.web.metrics import Metrics
from bot.web.webhooks import Webhooks
from bot.workspace.client import Person, SeenMessage, WorkspaceClient
from bot.workspace.clock import Clock
from bot.workspace.config import WorkspaceConfig
from bot.workspace.server import running
from bot.workspace.state import Workspace

CHANNEL = "C0INCIDENTS"
INCIDENT = "INC-1"
PATIENCE = 120.0
"""Seconds of real time that a pass may take here."""

JOB = timedelta(milliseconds=200)
"""How much time passes with each job."""


@dataclass(repr=False)
class Play:
    """The parts of one play. `begins`: when the first alert arrives."""

    begins: datetime
    now: list[datetime]
    store: Store
    jobs: Queue
    services: Services
    handlers: Mapping[str, Handler]
    client: WorkspaceClient
    bot_url: str
    slack_url: str

    async def until(self, minutes: float) -> None:
        """Does all work that is due up to so many minutes after the beginning, then stands there."""
        await self._work(self.begins + timedelta(minutes=minutes))

    async def _work(self, end: datetime) -> None:
        await self._settled()
        while True:
            claim = await self.jobs.claim(self.now[0])
            if claim is None:
                due = await self._next_due()
                if due is None or due > end:
                    break
                self.now[0] = max(self.now[0], due)
                continue
            self.now[0] += JOB
            outcome = await self.handlers[claim.job.kind](claim)
            if isinstance(outcome, Done):
                step = queue.finish(claim, self.now[0], pause_seconds=outcome.pause_seconds)
                if outcome.step is not None:
                    step.extend(outcome.step)
            else:
                step = queue.postpone(claim, outcome.until)
            await self.jobs.settle(step, doing="end a job")
            if claim.job.kind.startswith("slack."):
                # What is said to Slack comes back as an event, which has to be taken in before the next job.
                await self._settled()
        self.now[0] = max(self.now[0], end)

    async def _settled(self) -> None:
        assert await self.client.settle(PATIENCE), "events are still on their way"

    async def _next_due(self) -> datetime | None:
        found = await self.store.text.zrange("rca:q:lanes", 0, 0, withscores=True)
        return datetime.fromtimestamp(float(found[0][1]) / 1000, UTC) if found else None

    async def calm(self) -> None:
        """Does what has been asked for; what is planned for later stays."""
        await self._work(self.now[0] + timedelta(seconds=30))

    async def webhook(self, sender: str, body: Mapping[str, Any]) -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(
                f"{self.bot_url}/webhooks/{sender}",
                json=body,
                headers={"Authorization": "Bearer hook"},
            )
        assert answer.status_code == 200, answer.text

    def person(self, user: str) -> Person:
        return self.client.person(user)

    async def incident(self) -> Incident:
        return (await self.services.journal.load(INCIDENT)).incident

    async def thread_ts(self) -> str:
        found = (await self.incident()).thread_ts
        assert found is not None
        return found

    async def say(self, user: str, text: str) -> str:
        """A message in the thread, taken in before the play goes on."""
        ts = await self.person(user).say(CHANNEL, text, thread_ts=await self.thread_ts())
        await self.calm()
        return ts

    async def thread(self) -> list[SeenMessage]:
        return await self.client.messages(CHANNEL, thread_ts=await self.thread_ts())

    async def press(
        self, user: str, action: str, wanted: Callable[[SeenMessage], bool] = lambda _: True
    ) -> None:
        """Presses the newest button of this kind in the thread."""
        seen = [m for m in await self.thread() if m.button(action) is not None and wanted(m)]
        assert seen, f"no button {action} in the thread"
        button = seen[-1].button(action)
        assert button is not None
        done = await self.person(user).click(
            CHANNEL, seen[-1].ts, action, button.value, block_id=button.block_id
        )
        assert done.is_good, done
        await self.calm()

    async def submit(self, user: str, values: Mapping[str, Any]) -> None:
        """Fills in the form that is open."""
        person = self.person(user)
        await person.wait_for_view()
        done = await person.submit(values)
        assert done.is_good, done
        await self.calm()


@contextlib.asynccontextmanager
async def played(
    redis_url: str, folder: Path, case: Case, *, recovers_after: timedelta, **settings: Any
) -> AsyncIterator[Play]:
    """A bot whose sources answer as they did when the case was recorded, at the times of the recording."""
    begins = case.collected.request.at
    now = [begins]

    def clock() -> datetime:
        return now[0]

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    bot_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    workspace = Workspace(clock=Clock(lambda: clock().timestamp()))
    config = WorkspaceConfig(port=0, bot_url=bot_url)
    async with (
        running(config, workspace) as place,
        WorkspaceClient(place.url) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        environment = {
            "SLACK_BOT_TOKEN": config.bot_token,
            "SLACK_SIGNING_SECRET": config.signing_secret,
            "SLACK_API_URL": place.api_url,
            "REDIS_URL": redis_url,
            "RCA_DATA_DIR": str(folder),
            "RCA_WEBHOOK_TOKEN": "hook",
            "RCA_ALERT_CHANNEL": CHANNEL,
            "RCA_TIMEZONE": "Asia/Shanghai",
        }
        chosen = load_settings(environment).model_copy(update=settings)
        store = Store(redis_url)
        stack.push_async_callback(store.close)
        bare = DiagnosisPorts(inventory=Inventory(), catalogue=load_catalogue(chosen), clock=clock)
        ports = recorded_ports(
            case, bare, began=begins, recovered=begins + recovers_after, clock=clock
        )
        jobs = Queue(store)
        services = build_services(chosen, store, jobs, ports, lambda: None, clock)
        surface = SlackSurface(services)
        handlers = {**incident_handlers(surface.services), **surface.handlers()}
        # A busy machine must not turn what was recorded into a blind spot.
        for module in ("collecting", "verifying", "followup_words"):
            stack.enter_context(patch(f"bot.jobs.{module}.request_of", _patient))
        stack.enter_context(patch("bot.jobs.collecting.PAST_SECONDS", PATIENCE))
        stack.callback(chart_worker().close)
        stack.callback(report_worker().close)
        await stack.enter_async_context(_serving(chosen, surface, store, listener))
        yield Play(
            begins=begins,
            now=now,
            store=store,
            jobs=jobs,
            services=surface.services,
            handlers=handlers,
            client=client,
            bot_url=bot_url,
            slack_url=place.url,
        )


def _patient(
    services: Services, incident: Incident, *, by: str, window_seconds: float
) -> DiagnosisRequest:
    asked = request_of(services, incident, by=by, window_seconds=window_seconds)
    return replace(asked, deadline_seconds=PATIENCE)


@contextlib.asynccontextmanager
async def _serving(
    settings: Settings, surface: SlackSurface, store: Store, listener: socket.socket
) -> AsyncIterator[None]:
    hooks = Webhooks(settings, surface.services.openings, ChangeLog(store), Metrics(), lambda: None)
    server = uvicorn.Server(
        uvicorn.Config(
            Starlette(routes=[*surface.routes(), *hooks.routes()]),
            log_level="critical",
            lifespan="off",
        )
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve(sockets=[listener]))
        slack = group.create_task(surface.run(stop))
        while not (server.started and surface.state()["connected"]):
            await asyncio.sleep(0.005)
        try:
            yield
        finally:
            stop.set()
            server.should_exit = True
            await asyncio.gather(serving, slack)


def firing(alert: Mapping[str, Any], at: datetime | None = None) -> dict[str, Any]:
    """The notification of a saved alert: firing, or over since `at`."""
    one = {**alert["alerts"][0]}
    if at is not None:
        one |= {"status": "resolved", "endsAt": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {**alert, "status": "firing" if at is None else "resolved", "alerts": [one]}


def texts(messages: Sequence[SeenMessage]) -> str:
    """A thread as text, for whoever looks at it."""
    return "\n".join(f"{m.ts} {m.all_text}" for m in messages)
