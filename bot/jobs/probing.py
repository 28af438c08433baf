"""Probes on nodes: asked for by a person, as the test of a hypothesis, or to save what a restart destroys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.diagnosis.experiments import judge_experiment
from bot.diagnosis.layers import joined
from bot.diagnosis.request import DiagnosisPorts
from bot.diagnosis.wording import finding_words, not_read
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.domain.hypothesis import Hypothesis, NextExperiment
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.text import Localized
from bot.errors import CommandError, Reason
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.artefacts import keep_artefacts, seconds_for
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.store import surface
from bot.store.queue import Claim

PROBE_SECONDS = 8.0
CAPTURE_SECONDS = 10.0
# What has answered by then is shown while the slow ones are waited for.
FIRST_SECONDS = 1.5

FirstOnes = Callable[[Sequence[ProbeResult], int], Awaitable[None]]

# What a restart destroys: stacks, allocator, process memory, sockets, and the log since the process started.
CAPTURED = (
    "process_stacks",
    "gpu_allocator",
    "process_memory",
    "service_sockets",
    "log_health",
    "process_threads",
)


class Probing:
    """Handlers of the probe, experiment and mitigation jobs."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def probe(self, claim: Claim) -> Done | Later:
        """Runs probes on nodes and shows the answers side by side."""
        payload = claim.job.payload
        incident_id = payload.get("incident")

        async def first_ones(results: Sequence[ProbeResult], waiting: int) -> None:
            if incident_id is None:
                return
            context = {"results": [item.to_json() for item in results], "waiting": waiting}
            incident = (await self._services.journal.load(incident_id)).incident
            early = outbox.thread_post(
                incident, Message(view="probe", context=context), live=claim.job.id
            )
            await self._services.outbox.send(early, once=f"{claim.job.id}:early")

        results = await self._run_all(
            payload["probes"], payload["nodes"], payload["args"], payload, PROBE_SECONDS, first_ones
        )
        message = Message(view="probe", context={"results": [item.to_json() for item in results]})
        if incident_id is None:
            job = outbox.private_post(
                payload["channel"],
                payload["by"],
                message,
                thread_ts=payload.get("thread_ts"),
                response_url=None,
            )
            await self._services.outbox.send(job, once=f"{claim.job.id}:post")
            return Done()
        via = self._via(claim, payload["by"])
        for result in results:
            await self._services.responding.record_probe(incident_id, result, via, purpose="asked")
        incident = (await self._services.journal.load(incident_id)).incident
        post = outbox.thread_post(incident, message, live=claim.job.id)
        await self._services.outbox.send(post, once=f"{claim.job.id}:post")
        await keep_artefacts(self._services, incident, results, via)
        return Done()

    async def experiment(self, claim: Claim) -> Done | Later:
        """Records the prediction, runs the test, records the result beside it."""
        payload = claim.job.payload
        incident_id, cause = payload["incident"], payload["cause"]
        incident = (await self._services.journal.load(incident_id)).incident
        hypothesis = incident.hypothesis(cause)
        planned = hypothesis.next_experiment if hypothesis else None
        if hypothesis is None or planned is None:
            raise CommandError(say("jobs.no_experiment"), reason=Reason.NOT_FOUND)
        experiment_id = f"X-{claim.job.id[:6]}"
        via = self._via(claim, payload["by"])
        await self._services.responding.plan_experiment(
            incident_id, experiment_id, cause, planned, via
        )
        verdict, text, results = await self._test(incident, hypothesis, planned, payload)
        via = self._via(claim, payload["by"])
        for result in results:
            await self._services.responding.record_probe(
                incident_id, result, via, purpose="experiment"
            )
        recorded = await self._services.responding.finish_experiment(
            incident_id, experiment_id, verdict, text, self._via(claim, payload["by"])
        )
        message = Message(view="experiment", context={"id": experiment_id, "cause": cause})
        post = outbox.thread_post(recorded.incident, message)
        await self._services.outbox.send(post, once=f"{claim.job.id}:post")
        await keep_artefacts(self._services, recorded.incident, results, via)
        search = requests.collect(incident_id, reason="experiment", by=payload["by"])
        await self._services.outbox.send(search, once=f"{claim.job.id}:collect")
        return Done()

    async def _test(
        self,
        incident: Incident,
        hypothesis: Hypothesis,
        planned: NextExperiment,
        payload: Mapping[str, Any],
    ) -> tuple[ExperimentVerdict, Localized, list[ProbeResult]]:
        if planned.probe is None:
            return (*await self._query(planned, incident), [])
        nodes = [planned.node] if planned.node else list(incident.scope.nodes)
        results = await self._run_all([planned.probe], nodes, planned.args, payload, PROBE_SECONDS)
        outcomes = [
            judge_experiment(hypothesis.cause, planned, result, self._services.catalogue)
            for result in results
        ]
        verdicts = {outcome.verdict for outcome in outcomes}
        # One node that shows it is enough; a node that contradicts counts only where none shows it.
        verdict = next(
            (
                wanted
                for wanted in (ExperimentVerdict.AS_PREDICTED, ExperimentVerdict.CONTRARY)
                if wanted in verdicts
            ),
            ExperimentVerdict.UNCLEAR,
        )
        known = self._services.catalogue.findings
        said = [
            finding_words(finding, known.get(finding.id))
            for outcome in outcomes
            for finding in outcome.findings
        ]
        if not said:
            said = [
                Localized.verbatim(f"{item.probe}: {item.status.value}")
                if item.status is ProbeStatus.OK
                else not_read(item)
                for item in results
            ]
        return verdict, joined(said) if said else Localized.verbatim("–"), results

    async def _query(
        self, planned: NextExperiment, incident: Incident
    ) -> tuple[ExperimentVerdict, Localized]:
        """A read-only query decides nothing by itself: the ranking weighs it, a person reads it."""
        metrics = self._services.ports_of(incident).metrics
        if metrics is None or planned.query is None:
            return ExperimentVerdict.UNCLEAR, say("jobs.no_metrics_source")
        answer = await metrics.instant(
            planned.query, self._services.clock(), timeout_seconds=PROBE_SECONDS
        )
        values = [
            f"{sample.value:g} {series.unit}".strip()
            for series in answer.items[:5]
            for sample in series.samples[-1:]
            if sample.value is not None
        ]
        text = ", ".join(values)
        return ExperimentVerdict.UNCLEAR, (
            say("jobs.query_answered", values=text) if text else say("jobs.query_empty")
        )

    async def mitigate(self, claim: Claim) -> Done | Later:
        """Captures first, then records who did what and when, then watches the symptom."""
        payload = claim.job.payload
        incident_id = payload["incident"]
        incident = (await self._services.journal.load(incident_id)).incident
        captured: list[str] = []
        if payload["capture"] and incident.service:
            nodes = list(incident.scope.nodes) or [
                node.name for node in self._services.inventory.nodes_of(incident.service)
            ]
            results = await self._run_all(
                CAPTURED, nodes, {"service": incident.service}, payload, CAPTURE_SECONDS
            )
            await self._services.responding.record_readings(
                incident_id, results, self._via(claim, payload["by"]), purpose="capture"
            )
            captured = sorted({item.probe for item in results if item.status is ProbeStatus.OK})
        via = Via(
            by=payload["by"],
            at=datetime.fromisoformat(payload["at"]),
            key=claim.job.id,
            permalink=payload.get("permalink"),
            message_ts=payload.get("message_ts"),
        )
        message = Message(
            view="mitigated", context={"captured": captured, "asked": payload["capture"]}
        )
        recorded = await self._services.responding.mitigate(
            incident_id, payload["text"], via, captured=captured
        )
        ts = payload.get("message_ts")
        if ts and await surface.is_gone(self._services.store, incident.channel, ts):
            # Its author took the words back while the capture ran.
            await self._services.journal.withhold(incident_id, ts)
        await self._services.outbox.send(
            outbox.thread_post(recorded.incident, message), once=f"{claim.job.id}:post"
        )
        await self._services.outbox.send(
            requests.watch(incident_id, after=self._services.clock()),
            once=f"{claim.job.id}:watch",
        )
        return Done()

    async def _run_all(
        self,
        probes: Sequence[str],
        nodes: Sequence[str],
        args: Mapping[str, Any],
        payload: Mapping[str, Any],
        seconds: float,
        first_ones: FirstOnes | None = None,
    ) -> list[ProbeResult]:
        """Every answer in order. first_ones: is told what there is once a slow node makes the others wait."""
        runner = (await self._ports(payload)).probes
        own = payload.get("args_of") or {}
        now = self._services.clock()
        if runner is None:
            return [
                ProbeResult(
                    probe=probe,
                    node=node,
                    status=ProbeStatus.UNSUPPORTED,
                    started_at=now,
                    duration_seconds=0.0,
                    error="no agent key: set RCA_AGENT_KEY",
                )
                for node in nodes
                for probe in probes
            ]
        tasks = [
            asyncio.ensure_future(
                runner.run(
                    node,
                    probe,
                    own.get(probe, args),
                    subject=payload["by"],
                    timeout_seconds=seconds_for(probe, own.get(probe, args), seconds),
                    approved_by=payload.get("approved_by"),
                )
            )
            for node in nodes
            for probe in probes
        ]
        try:
            if first_ones is not None and tasks:
                done, waiting = await asyncio.wait(tasks, timeout=FIRST_SECONDS)
                if done and waiting:
                    answers = [task.result() for task in tasks if task in done]
                    await first_ones(answers, len(waiting))
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _ports(self, payload: Mapping[str, Any]) -> DiagnosisPorts:
        """The doors of the incident that the probes are run for; the real ones where there is none."""
        incident_id = payload.get("incident")
        if incident_id is None:
            return self._services.ports
        return self._services.ports_of((await self._services.journal.load(incident_id)).incident)

    def _via(self, claim: Claim, by: str) -> Via:
        return Via(by=by, at=self._services.clock(), key=claim.job.id, source="engine")


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    probing = Probing(services)
    return {
        requests.PROBE: probing.probe,
        requests.EXPERIMENT: probing.experiment,
        requests.MITIGATE: probing.mitigate,
    }
