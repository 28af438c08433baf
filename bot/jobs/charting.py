"""Charts of an incident: drawn off the event loop, stored, and posted after the words that they support."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from datetime import timedelta

import structlog

from bot.checkpoint import reached
from bot.diagnosis.charts import deciding_charts, query_chart, recovery_chart, symptom_chart
from bot.diagnosis.collect import collect
from bot.diagnosis.engine import assess
from bot.diagnosis.request import CHANGES_BACK_SECONDS, DiagnosisRequest
from bot.domain.evidence import ChartMark, ChartSpec
from bot.domain.incident import Incident, svg_beside
from bot.domain.text import Locale, Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.errors import BotError, EvidenceError
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.report.charts import draw_in_worker, draw_svg_in_worker
from bot.store.blobs import blob_key
from bot.store.queue import Claim, Job

log = structlog.get_logger(__name__)

LONGEST_WINDOW_SECONDS = 6 * 3600.0


def request_of(
    services: Services, incident: Incident, *, by: str, window_seconds: float
) -> DiagnosisRequest:
    """What the engine is asked about this incident: a window that reaches to before the first symptom."""
    now = services.clock()
    begins = [item.since for item in incident.symptoms if item.since is not None]
    first = min(begins, default=incident.opened_at)
    seconds = max(window_seconds, (now - first + timedelta(minutes=15)).total_seconds())
    return DiagnosisRequest(
        service=incident.service or "",
        at=now,
        window_seconds=min(seconds, LONGEST_WINDOW_SECONDS),
        symptoms=incident.symptoms,
        labels=incident.labels,
        subject=by,
        changes_back_seconds=max(incident.changes_back_seconds or 0.0, CHANGES_BACK_SECONDS),
    )


def marks_of(incident: Incident) -> tuple[ChartMark, ...]:
    """When alerts began, and what set the cause off."""
    alerts = sorted({(alert.starts_at, alert.name) for alert in incident.alerts.values()})
    marks = [
        ChartMark(at=at, label=Localized.verbatim(name[:40]), kind="alert")
        for at, name in alerts[:3]
    ]
    marks += [
        ChartMark(at=item.at, label=say("jobs.mitigation_mark"), kind="mitigation")
        for item in incident.mitigations
    ]
    return tuple(marks)


class Charting:
    """Handler of the chart job, and the drawing that other work hands in."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def chart(self, claim: Claim) -> Done | Later:
        """Asks for the data, draws it, and posts it; a source that is down is said in the thread instead."""
        payload = claim.job.payload
        incident = (await self._services.journal.load(payload["incident"])).incident
        if incident.service is None and payload["kind"] != "query":
            return Done()
        via = Via(by=payload["by"], at=self._services.clock(), key=claim.job.id, source="engine")
        try:
            specs = await self._specs(incident, payload)
        except EvidenceError as error:
            if payload["by"] != SYSTEM_AUTHOR:
                await self._say(incident, claim, Localized.verbatim(str(error)))
            log.info("chart.no_data", incident=incident.id, reason=error.reason.value)
            return Done()
        if not specs and payload["by"] != SYSTEM_AUTHOR:
            await self._say(incident, claim, say("jobs.query_empty"))
        await self.post(incident, specs, via)
        return Done()

    async def post(self, incident: Incident, specs: Sequence[ChartSpec], via: Via) -> None:
        """Draws, stores and posts; each chart once per `via.key`. Then draws them in the other languages."""
        for spec in specs:
            drawn = await draw_in_worker(
                spec, incident.locale, zone=self._services.settings.timezone
            )
            reached("chart.drawn")
            name = f"{spec.id}-{via.key}"
            store = self._services.store
            await store.put_blob(blob_key(incident.id, f"{name}.png"), drawn.png)
            await store.put_blob(blob_key(incident.id, f"{name}.svg"), drawn.svg)
            await store.put_blob(blob_key(incident.id, f"{name}.csv"), drawn.csv)
            draft = Draft(
                kind=EntryKind.CHART,
                at=self._services.clock(),
                text=say("jobs.chart_posted", title=spec.title),
                author=via.by,
                source="engine",
                data={
                    "chart": spec.id if spec.id != "query" else name,
                    "title": spec.title.to_json(),
                    "alt": drawn.alt.to_json(),
                    "png": f"{name}.png",
                    "svg": f"{name}.svg",
                    "panels": [
                        {"query": panel.query, "unit": panel.unit, "evidence": panel.evidence_id}
                        for panel in spec.panels
                    ],
                },
            )
            message = Message(
                view="chart",
                context={
                    "title": spec.title.to_json(),
                    "alt": drawn.alt.to_json(),
                    "by": via.by,
                },
                files=(blob_key(incident.id, f"{name}.png"),),
            )
            await self._write(incident, draft, message, via, spec.id)
        await self._translate(incident, specs, via)

    async def _translate(self, incident: Incident, specs: Sequence[ChartSpec], via: Via) -> None:
        """Draws the charts for a report in another language, after the thread has them: nobody waits for these."""
        zone = self._services.settings.timezone
        others = [locale for locale in Locale if locale is not incident.locale]
        for spec, locale in itertools.product(specs, others):
            try:
                svg = await draw_svg_in_worker(spec, locale, zone=zone)
            except BotError as error:
                # The report then shows the chart as the thread does.
                log.warning(
                    "chart.untranslated", incident=incident.id, chart=spec.id, error=str(error)
                )
                return
            name = svg_beside(f"{spec.id}-{via.key}.svg", locale)
            await self._services.store.put_blob(blob_key(incident.id, name), svg)

    async def _write(
        self, incident: Incident, draft: Draft, message: Message, via: Via, step: str
    ) -> None:
        def jobs(after: Incident) -> Sequence[Job]:
            return (outbox.thread_post(after, message),)

        await self._services.responding.write(
            incident.id, via, lambda _: [draft], step=f"chart:{step}", jobs=jobs
        )

    async def _specs(
        self, incident: Incident, payload: Mapping[str, object]
    ) -> Sequence[ChartSpec]:
        ports = self._services.ports_of(incident)
        seconds = payload["range_s"]
        request = request_of(
            self._services,
            incident,
            by=str(payload["by"]),
            window_seconds=float(seconds) if isinstance(seconds, int | float) else 3600.0,
        )
        marks = marks_of(incident)
        match payload["kind"]:
            case "query":
                spec = await query_chart(str(payload["query"]), request, ports, marks)
            case "recovery" if incident.fix is not None:
                spec = await recovery_chart(request, ports, fixed_at=incident.fix.at, marks=marks)
            case "deciding":
                collected = await collect(request, ports)
                service = ports.service(request.service)
                diagnosis = await asyncio.to_thread(
                    assess, collected, self._services.catalogue, service
                )
                return deciding_charts(collected, diagnosis, self._services.catalogue, marks)
            case _:
                spec = await symptom_chart(request, ports, marks)
        return (spec,) if spec is not None else ()

    async def _say(self, incident: Incident, claim: Claim, text: Localized) -> None:
        message = Message(view="notice", context={"text": text.to_json()})
        await self._services.outbox.send(
            outbox.thread_post(incident, message), once=f"{claim.job.id}:say"
        )


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {requests.CHART: Charting(services).chart}
