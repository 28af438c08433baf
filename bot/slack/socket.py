"""Socket Mode: a connection that is watched, replaced when it goes deaf, and closed in bounded time."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

log = structlog.get_logger(__name__)

PING_SECONDS = 10.0
LOOK_SECONDS = 5.0
# Six pings without an answer: the connection is there and deaf. Source: slackapi/bolt-python#1529.
DEAF_AFTER_SECONDS = 60.0
CLOSE_SECONDS = 5.0
CONNECT_SECONDS = 20.0
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0


class SocketMode:
    """One bot's connection. `is_connected`: None before the first attempt; `last_error`: why the last one failed."""

    def __init__(self, app: AsyncApp, app_token: str) -> None:
        self._app = app
        self._token = app_token
        self.is_connected: bool | None = None
        self.last_error = ""

    async def run(self, stop: asyncio.Event) -> None:
        """Stays connected until `stop`; while there is no connection, tries again with growing pauses."""
        wait = FIRST_WAIT_SECONDS
        while not stop.is_set():
            handler = AsyncSocketModeHandler(
                self._app, self._token, web_client=self._own_client(), ping_interval=PING_SECONDS
            )
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await handler.connect_async()  # type: ignore[no-untyped-call]
                self.is_connected, self.last_error = True, ""
                wait = FIRST_WAIT_SECONDS
                log.info("socket.connected")
                await self._watch(handler, stop)
            except (SlackApiError, SlackClientError, aiohttp.ClientError, OSError) as error:
                self._failed(
                    type(error).__name__ if not isinstance(error, SlackApiError) else _code(error)
                )
            except TimeoutError:
                self._failed("no connection in time")
            finally:
                await self._close(handler)
            if not stop.is_set():
                await _rest(stop, wait)
                wait = min(LONGEST_WAIT_SECONDS, wait * 2)
        self.is_connected = False

    async def _watch(self, handler: AsyncSocketModeHandler, stop: asyncio.Event) -> None:
        """Returns when the connection should be replaced, or at `stop`."""
        lost_at: float | None = None
        while not stop.is_set():
            await _rest(stop, LOOK_SECONDS)
            client = handler.client
            is_up = await client.is_connected()
            heard = client.last_ping_pong_time
            if heard is not None and time.time() - heard > DEAF_AFTER_SECONDS:
                is_up = False
            self.is_connected = is_up
            if is_up:
                lost_at = None
                continue
            now = asyncio.get_running_loop().time()
            lost_at = lost_at if lost_at is not None else now
            # The library reconnects by itself first; when it does not, the whole handler is replaced.
            if now - lost_at > DEAF_AFTER_SECONDS:
                self._failed("connected but deaf")
                return

    async def _close(self, handler: AsyncSocketModeHandler) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await handler.close_async()  # type: ignore[no-untyped-call]
        except (TimeoutError, aiohttp.ClientError, OSError, RuntimeError) as error:
            # A close that hangs must not hold up the next connection or the end of the process.
            log.warning("socket.close", error=type(error).__name__)

    def _failed(self, why: str) -> None:
        self.is_connected, self.last_error = False, why
        log.warning("socket.lost", why=why)

    def _own_client(self) -> AsyncWebClient:
        """Opens connections with a client of its own: the bot's is closed with the bot."""
        return AsyncWebClient(
            base_url=self._app.client.base_url, timeout=int(CONNECT_SECONDS), retry_handlers=[]
        )


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass


def _code(error: SlackApiError) -> str:
    try:
        return str(error.response["error"])
    except (KeyError, TypeError):
        return "refused"
