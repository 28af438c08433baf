"""Slack as the rest of the bot sees it: routes, job handlers, a state, and a transport that runs.

The composition root needs exactly this class; what is behind it is the package's own business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from bot.jobs.services import Services
from bot.jobs.worker import Handler


class SlackSurface:
    """Slack of one deployment.

    handlers: by job kind: `slack.inbound`, `slack.card`, `slack.post`.
    routes: `POST /slack/events`.
    state: `connected` (True, False, or None before the first call), `mode` (`http` or `socket`), `last_error`.
    run: Socket Mode while `slack_app_token` is set, else only waits for `stop`; drains before it returns.
    """

    def __init__(self, services: Services) -> None:
        raise NotImplementedError

    def handlers(self) -> Mapping[str, Handler]: ...

    def routes(self) -> list[Route]: ...

    def state(self) -> Mapping[str, Any]: ...

    async def run(self, stop: asyncio.Event) -> None: ...
