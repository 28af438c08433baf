"""Slack as the rest of the bot sees it: routes, job handlers, a state, and a transport that runs.

The composition root needs exactly this class; what is behind it is the package's own business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog
from starlette.routing import Route

import commands
from bot.blockkit.validate import prepare
from bot.command import Command
from bot.domain.text import Locale
from bot.errors import DeliveryError, Reason
from bot.jobs.doorway import Doorway
from bot.jobs.outbox import CARD, POST
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.registry import collect
from bot.slack import form_blocks, forms
from bot.slack.app import build_app, make_client, slack_routes
from bot.slack.capture import Capture
from bot.slack.directory import Directory
from bot.slack.dispatch import Dispatcher
from bot.slack.gate import Gate
from bot.slack.home import HOME, Home
from bot.slack.home_view import HomeView
from bot.slack.inbound import Inbound
from bot.slack.interactions import Interactions
from bot.slack.members import SlackMembers
from bot.slack.poster import Poster
from bot.slack.present import Presenter
from bot.slack.reactions import Reactions
from bot.slack.reading import FILE
from bot.slack.receiver import INBOUND, Receiver
from bot.slack.render import Renderer
from bot.slack.socket import SocketMode
from bot.slack.web import Web
from bot.store.queue import Claim

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 3.0
WARM_AGAIN_SECONDS = 30.0
_FILE_ATTEMPTS = 4


class SlackSurface:
    """Slack of one deployment.

    handlers: by job kind: `slack.inbound`, `slack.card`, `slack.post`, `slack.file`, `slack.home`.
    routes: `POST /slack/events`.
    services: the deployment's parts, with Slack's own knowledge of channels in them.
    state: `connected` (True, False, or None before the first call), `mode` (`http` or `socket`), `last_error`.
    run: Socket Mode while `slack_app_token` is set, else only waits for `stop`; drains before it returns.

    Raises:
        ConfigError: a template under `templates/slack/` cannot be compiled; one line per fault.
    """

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._settings = settings
        client = make_client(settings)
        self._web = Web(client)
        services = replace(services, members=SlackMembers(self._web, services.clock))
        self.services = services
        self._directory = Directory(self._web, services.store)
        renderer = Renderer(services.knowledge, settings.zone)
        renderer.check()
        presenter = Presenter(renderer, services.knowledge, services.inventory)
        self._poster = Poster(services, self._web, self._directory, presenter)
        self._capture = Capture(services, self._web, self._directory)
        gate = Gate(services)
        dispatcher = Dispatcher(services, collect(commands, Command), gate)
        interactions = Interactions(services, self._web, self._capture, dispatcher, gate)
        self._home = Home(services, self._web, self._directory, HomeView(renderer))
        self._inbound = Inbound(
            services,
            self._directory,
            self._capture,
            Reactions(services, self._directory, self._capture, gate),
            dispatcher,
            interactions,
        )
        self.doorway = Doorway()
        self._receiver = Receiver(
            services.store,
            self._web,
            services.clock,
            services.wake,
            self._suggest,
            settings.locale,
            self.doorway,
        )
        self._app = build_app(settings, client, self._directory, self._receiver.take)
        token = settings.slack_app_token
        self._socket = SocketMode(self._app, token.get_secret_value()) if token else None

    def handlers(self) -> Mapping[str, Handler]:
        """By job kind."""
        return {
            INBOUND: self._inbound.handle,
            CARD: self._poster.card,
            POST: self._poster.post,
            FILE: self._copy,
            HOME: self._home.publish,
        }

    def routes(self) -> list[Route]:
        """The one URL that Slack posts to."""
        return slack_routes(self._app, self._settings)

    def state(self) -> Mapping[str, Any]:
        """Whether Slack answers; told in readiness and metrics, required nowhere."""
        if self._socket is None:
            error = self._web.last_error
            connected = not error if self._web.was_called else None
            return {"connected": connected, "mode": "http", "last_error": error}
        return {
            "connected": self._socket.is_connected,
            "mode": "socket",
            "last_error": self._socket.last_error,
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop`, then drains."""
        await self._web.start()
        warming = asyncio.create_task(self._warm(stop))
        try:
            if self._socket is None:
                await stop.wait()
            else:
                await self._socket.run(stop)
        finally:
            warming.cancel()
            await asyncio.gather(warming, return_exceptions=True)
            await self._receiver.drain(DRAIN_SECONDS)
            # Jobs that are still in hand open a connection each.
            await self._web.close()

    async def _warm(self, stop: asyncio.Event) -> None:
        """Learns who the bot is, and compiles the schemas, before the first message needs either."""
        await asyncio.to_thread(prepare)
        while not stop.is_set():
            await self._directory.warm()
            if self._directory.is_fresh:
                return
            try:
                async with asyncio.timeout(WARM_AGAIN_SECONDS):
                    await stop.wait()
            except TimeoutError:
                continue

    async def _copy(self, claim: Claim) -> Done | Later:
        try:
            await self._capture.copy_file(claim.job.payload)
        except DeliveryError as error:
            if error.reason is not Reason.UNSUPPORTED and claim.attempt < _FILE_ATTEMPTS:
                raise
            log.warning("slack.file_not_copied", id=claim.job.id, error=str(error))
        return Done()

    def _suggest(self, action_id: str, typed: str, locale: Locale) -> list[dict[str, Any]]:
        """Options of an external select, from memory."""
        if action_id == form_blocks.PICK_CAUSE:
            return forms.causes(self.services.catalogue, typed, locale)
        return []
