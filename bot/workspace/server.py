"""Wires the workspace together and serves it on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from types import FrameType

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from bot.blockkit.validate import prepare
from bot.listening import listen
from bot.workspace import payloads
from bot.workspace.changes import Change
from bot.workspace.config import Transport, WorkspaceConfig
from bot.workspace.control import Control
from bot.workspace.delivery import Carrier, Courier
from bot.workspace.events import inner_events
from bot.workspace.faults import FaultPlan
from bot.workspace.file_routes import FileRoutes
from bot.workspace.http_carrier import HttpCarrier
from bot.workspace.interactions import Interactions
from bot.workspace.modals import Modals
from bot.workspace.page import Page
from bot.workspace.ratelimit import RateLimiter
from bot.workspace.rig import Rig
from bot.workspace.screen import Screen
from bot.workspace.services import Services
from bot.workspace.socket_carrier import SocketCarrier
from bot.workspace.state import Workspace
from bot.workspace.subscription import Subscription
from bot.workspace.tickets import Tickets
from bot.workspace.traffic import Traffic
from bot.workspace.web_api import WebApi

_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWorkspace:
    """A workspace that answers; `url` has no trailing slash, `api_url` is what `SLACK_API_URL` wants."""

    url: str
    config: WorkspaceConfig
    workspace: Workspace

    @property
    def api_url(self) -> str:
        """The base of the Web API."""
        return f"{self.url}/api/"


def create_app(workspace: Workspace, config: WorkspaceConfig) -> Starlette:
    """The application. Names that are not loopback are refused, whatever address they lead to."""
    clock = workspace.clock
    services = Services(
        workspace=workspace,
        config=config,
        tickets=Tickets(clock.now, trigger_seconds=config.trigger_seconds),
        faults=FaultPlan(),
        traffic=Traffic(clock.now),
        limiter=RateLimiter(clock.now),
        subscription=Subscription(
            clock.now, per_hour=config.events_per_hour, floor=config.failure_floor
        ),
        is_rate_limited=config.is_rate_limited,
    )
    client = httpx.AsyncClient(
        trust_env=False, limits=httpx.Limits(max_connections=50, max_keepalive_connections=20)
    )
    sockets = SocketCarrier(workspace.app.id, ack_seconds=config.ack_seconds)
    carrier = _carrier(config, client, sockets)
    courier = Courier(carrier, clock, services.faults, services.traffic, services.subscription)
    workspace.listen(lambda change: _offer(services, courier, change))
    screen = Screen(services)
    rig = Rig(services, courier, screen, client)
    control = Control(
        services, Interactions(services, courier), Modals(services, courier), screen, rig
    )
    files = FileRoutes(services)

    async def link(connection: WebSocket) -> None:
        if services.tickets.redeem_socket(connection.query_params.get("ticket", "")):
            await sockets.serve(connection)
        else:
            await connection.close(code=1008)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(prepare)
        running = asyncio.create_task(courier.run())
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await client.aclose()

    application = Starlette(
        lifespan=lifespan,
        middleware=[
            Middleware(
                TrustedHostMiddleware,
                allowed_hosts=["127.0.0.1", "localhost", config.host],
                www_redirect=False,
            )
        ],
        routes=[
            Route("/api/{method}", WebApi(services).endpoint, methods=["GET", "POST"]),
            Route("/upload/v1/{file_id}", files.upload, methods=["POST"]),
            Route("/files-pri/{team}-{file_id}/{name:path}", files.download, methods=["GET"]),
            Route("/response/{response_id}", files.respond, methods=["POST"]),
            WebSocketRoute("/link/", link),
            *control.routes(),
            *Page(workspace, screen).routes(),
        ],
    )
    application.state.screen = screen
    return application


async def serve(config: WorkspaceConfig, *, announce: Callable[[str], None] | None = None) -> None:
    """Serves until interrupted.

    announce: is told the address once it is bound.

    Raises:
        ConfigError: the address is taken.
    """
    listener = listen(
        config.host,
        config.port,
        settings=("--host", "--port"),
        advice="choose another one",
        backlog=512,
    )
    workspace = _addressed(Workspace(), config, listener)
    application = create_app(workspace, config)
    if announce is not None:
        announce(workspace.base_url)
    await _Server(_settings(application), application.state.screen).serve(sockets=[listener])


@contextlib.asynccontextmanager
async def running(
    config: WorkspaceConfig, workspace: Workspace | None = None
) -> AsyncIterator[RunningWorkspace]:
    """Serves in the background while the block runs; port 0 takes a free one.

    Raises:
        ConfigError: the address is taken.
    """
    listener = listen(
        config.host,
        config.port,
        settings=("--host", "--port"),
        advice="choose another one",
        backlog=512,
    )
    held = _addressed(workspace or Workspace(), config, listener)
    application = create_app(held, config)
    server = _EmbeddedServer(_settings(application))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not server.started:
                if task.done():
                    await task
                await asyncio.sleep(0.005)
        yield RunningWorkspace(url=held.base_url, config=config, workspace=held)
    finally:
        application.state.screen.stop()
        server.should_exit = True
        await task


def _carrier(config: WorkspaceConfig, client: httpx.AsyncClient, sockets: SocketCarrier) -> Carrier:
    match config.transport:
        case Transport.HTTP:
            return HttpCarrier(
                client,
                signing_secret=config.signing_secret,
                # Not the workspace's clock: the app compares with real time and would refuse a moved one.
                now=time.time,
                bot_url=config.bot_url,
                ack_seconds=config.ack_seconds,
            )
        case Transport.SOCKET:
            return sockets


def _offer(services: Services, courier: Courier, change: Change) -> None:
    workspace = services.workspace
    for event in inner_events(workspace, change, services.config.subscriptions):
        courier.offer(payloads.event_envelope(workspace, event, workspace.new_id("Ev")))


def _addressed(workspace: Workspace, config: WorkspaceConfig, listener: socket.socket) -> Workspace:
    host = f"[{config.host}]" if ":" in config.host else config.host
    workspace.base_url = f"http://{host}:{listener.getsockname()[1]}"
    return workspace


def _settings(application: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        ws="websockets-sansio",
        lifespan="on",
        timeout_graceful_shutdown=2,
    )


class _Server(uvicorn.Server):
    """A server that ends the live streams of open pages when it is told to stop; they never end by themselves."""

    def __init__(self, settings: uvicorn.Config, screen: Screen) -> None:
        super().__init__(settings)
        self._screen = screen

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stops on a signal."""
        self._screen.stop()
        super().handle_exit(sig, frame)


class _EmbeddedServer(uvicorn.Server):
    """A server inside somebody else's process, which keeps its own signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals alone."""
        yield
