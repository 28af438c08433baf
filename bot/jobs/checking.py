"""The checklist at work: what earlier incidents taught is looked at first, the rest is read from what was collected."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from bot.checklist import ChecklistItem, fitting
from bot.checklist.judging import judge_results, judge_values, used
from bot.diagnosis.plan import Scope, is_heavy, probe_args
from bot.domain.checklist import CheckOutcome, CheckRun
from bot.domain.finding import ProbeResult
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Entry, EntryKind
from bot.errors import EvidenceError
from bot.incidents.procedure import procedure_drafts
from bot.incidents.responding import Via
from bot.incidents.shelf import Current
from bot.jobs import outbox, requests
from bot.jobs.passes import SharedPasses
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.source import ProbeRunner
from bot.store.queue import Claim

CHECK_SECONDS = 8.0
RATE_SECONDS = 60.0
MOST_LEARNED = 20
"""Learned checks that run by themselves at the opening; the others wait for what is collected anyway."""

_Answer = tuple[CheckOutcome, Localized]


class Checking:
    """Handler of the checks job."""

    def __init__(self, services: Services) -> None:
        self._services = services
        runner = services.ports.probes
        # Incidents that open together ask a node once.
        self._shared = (
            SharedPasses(runner, services.clock, services.store) if runner is not None else None
        )

    async def check(self, claim: Claim) -> Done | Later:
        """Runs what is to run at this stage, records what it came to, and says so."""
        payload = claim.job.payload
        ledger = await self._services.journal.load(payload["incident"])
        incident = await self._follow_procedure(ledger.incident, claim)
        current = await self._fitting(incident)
        # The counts of how checks fare are about real incidents.
        if current is None or incident.service is None or incident.drill is not None:
            return Done()
        is_early = payload["stage"] == "opened"
        readings = {} if is_early else _readings(ledger.entries)
        items = _due(current, incident, is_early=is_early)
        if is_early and not items:
            return Done()
        answers = await asyncio.gather(*(self._answer(incident, item, readings) for item in items))
        now = self._services.clock()
        via = Via(by=SYSTEM_AUTHOR, at=now, key=claim.job.id, source="engine")
        runs = [
            _run(current, item, answer, now)
            for item, (answer, _) in zip(items, answers, strict=True)
            if _is_news(incident, current, item, answer)
        ]
        fresh = [result for _, results in answers for result in results]
        await self._services.responding.record_readings(
            incident.id, fresh, via, purpose="checklist"
        )
        listed = used(current.checklist, current.edition.number)
        recorded = await self._services.checklists.record_checks(
            incident.id, runs, via, used=listed if listed != incident.checklist else None
        )
        await self._say(recorded.incident, is_early=is_early)
        return Done()

    async def _follow_procedure(self, incident: Incident, claim: Claim) -> Incident:
        """Records which version of the SOP is followed, where changes were accepted over the file."""
        await self._services.knowledge.refresh()
        via = Via(by=SYSTEM_AUTHOR, at=self._services.clock(), key=claim.job.id, source="engine")
        if not procedure_drafts(incident, self._services.sop, via):
            return incident
        recorded = await self._services.responding.write(
            incident.id,
            via,
            lambda now: procedure_drafts(now, self._services.sop, via),
            step="procedure",
        )
        return recorded.incident

    async def _fitting(self, incident: Incident) -> Current | None:
        known = await self._services.shelf.current()
        chosen = fitting(incident, {name: item.checklist for name, item in known.items()})
        return known[chosen.id] if chosen else None

    async def _say(self, incident: Incident, *, is_early: bool) -> None:
        """What was learned is said once it is known; the whole list once everything was read."""
        listed = incident.checklist
        if listed is None:
            return
        view = "checks_learned" if is_early else "checks"
        if is_early and not any(
            run.learned_from for run in incident.checks if run.checklist == listed.id
        ):
            return
        post = outbox.thread_post(incident, Message(view=view))
        await self._services.outbox.send(post, once=f"{view}:{incident.id}:{listed.id}")

    async def _answer(
        self,
        incident: Incident,
        item: ChecklistItem,
        readings: Mapping[str, Sequence[ProbeResult]],
    ) -> tuple[_Answer, Sequence[ProbeResult]]:
        """The answer, and the readings that were taken for it just now."""
        if item.query is not None:
            return await self._value(incident, item), ()
        probe = item.probe or ""
        if probe in readings:
            return judge_results(readings[probe]), ()
        runner = self._services.ports_of(incident).probes
        if runner is None:
            return (CheckOutcome.UNKNOWN, say("checklist.no_agents")), ()
        if runner is self._services.ports.probes and self._shared is not None:
            runner = self._shared
        taken = await self._probe(incident, probe, runner)
        return judge_results(taken), taken

    async def _value(self, incident: Incident, item: ChecklistItem) -> _Answer:
        metrics = self._services.ports_of(incident).metrics
        if metrics is None:
            return CheckOutcome.UNKNOWN, say("checklist.no_source")
        service = self._services.ports_of(incident).service(incident.service or "")
        scope = Scope(
            service=service, nodes=_nodes(self._services, incident), rate_seconds=RATE_SECONDS
        )
        query = scope.fill(item.query or "")
        try:
            answer = await metrics.instant(
                query, self._services.clock(), timeout_seconds=CHECK_SECONDS
            )
        except EvidenceError as error:
            return CheckOutcome.UNKNOWN, Localized.verbatim(str(error))
        values = [
            sample.value
            for series in answer.items
            for sample in series.samples[-1:]
            if sample.value is not None
        ]
        unit = next((series.unit for series in answer.items if series.unit), "")
        return judge_values(item, values, unit)

    async def _probe(
        self, incident: Incident, probe: str, runner: ProbeRunner
    ) -> list[ProbeResult]:
        nodes = _nodes(self._services, incident)
        args = probe_args(probe, incident.service or "")
        return list(
            await asyncio.gather(
                *(
                    runner.run(node, probe, args, subject="system", timeout_seconds=CHECK_SECONDS)
                    for node in nodes
                )
            )
        )


def _due(current: Current, incident: Incident, *, is_early: bool) -> list[ChecklistItem]:
    """The checks that answer by themselves; before anything was collected only what was learned."""
    able = [
        item
        for item in current.checklist.items
        if item.query is not None or (item.probe is not None and not is_heavy(item.probe))
    ]
    if not is_early:
        return able
    known = {run.item for run in incident.checks if run.checklist == current.checklist.id}
    learned = [item for item in able if item.learned_from and item.id not in known]
    return learned[:MOST_LEARNED]


def _is_news(incident: Incident, current: Current, item: ChecklistItem, answer: _Answer) -> bool:
    """What is known is not said again, unless it has got worse; what a person said stands."""
    name = current.checklist.id
    before = next(
        (run for run in incident.checks if run.checklist == name and run.item == item.id), None
    )
    if before is None:
        return True
    is_worse = answer[0] is CheckOutcome.FOUND and before.outcome is not CheckOutcome.FOUND
    return is_worse and before.by == SYSTEM_AUTHOR


def _run(current: Current, item: ChecklistItem, answer: _Answer, now: datetime) -> CheckRun:
    outcome, summary = answer
    return CheckRun(
        checklist=current.checklist.id,
        item=item.id,
        version=current.edition.number,
        text=item.text,
        outcome=outcome,
        summary=summary,
        by=SYSTEM_AUTHOR,
        at=now,
        learned_from=item.learned_from,
        probe=item.probe,
        query=item.query,
    )


def _readings(entries: Sequence[Entry]) -> dict[str, list[ProbeResult]]:
    """The newest answer of each node to each probe, by probe."""
    newest: dict[tuple[str, str], ProbeResult] = {}
    for entry in entries:
        if entry.kind is EntryKind.PROBE:
            for value in entry.data.get("results") or [entry.data.get("result")]:
                if isinstance(value, Mapping):
                    result = ProbeResult.from_json(value)
                    newest[result.probe, result.node] = result
    found: dict[str, list[ProbeResult]] = {}
    for (probe, _), result in sorted(newest.items()):
        found.setdefault(probe, []).append(result)
    return found


def _nodes(services: Services, incident: Incident) -> tuple[str, ...]:
    known = services.inventory.nodes_of(incident.service or "")
    return incident.scope.nodes or tuple(node.name for node in known)


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {requests.CHECKS: Checking(services).check}
