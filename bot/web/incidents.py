"""Read-only pages and exports of incidents."""

from __future__ import annotations

import asyncio
from html import escape
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.domain.text import Locale
from bot.domain.whole import whole
from bot.errors import BotError, CommandError, Reason, StoreError
from bot.exporter import ExportOptions
from bot.exporters import exporters, render_in_worker
from bot.incidents.journal import UnknownIncidentError
from bot.jobs.reporting import compare_revisions, compile_report, may_leave
from bot.jobs.services import Services
from bot.locales import translate
from bot.report.bundle import bundle
from bot.report.document import schema_text
from bot.store import index
from bot.web.auth import may_read

PAGE_SIZE = 50

_PAGE = """<!doctype html>
<html lang="{lang}"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
body{{font:16px/1.5 system-ui,"Noto Sans CJK SC",sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}}
table{{border-collapse:collapse;width:100%}}
th,td{{text-align:left;padding:.45rem .6rem;border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent)}}
th{{font-weight:600}} a{{color:inherit}}
</style></head><body><h1>{title}</h1>{body}</body></html>"""


class IncidentPages:
    """`/incidents`, one incident, and its report in each format."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/incidents", self.listing),
            Route("/incidents/{id}", self.report),
            Route("/incidents/{id}/report.diff", self.difference),
            Route("/incidents/{id}/report.{suffix}", self.report),
            Route("/schemas/postmortem/1.json", self.schema),
        ]

    async def listing(self, request: Request) -> Response:
        """Newest first; JSON on `Accept: application/json`."""
        if not may_read(request, self._services.settings):
            return _refused(request)
        before = whole(request.query_params.get("before", ""))
        try:
            found = await index.summaries(self._services.store, before=before, limit=PAGE_SIZE + 1)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        page = found[:PAGE_SIZE]
        following = index.number_of(page[-1].id) if len(found) > PAGE_SIZE else None
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse(
                {
                    "incidents": [item.to_json() for item in page],
                    "next": f"/incidents?before={following}" if following else None,
                }
            )
        locale = _locale(request, self._services.settings.locale)
        head = "".join(
            f"<th>{escape(translate(locale, f'web.{name}'))}</th>"
            for name in ("incident", "title", "severity", "status", "opened")
        )
        # A link of this page keeps what its reader chose; a signature is good for its own page only.
        chosen = {"locale": locale.value} if "locale" in request.query_params else {}
        query = f"?{urlencode(chosen)}" if chosen else ""
        rows = "".join(
            f'<tr><td><a href="/incidents/{escape(item.id)}{escape(query)}">{escape(item.id)}</a></td>'
            f"<td>{escape(item.title)}</td><td>{escape(item.severity)}</td>"
            f"<td>{escape(item.status)}</td><td>{escape(item.opened_at.strftime('%Y-%m-%d %H:%M UTC'))}</td></tr>"
            for item in page
        )
        more = (
            f'<p><a href="/incidents?{escape(urlencode({**chosen, "before": following}))}">'
            f"{escape(translate(locale, 'web.older'))}</a></p>"
            if following
            else ""
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
        if not page:
            table = f"<p>{escape(translate(locale, 'web.none'))}</p>"
        title = translate(locale, "web.incidents")
        return HTMLResponse(
            _PAGE.format(lang=locale.value, title=escape(title), body=table),
            headers=_INERT,
        )

    async def report(self, request: Request) -> Response:
        """One incident's report; the page itself is the HTML export, `.zip` the Markdown with its images and data."""
        if not may_read(request, self._services.settings):
            return _refused(request)
        incident_id = request.path_params["id"]
        suffix = request.path_params.get("suffix", "html")
        is_bundle = suffix == "zip"
        if is_bundle:
            suffix = "md"
        exporter = exporters().get(suffix)
        if exporter is None:
            return JSONResponse({"error": f"{suffix}: no such report format"}, status_code=404)
        try:
            incident = (await self._services.journal.load(incident_id)).incident
            locale = _locale(request, incident.locale)
            if (why := await may_leave(self._services, incident, "http")) is not None:
                return JSONResponse({"error": why.in_locale(locale)}, status_code=403)
            postmortem = await compile_report(self._services, incident_id)
            written = await render_in_worker(postmortem, [suffix], ExportOptions(locale=locale))
        except UnknownIncidentError as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except BotError as error:
            status = 503 if error.reason in (Reason.REFUSED, Reason.TIMEOUT) else 500
            return JSONResponse({"error": str(error)}, status_code=status)
        if is_bundle:
            packed = await asyncio.to_thread(bundle, written[suffix])
            return Response(packed, media_type="application/zip", headers=_INERT)
        return Response(written[suffix].content, media_type=exporter.media_type, headers=_INERT)

    async def difference(self, request: Request) -> Response:
        """What changed in the report between two revisions (`?from=1&to=3`), as a unified diff of its statements."""
        if not may_read(request, self._services.settings):
            return _refused(request)
        incident_id = request.path_params["id"]
        before, after = (
            whole(request.query_params.get(name, ""), digits=6) for name in ("from", "to")
        )
        if before is None or after is None:
            error = "from and to must be numbers of revisions, as the report lists them"
            return JSONResponse({"error": error}, status_code=400)
        try:
            incident = (await self._services.journal.load(incident_id)).incident
            locale = _locale(request, incident.locale)
            if (why := await may_leave(self._services, incident, "http")) is not None:
                return JSONResponse({"error": why.in_locale(locale)}, status_code=403)
            found = await compare_revisions(
                self._services, incident_id, before=before, after=after, locale=locale
            )
        except (UnknownIncidentError, CommandError) as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except BotError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        text = found.text or translate(locale, "report.revision.same")
        return PlainTextResponse(f"{text}\n", headers=_INERT)

    async def schema(self, request: Request) -> Response:
        """The published JSON Schema of the JSON export; it holds no incident, so anybody may read it."""
        del request
        return Response(schema_text(), media_type="application/schema+json", headers=_INERT)


# The pages carry text from alerts and logs: even if some of it got through, it must do nothing.
_INERT = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox allow-downloads allow-popups allow-top-navigation-by-user-activation",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def _locale(request: Request, default: Locale) -> Locale:
    wanted = request.query_params.get("locale", "")
    return Locale(wanted) if wanted in set(Locale) else default


def _refused(request: Request) -> Response:
    text = "not allowed: send `Authorization: Bearer <RCA_READ_TOKEN>` or open a signed link from Slack"
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"error": text}, status_code=401)
    return PlainTextResponse(text, status_code=401)
