"""One pass of the engine over an incident: ask every source, rank the causes, say so in the thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.checkpoint import reached
from bot.diagnosis.charts import deciding_charts
from bot.diagnosis.collect import collect
from bot.diagnosis.collected import Collected
from bot.diagnosis.engine import assess
from bot.diagnosis.priors import Priors
from bot.diagnosis.scope import propose_scope
from bot.domain.evidence import Gap, SourceState
from bot.domain.hypothesis import Diagnosis
from bot.domain.incident import Incident
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.charting import Charting, marks_of, request_of
from bot.jobs.passes import SharedPasses
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.learning.priors import priors_of
from bot.learning.saving import is_worth_keeping, keep, packed
from bot.message import Message
from bot.store.queue import Claim, Job

log = structlog.get_logger(__name__)

PAST_SECONDS = 1.0
"""How long a ranking waits for what the past says; just after a start it may go without. Basis: ten seconds in all."""


class Collecting:
    """Handler of the collect job."""

    def __init__(self, services: Services) -> None:
        self._services = services
        runner = services.ports.probes
        shared = (
            SharedPasses(runner, services.clock, services.store) if runner is not None else None
        )
        self._shared = replace(services.ports, probes=shared)

    async def collect(self, claim: Claim) -> Done | Later:
        """Collects, judges, records, and queues what is to be said and drawn, in one transaction."""
        payload = claim.job.payload
        incident = (await self._services.journal.load(payload["incident"])).incident
        via = Via(by=payload["by"], at=self._services.clock(), key=claim.job.id, source="engine")
        if incident.service is None:
            post = outbox.thread_post(incident, Message(view="ask_service"))
            await self._services.outbox.send(post, once=f"{claim.job.id}:ask")
            return Done()
        await self._services.knowledge.refresh()
        await self._look_at_checklist(incident, claim, "opened")
        request = request_of(
            self._services, incident, by=payload["by"], window_seconds=payload["window_s"]
        )
        # What nobody asked for is asked once a node for all incidents that open together.
        is_automatic = payload["reason"] == "opened"
        ports = self._services.ports_of(incident)
        if is_automatic and incident.drill is None:
            ports = replace(self._shared, catalogue=self._services.catalogue)
        collected = await collect(request, ports)
        diagnosis = await asyncio.to_thread(
            assess,
            collected,
            self._services.catalogue,
            ports.service(incident.service),
            priors=await self._priors(incident),
        )
        if is_worth_keeping(incident):
            service = ports.service(incident.service)
            content = await asyncio.to_thread(packed, incident, collected, service)
            await keep(self._services.store, incident.id, content)
        reached("evidence.collected")
        # What was found is dated when it was found: the search itself takes seconds.
        via = replace(via, at=self._services.clock())
        await self._services.responding.record_readings(
            incident.id, collected.probes, via, purpose="collection"
        )
        await self._propose_scope(incident, collected, via)
        await self._services.responding.record_evidence(
            incident.id,
            via,
            evidence=diagnosis.evidence,
            gaps=diagnosis.gaps,
            sources=diagnosis.sources,
            layers=diagnosis.layers,
            blind_spots=diagnosis.blind_spots,
            changes=collected.changes,
            changes_since=_searched_since(collected),
            guards=diagnosis.guards,
            hypotheses=diagnosis.hypotheses,
            jobs=lambda after: _follow(after, diagnosis, payload),
        )
        reached("evidence.recorded")
        await self._look_at_checklist(incident, claim, "collected")
        if not _is_same(incident, payload["reason"]):
            specs = await asyncio.to_thread(
                deciding_charts,
                collected,
                diagnosis,
                self._services.catalogue,
                marks_of(incident),
            )
            await Charting(self._services).post(incident, specs, via)
        return Done()

    async def _look_at_checklist(self, incident: Incident, claim: Claim, stage: str) -> None:
        if stage == "opened" and not await self._services.shelf.teaches():
            return
        job = requests.checks(incident.id, stage=stage)
        await self._services.outbox.send(job, once=f"{claim.job.id}:checks:{stage}")

    async def _priors(self, incident: Incident) -> Priors | None:
        """What the team's own past adds; an exercise is judged by the catalogue alone."""
        if incident.drill is not None:
            return None
        pasts = await self._services.archive.pasts_within(PAST_SECONDS)
        if pasts is None:
            log.info("collect.no_past", incident=incident.id)
            return None
        return priors_of(pasts, self._services.clock(), but=incident.id)

    async def _propose_scope(self, incident: Incident, collected: Collected, via: Via) -> None:
        """Names who is affected, from the alert's labels and the symptom's own series, until a person has said it."""
        if incident.scope.is_confirmed:
            return
        catalogue = self._services.catalogue
        series = [
            one
            for name, reading in collected.now.items()
            if (signal := collected.signal(name, catalogue)) is not None and signal.symptom
            for one in reading.series
        ]
        seen = propose_scope(incident.labels, series)
        known = set(self._services.inventory.nodes)
        # An exporter's address is no node of the inventory: such a name would be asked for probes in vain.
        nodes = tuple(node for node in seen.nodes if node in known) or incident.scope.nodes
        proposed = replace(seen, nodes=nodes)
        await self._services.responding.propose_scope(incident.id, proposed, via)


def _follow(incident: Incident, diagnosis: Diagnosis, payload: Mapping[str, Any]) -> Sequence[Job]:
    reason = str(payload["reason"])
    found = Message(view="evidence", context={**_found(diagnosis), "by": payload["by"]})
    ranked = outbox.thread_post(incident, Message(view="hypotheses", context={"reason": reason}))
    if _is_same(incident, reason):
        return (ranked,)
    return (outbox.thread_post(incident, found), ranked)


def _searched_since(collected: Collected) -> datetime | None:
    """From when on changes were searched; None where their source did not answer."""
    if collected.states.get("events") not in (SourceState.OK, SourceState.EMPTY):
        return None
    request = collected.request
    return request.at - timedelta(seconds=request.changes_back_seconds)


def _is_same(incident: Incident, reason: str) -> bool:
    """A pass after a test only shows the new order, not the sources again."""
    return reason == "experiment" and bool(incident.charts)


def _found(diagnosis: Diagnosis) -> dict[str, object]:
    counts: dict[str, int] = {}
    for item in diagnosis.evidence:
        name = "probes" if item.source.value == "probe" else item.source.value
        counts[name] = counts.get(name, 0) + 1
    why = {
        gap.source.value if gap.source.value != "probe" else "probes": gap for gap in diagnosis.gaps
    }
    return {
        "sources": [
            {
                "name": name,
                "state": state.value,
                "count": counts.get(name, 0),
                **_why(why.get(name) if state.value != "ok" else None),
            }
            for name, state in diagnosis.sources.items()
        ],
        "found": len(diagnosis.evidence),
        "gaps": len(diagnosis.gaps),
        "top": [
            {
                "id": item.id,
                "summary": item.summary.to_json(),
                "source": item.source.value,
                "node": item.node,
            }
            for item in diagnosis.evidence
            if item.is_abnormal
        ][:5],
    }


def _why(gap: Gap | None) -> dict[str, str]:
    """Why a source has no answer: the closed word, which is shown in the reader's language, and the detail."""
    return {"reason": gap.reason if gap else "", "why": gap.detail if gap else ""}


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {requests.COLLECT: Collecting(services).collect}
