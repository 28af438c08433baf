"""Live, ready, and the bot's own metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.errors import StoreError
from bot.jobs.auditing import Auditor
from bot.jobs.services import Services
from bot.web.metrics import CONTENT_TYPE, Metrics


class Health:
    """`/healthz`, `/readyz` and `/metrics`. Ready means that Redis takes writes; Slack's state is told, not required."""

    def __init__(
        self,
        services: Services,
        slack_state: Callable[[], Mapping[str, Any]],
        metrics: Metrics,
    ) -> None:
        self._services = services
        self._slack_state = slack_state
        self._metrics = metrics
        self._auditor = Auditor(services)

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/healthz", self.live),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
        ]

    async def live(self, _: Request) -> Response:
        """The event loop answers."""
        return JSONResponse({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        """503 while Redis does not take writes."""
        slack = dict(self._slack_state())
        try:
            await self._services.store.is_writable()
        except StoreError as error:
            return JSONResponse(
                {"status": "not ready", "redis": str(error), "slack": slack}, status_code=503
            )
        return JSONResponse({"status": "ready", "redis": "ok", "slack": slack})

    async def metrics(self, _: Request) -> Response:
        """Prometheus' exposition."""
        try:
            self._metrics.queue_lanes.set(await self._services.queue.depth())
            self._metrics.overdue_timers.set(await self._auditor.overdue())
        except StoreError:
            self._metrics.queue_lanes.set(float("nan"))
            self._metrics.overdue_timers.set(float("nan"))
        connected = self._slack_state().get("connected")
        if connected is not None:
            self._metrics.slack_up.set(1 if connected else 0)
        return Response(self._metrics.render(), media_type=CONTENT_TYPE)
