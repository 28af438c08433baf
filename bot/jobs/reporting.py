"""The report: compiled from the timeline, handed over in the thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from bot import __version__
from bot.checkpoint import reached
from bot.domain.incident import Incident
from bot.domain.postmortem import Postmortem
from bot.domain.projection import project
from bot.domain.report_news import revisions
from bot.domain.text import Locale, Localized, listed
from bot.domain.timeline import Draft, Entry, EntryKind
from bot.errors import CommandError, Reason
from bot.exporter import ExportOptions
from bot.exporters import exporters, render_in_worker
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.report.bundle import bundle
from bot.report.compile import compile_postmortem
from bot.report.redact import redact
from bot.report.redaction_rules import rules_of
from bot.report.revisions import Comparison, compare
from bot.store import people
from bot.store.blobs import archive_name, blob_key
from bot.store.queue import Claim, Job


async def compile_report(
    services: Services, incident_id: str, *, until: int | None = None
) -> Postmortem:
    """The postmortem of an incident as it stands, redacted by the deployment's rules.

    until: seq of the last entry that counts, for an earlier revision.

    Raises:
        UnknownIncidentError: no such incident.
        StoreError: Redis is not reachable.
    """
    ledger = await services.journal.load(incident_id)
    entries, incident = ledger.entries, ledger.incident
    if until is not None:
        entries = tuple(entry for entry in entries if entry.seq <= until)
        incident = project(incident_id, entries)
    charts: dict[str, bytes] = {}
    for chart in incident.charts:
        for name in chart.blobs:
            content = await services.store.blob(blob_key(incident_id, name))
            if content is not None:
                charts[name] = content
    directory = await people.names(services.store)

    def compiled() -> Postmortem:
        report = _compiled(services, incident, entries, directory, charts)
        return redact(report, rules_of(services.settings.redaction))

    return await asyncio.to_thread(compiled)


async def draft_of(services: Services, incident_id: str) -> Postmortem:
    """The postmortem for those who write it: as it stands, nothing masked, without its drawings.

    Raises:
        UnknownIncidentError: no such incident.
        StoreError: Redis is not reachable.
    """
    ledger = await services.journal.load(incident_id)
    directory = await people.names(services.store)
    return await asyncio.to_thread(
        _compiled, services, ledger.incident, ledger.entries, directory, {}
    )


def _compiled(
    services: Services,
    incident: Incident,
    entries: Sequence[Entry],
    directory: Mapping[str, str],
    charts: Mapping[str, bytes],
) -> Postmortem:
    titles: Mapping[str, Localized] = {
        cause.id: cause.title for cause in services.catalogue.causes.values()
    }
    return compile_postmortem(
        incident,
        entries,
        directory=directory,
        charts=charts,
        zone=services.settings.timezone,
        version=__version__,
        titles=titles,
    )


async def compare_revisions(
    services: Services, incident_id: str, *, before: int, after: int, locale: Locale
) -> Comparison:
    """What changed in the report between two of its revisions, by their numbers.

    Raises:
        UnknownIncidentError: no such incident.
        CommandError: no such revision.
        StoreError: Redis is not reachable.
    """
    ledger = await services.journal.load(incident_id)
    known = {item.n: item for item in revisions(ledger.entries)}
    for n in (before, after):
        if n not in known:
            text = say("review.no_such_revision", incident=incident_id, n=n, last=len(known))
            raise CommandError(text, reason=Reason.NOT_FOUND)
    older = await compile_report(services, incident_id, until=known[before].seq)
    newer = await compile_report(services, incident_id, until=known[after].seq)
    names = (f"{incident_id} r{before}", f"{incident_id} r{after}")
    return await asyncio.to_thread(compare, older, newer, locale, names=names)


async def may_leave(services: Services, incident: Incident, way: str) -> Localized | None:
    """Why the report of an incident does not go out this way (`thread`, `http`, `shell`); None where it may.

    Raises:
        DeliveryError: Slack cannot be asked just now whether the channel is private.
    """
    if way in services.settings.export.private:
        return None
    if await services.members.is_public(incident.channel):
        return None
    return say("review.private", incident=incident.id, way=way)


def _masked_words(report: Postmortem) -> dict[str, str] | None:
    """What was masked, by kind and number."""
    kinds = [say(f"report.masked.{kind}", count=n) for kind, n in report.masked.items()]
    if not kinds:
        return None
    return say("review.masked", kinds=listed(kinds)).to_json()


class Reporting:
    """Handler of the report job."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def report(self, claim: Claim) -> Done | Later:
        """Writes the asked formats, stores them, and posts them as files of the thread."""
        payload = claim.job.payload
        incident_id = payload["incident"]
        incident = (await self._services.journal.load(incident_id)).incident
        if (why := await may_leave(self._services, incident, "thread")) is not None:
            await self._refuse(claim, incident, why)
            return Done()
        postmortem = await compile_report(self._services, incident_id)
        known = exporters()
        formats = [suffix for suffix in payload["formats"] if suffix in known]
        options = ExportOptions(locale=incident.locale)
        written = await render_in_worker(postmortem, formats, options)
        names: list[str] = []
        for suffix, export in written.items():
            name = f"{incident_id}.{suffix}"
            await self._services.store.put_blob(blob_key(incident_id, name), export.content)
            names.append(name)
            if len(export.files) > 1:
                # The images and the data that the text refers to.
                packed = archive_name(incident_id, suffix)
                content = await asyncio.to_thread(bundle, export)
                await self._services.store.put_blob(blob_key(incident_id, packed), content)
                names.append(packed)
        reached("report.compiled")
        now = self._services.clock()
        via = Via(by=payload["by"], at=now, key=claim.job.id, source="engine")
        message = Message(
            view="report",
            context={
                "formats": formats,
                "masked": _masked_words(postmortem),
                "unsupported": list(postmortem.unsupported),
            },
            files=tuple(blob_key(incident_id, name) for name in names),
        )

        def drafts(newest: Incident) -> Sequence[Draft]:
            # The state as it is now: somebody may have reviewed it while it was written.
            data = {"formats": formats, "state": newest.report_state}
            text = say("jobs.report_compiled", formats=listed(formats))
            return [
                Draft(
                    kind=EntryKind.REPORT,
                    at=now,
                    text=text,
                    author=payload["by"],
                    source="engine",
                    data=data,
                )
            ]

        def jobs(after: Incident) -> Sequence[Job]:
            return (outbox.thread_post(after, message),)

        await self._services.responding.write(incident_id, via, drafts, step="report", jobs=jobs)
        return Done()

    async def _refuse(self, claim: Claim, incident: Incident, why: Localized) -> None:
        message = Message(view="notice", context={"text": why.to_json()})
        post = outbox.thread_post(incident, message)
        await self._services.outbox.send(post, once=f"{claim.job.id}:refused")


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    reporting = Reporting(services)
    return {requests.REPORT: reporting.report}
