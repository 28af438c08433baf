"""At the close: what this incident would change for the next one, in the checklists and in the monitoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.checklist import Background, fitting, propose_for
from bot.domain.checklist import CheckOutcome, CheckRun, UsedChecklist
from bot.domain.incident import Incident
from bot.domain.timeline import SYSTEM_AUTHOR
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.services import Services
from bot.jobs.watching import Proposed, watch_proposals
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.store.queue import Claim


class Proposing:
    """Handler of the checklist job."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def propose(self, claim: Claim) -> Done | Later:
        """Proposes the changes that this incident justifies; what has been proposed once stays as it is."""
        payload = claim.job.payload
        incident_id = payload["incident"]
        incident = (await self._services.journal.load(incident_id)).incident
        via = Via(by=payload["by"], at=self._services.clock(), key=claim.job.id, source="engine")
        if not incident.is_checklist_reviewed:
            # An exercise teaches people; the lists that others work with stay as they are.
            made = () if incident.drill else await self._made(incident_id, via)
            recorded = await self._services.checklists.propose(incident_id, made, via)
            incident = recorded.incident
        elif payload["by"] == SYSTEM_AUTHOR:
            return Done()
        has_any = bool(incident.checklist_changes or incident.monitoring_changes)
        if has_any or payload["by"] != SYSTEM_AUTHOR:
            post = outbox.thread_post(incident, Message(view="checklist"))
            await self._services.outbox.send(post, once=f"{claim.job.id}:post")
        return Done()

    async def _made(self, incident_id: str, via: Via) -> tuple[Proposed, ...]:
        ledger = await self._services.journal.load(incident_id)
        incident = await self._close_checks(ledger.incident, via)
        known = await self._services.shelf.current()
        checklists = {name: item.checklist for name, item in known.items()}
        chosen = fitting(incident, checklists)
        usage = {chosen.id: await self._services.shelf.usage(chosen.id)} if chosen else {}
        await self._services.knowledge.refresh()
        catalogue, sop = self._services.catalogue, self._services.sop
        background = Background(
            entries=ledger.entries,
            usage=usage,
            procedure=sop.source,
            procedure_name=self._services.shelf.procedure,
            known={item.name: item.layer.value for item in catalogue.signals.values()}
            | {item.id: item.layer.value for item in catalogue.findings.values()},
            symptoms={
                item.name: item.symptom.value
                for item in catalogue.signals.values()
                if item.symptom is not None
            },
        )
        proposals = propose_for(incident, catalogue, checklists, background)
        return (*proposals, *await watch_proposals(self._services, incident))

    async def _close_checks(self, incident: Incident, via: Via) -> Incident:
        """Questions to people that nobody answered were skipped; that is known only now."""
        listed = incident.checklist
        if listed is None:
            return incident
        answered = {run.item for run in incident.checks if run.checklist == listed.id}
        skipped = [
            _skipped(listed, place, via)
            for place, item in enumerate(listed.checks)
            if item.id not in answered and item.probe is None and item.query is None
        ]
        if not skipped:
            return incident
        by_bot = replace(via, by=SYSTEM_AUTHOR)
        recorded = await self._services.checklists.record_checks(
            incident.id, skipped, by_bot, step="skipped"
        )
        return recorded.incident


def _skipped(listed: UsedChecklist, place: int, via: Via) -> CheckRun:
    item = listed.checks[place]
    return CheckRun(
        checklist=listed.id,
        item=item.id,
        version=listed.version,
        text=item.text,
        outcome=CheckOutcome.SKIPPED,
        summary=say("checklist.no_answer"),
        by=SYSTEM_AUTHOR,
        at=via.at,
        learned_from=item.learned_from,
    )


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {requests.CHECKLIST: Proposing(services).propose}
