"""What the incidents of a span add up to: a page for people, CSV for machines."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.domain.text import Locale
from bot.errors import StoreError
from bot.jobs.services import Services
from bot.learning.past import Past
from bot.learning.statistics import Statistics, statistics_of
from bot.learning.statistics_csv import incidents_csv, summary_csv
from bot.signed_link import signed_link
from bot.web.auth import may_read
from bot.web.statistics_page import page_of

_SPAN = re.compile(r"^([0-9]{1,3})d$")
_USUAL_DAYS = 90
_LONGEST_DAYS = 366


class StatisticsPages:
    """`/stats` and `/stats.csv`, for whoever may read incidents."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> list[Route]:
        """Both."""
        return [Route("/stats", self.page), Route("/stats.csv", self.table)]

    async def page(self, request: Request) -> Response:
        """The figures with their definitions and n, and charts."""
        if not may_read(request, self._services.settings):
            return _refused()
        try:
            statistics, _ = await self._read(request)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        wanted = request.query_params.get("locale", "")
        locale = Locale(wanted) if wanted in set(Locale) else self._services.settings.locale
        tables = self._tables(request.query_params.get("range") or f"{_USUAL_DAYS}d")
        body = page_of(statistics, locale, tables)
        return HTMLResponse(body, headers=_INERT)

    async def table(self, request: Request) -> Response:
        """One line an incident; `?table=summary` gives one line a figure."""
        if not may_read(request, self._services.settings):
            return _refused()
        try:
            statistics, pasts = await self._read(request)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        is_summary = request.query_params.get("table") == "summary"
        text = summary_csv(statistics) if is_summary else incidents_csv(statistics, pasts)
        name = "summary.csv" if is_summary else "incidents.csv"
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        return Response(text, media_type="text/csv; charset=utf-8; header=present", headers=headers)

    async def _read(self, request: Request) -> tuple[Statistics, Sequence[Past]]:
        days = _days(request.query_params.get("range", f"{_USUAL_DAYS}d"))
        now = self._services.clock()
        pasts = await self._services.archive.pasts()
        return statistics_of(pasts, now - timedelta(days=days), now), pasts

    def _tables(self, span: str) -> tuple[str, str]:
        """Links to both tables that a browser can follow from a page that it opened by a link."""
        # By the clock that the door looks at when the link is followed.
        now = time.time()

        def link(**also: str) -> str:
            return signed_link(
                self._services.settings,
                "/stats.csv",
                valid_seconds=3_600,
                now=now,
                range=span,
                **also,
            )

        return link(), link(table="summary")


def _days(text: str) -> int:
    found = _SPAN.match(text)
    days = int(found.group(1)) if found else 0
    if not 1 <= days <= _LONGEST_DAYS:
        raise ValueError(f"range: {text[:20]!r} is no span; write 1d to {_LONGEST_DAYS}d")
    return days


# The page carries titles and names from outside: even if some of it got through, it must do nothing.
_INERT = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-downloads allow-top-navigation-by-user-activation",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def _refused() -> Response:
    return PlainTextResponse(
        "not allowed: send `Authorization: Bearer <RCA_READ_TOKEN>`", status_code=401
    )
