"""A running bot: the HTTP server, the worker, and Slack's transport, started together and drained together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
import uvicorn
from starlette.applications import Starlette

import bot.app as composition
from bot.diagnosis.request import DiagnosisPorts
from bot.jobs.handlers import incident_handlers
from bot.jobs.services import Services
from bot.jobs.worker import Handler, Worker
from bot.settings import Settings
from bot.slack.surface import SlackSurface
from bot.store.index import ChangeLog
from bot.store.queue import Queue
from bot.store.transaction import Store
from bot.web.health import Health
from bot.web.incidents import IncidentPages
from bot.web.metrics import Metrics
from bot.web.webhooks import Webhooks

log = structlog.get_logger(__name__)


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
        self.services: Services = composition.build_services(
            settings, store, self._queue, ports, self._wake
        )
        self._slack = SlackSurface(self.services)
        handlers: Mapping[str, Handler] = {
            **incident_handlers(self.services),
            **self._slack.handlers(),
        }
        self._worker = Worker(self._queue, handlers, self.services.clock)
        metrics = Metrics()
        self.web = Starlette(
            routes=[
                *self._slack.routes(),
                *Webhooks(
                    settings, self.services.openings, ChangeLog(store), metrics, self._wake
                ).routes(),
                *Health(self.services, self._slack.state, metrics).routes(),
                *IncidentPages(self.services).routes(),
            ]
        )

    def _wake(self) -> None:
        self._worker.wake()

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set, then drains."""
        server = uvicorn.Server(
            uvicorn.Config(
                self.web,
                host=self._settings.host,
                port=self._settings.port,
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=composition.SHUTDOWN_SECONDS,
                server_header=False,
            )
        )
        # uvicorn would install handlers of its own and swallow ours.
        server.capture_signals = _no_capture  # type: ignore[method-assign]
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(_serve(server, self._settings, stop))
            working = group.create_task(self._worker.run())
            socket = group.create_task(self._slack.run(stop))
            await stop.wait()
            server.should_exit = True
            await serving
            await socket
            self._worker.stop()
            await working


class _NoCapture:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...


def _no_capture() -> _NoCapture:
    return _NoCapture()


async def _serve(server: uvicorn.Server, settings: Settings, stop: asyncio.Event) -> None:
    try:
        await server.serve()
    except SystemExit as error:
        # uvicorn exits the process when it cannot bind; here that is one line and an orderly end.
        from bot.errors import ConfigError

        stop.set()
        raise ConfigError(
            f"RCA_PORT: cannot listen on {settings.host}:{settings.port}; is another bot running there?"
        ) from error
    stop.set()
