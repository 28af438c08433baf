"""The report: compiled from the timeline, handed over in the thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from bot import __version__
from bot.checkpoint import reached
from bot.domain.incident import Incident
from bot.domain.postmortem import Postmortem
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.exporter import ExportOptions
from bot.exporters import exporters, render_in_worker
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.report.compile import compile_postmortem
from bot.store import people
from bot.store.queue import Claim, Job


def blob_key(incident_id: str, name: str) -> str:
    """Where a file of an incident is stored."""
    return f"rca:inc:{incident_id}:blob:{name}"


async def compile_report(services: Services, incident_id: str) -> Postmortem:
    """The postmortem of an incident as it stands.

    Raises:
        UnknownIncidentError: no such incident.
        StoreError: Redis is not reachable.
    """
    ledger = await services.journal.load(incident_id)
    charts: dict[str, bytes] = {}
    for chart in ledger.incident.charts:
        for name in (chart.png, chart.svg, chart.svg and chart.svg.removesuffix(".svg") + ".csv"):
            if not name:
                continue
            content = await services.store.blob(blob_key(incident_id, name))
            if content is not None:
                charts[name] = content
    titles: Mapping[str, Localized] = {
        cause.id: cause.title for cause in services.catalogue.causes.values()
    }
    return await asyncio.to_thread(
        compile_postmortem,
        ledger.incident,
        ledger.entries,
        directory=await people.names(services.store),
        charts=charts,
        zone=services.settings.timezone,
        version=__version__,
        titles=titles,
    )


class Reporting:
    """Handler of the report job."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def report(self, claim: Claim) -> Done | Later:
        """Writes the asked formats, stores them, and posts them as files of the thread."""
        payload = claim.job.payload
        incident_id = payload["incident"]
        postmortem = await compile_report(self._services, incident_id)
        incident = (await self._services.journal.load(incident_id)).incident
        known = exporters()
        formats = [suffix for suffix in payload["formats"] if suffix in known]
        options = ExportOptions(locale=incident.locale)
        written = await render_in_worker(postmortem, formats, options)
        names: list[str] = []
        for suffix, export in written.items():
            name = f"{incident_id}.{suffix}"
            await self._services.store.put_blob(blob_key(incident_id, name), export.content)
            names.append(name)
        reached("report.compiled")
        draft = Draft(
            kind=EntryKind.REPORT,
            at=self._services.clock(),
            text=say("jobs.report_compiled", formats=", ".join(formats)),
            author=payload["by"],
            source="engine",
            data={"formats": formats, "state": incident.report_state},
        )
        via = Via(by=payload["by"], at=draft.at, key=claim.job.id, source="engine")
        message = Message(
            view="report",
            context={"formats": formats},
            files=tuple(blob_key(incident_id, name) for name in names),
        )

        def jobs(after: Incident) -> Sequence[Job]:
            return (outbox.thread_post(after, message),)

        await self._services.responding.write(
            incident_id, via, lambda _: [draft], step="report", jobs=jobs
        )
        return Done()


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    reporting = Reporting(services)
    return {requests.REPORT: reporting.report}
