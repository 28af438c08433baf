"""A running bot: the HTTP server, the worker, and Slack's transport, started together and drained together."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager

import structlog
import uvicorn
from starlette.applications import Starlette

from bot.app import build_services, open_ports, open_store
from bot.diagnosis.request import DiagnosisPorts
from bot.errors import StoreError
from bot.exporters import report_worker
from bot.jobs import giving_up
from bot.jobs.auditing import Auditor
from bot.jobs.handlers import incident_handlers
from bot.jobs.services import Services
from bot.jobs.worker import Handler, Worker
from bot.listening import listen
from bot.report.charts import chart_worker
from bot.settings import Settings
from bot.slack.surface import SlackSurface
from bot.store.index import ChangeLog
from bot.store.queue import Queue
from bot.store.transaction import Store
from bot.web.health import Health
from bot.web.incidents import IncidentPages
from bot.web.metrics import Metrics
from bot.web.statistics import StatisticsPages
from bot.web.webhooks import Webhooks

log = structlog.get_logger(__name__)

LEASE_SECONDS = 10.0
SHUTDOWN_SECONDS = 10


async def serve(settings: Settings, *, lease_seconds: float = LEASE_SECONDS) -> None:
    """Runs the bot until SIGTERM or SIGINT: stops taking, finishes what is in hand, then leaves.

    lease_seconds: how long the work of a killed bot waits for its heir.

    Raises:
        ConfigError: a setting that only shows now to be wrong.
        StoreError: Redis is not reachable at the start.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings))
        await store.is_writable()
        ports = await stack.enter_async_context(open_ports(settings, store))
        deployment = Deployment(settings, store, ports, lease_seconds=lease_seconds)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await deployment.run(stop)


class Deployment:
    """All running parts of one bot process."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        ports: DiagnosisPorts,
        *,
        lease_seconds: float,
    ) -> None:
        self._settings = settings
        self._queue = Queue(store, lease_seconds=lease_seconds)
        self.services: Services = build_services(settings, store, self._queue, ports, self._wake)
        self._slack = SlackSurface(self.services)
        self.services = self._slack.services
        handlers: Mapping[str, Handler] = {
            **incident_handlers(self.services),
            **self._slack.handlers(),
        }
        self._worker = Worker(
            self._queue,
            handlers,
            self.services.clock,
            gave_up=lambda claim, error: giving_up.tell(self.services, claim, error),
            doorway=self._slack.doorway,
        )
        metrics = Metrics()
        self.web = Starlette(
            routes=[
                *self._slack.routes(),
                *Webhooks(
                    settings, self.services.openings, ChangeLog(store), metrics, self._wake
                ).routes(),
                *Health(self.services, self._slack.state, metrics).routes(),
                *IncidentPages(self.services).routes(),
                *StatisticsPages(self.services).routes(),
            ]
        )

    def _wake(self) -> None:
        self._worker.wake()

    async def _remember(self) -> None:
        """Reads what earlier incidents teach before the first new one asks for it."""
        try:
            await self.services.archive.pasts()
        except StoreError as error:
            log.warning("serve.past_not_read", error=str(error))

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set, then drains."""
        server = uvicorn.Server(
            uvicorn.Config(
                self.web,
                host=self._settings.host,
                port=self._settings.port,
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                server_header=False,
            )
        )
        # uvicorn would install handlers of its own and swallow ours.
        server.capture_signals = _no_capture  # type: ignore[method-assign]
        listener = listen(
            self._settings.host,
            self._settings.port,
            settings=("RCA_HOST", "RCA_PORT"),
            advice="is another bot running there?",
            backlog=1024,
        )
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(server.serve(sockets=[listener]))
                working = group.create_task(self._worker.run())
                auditing = group.create_task(Auditor(self.services).run(stop))
                slack = group.create_task(self._slack.run(stop))
                remembering = group.create_task(self._remember())
                await stop.wait()
                remembering.cancel()
                server.should_exit = True
                await serving
                await slack
                await auditing
                self._worker.stop()
                await working
        finally:
            listener.close()
            chart_worker().close()
            report_worker().close()


@contextmanager
def _no_capture() -> Iterator[None]:
    yield
