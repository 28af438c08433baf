"""What the engine, probes and tests bring to an incident: each verb is one durable step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from bot.domain.change import Change
from bot.domain.evidence import BlindSpot, Evidence, Gap, SourceState
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.domain.guard import GuardNote
from bot.domain.hypothesis import Hypothesis, LayerVerdict, NextExperiment
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.instant import to_rfc3339
from bot.domain.text import Localized, listed
from bot.domain.timeline import EntryKind
from bot.incidents.journal import Recorded
from bot.incidents.writing import Via, Writing
from bot.locales import say
from bot.store.queue import Job

BOT_SOURCE = "engine"


class Examining(Writing):
    """Writes what was found, what could not be asked, and what that says of the candidates."""

    async def record_evidence(
        self,
        incident_id: str,
        via: Via,
        *,
        evidence: Sequence[Evidence],
        gaps: Sequence[Gap],
        sources: Mapping[str, SourceState],
        layers: Sequence[LayerVerdict],
        blind_spots: Sequence[BlindSpot],
        changes: Sequence[Change],
        hypotheses: Sequence[Hypothesis],
        changes_since: datetime | None = None,
        guards: Sequence[GuardNote] = (),
        jobs: Callable[[Incident], Sequence[Job]] = lambda _: (),
    ) -> Recorded:
        """Records one pass of the engine: what was found, what could not be asked, and the ranking it leads to.

        changes_since: from when on changes were searched, found or not; None where nobody could be asked.
        """
        found = self._draft(
            EntryKind.EVIDENCE,
            say("incident.evidence_collected", found=len(evidence), gaps=len(gaps)),
            via,
            {
                "evidence": [item.to_json() for item in evidence],
                "gaps": [item.to_json() for item in gaps],
                "sources": {name: state.value for name, state in sources.items()},
                "layers": [item.to_json() for item in layers],
                "blind_spots": [item.to_json() for item in blind_spots],
                "changes_since": to_rfc3339(changes_since) if changes_since else None,
                "guards": [item.to_json() for item in guards],
            },
        )
        drafts = [found]
        if changes:
            drafts.append(
                self._draft(
                    EntryKind.CHANGE,
                    say("incident.changes_reviewed", count=len(changes)),
                    via,
                    {"changes": [item.to_json() for item in changes]},
                )
            )
        if hypotheses:
            first = hypotheses[0]
            drafts.append(
                self._draft(
                    EntryKind.HYPOTHESIS,
                    say(
                        "incident.hypotheses_ranked",
                        count=len(hypotheses),
                        first=first.title,
                        percent=round(first.probability * 100),
                    ),
                    via,
                    {"op": "ranked", "hypotheses": [item.to_json() for item in hypotheses]},
                )
            )
        return await self.write(incident_id, via, lambda _: drafts, step="evidence", jobs=jobs)

    async def record_probe(
        self, incident_id: str, result: ProbeResult, via: Via, *, purpose: str, step: str = ""
    ) -> Recorded:
        """Records what a probe answered, whatever that was."""
        draft = self._draft(
            EntryKind.PROBE,
            say(
                "incident.probe_answered",
                probe=result.probe,
                node=result.node,
                status=result.status.value,
            ),
            via,
            {"result": result.to_json(), "purpose": purpose},
        )
        name = f"probe:{result.probe}:{result.node}:{step}"
        return await self.write(incident_id, via, lambda _: [draft], step=name)

    async def record_readings(
        self, incident_id: str, results: Sequence[ProbeResult], via: Via, *, purpose: str
    ) -> Recorded:
        """Records what many probes answered, as one entry: twenty lines of "ok" would bury what people say."""
        answered = sum(1 for item in results if item.status is ProbeStatus.OK)
        draft = self._draft(
            EntryKind.PROBE,
            say(
                "incident.probes_answered",
                count=len(results),
                answered=answered,
                nodes=listed(sorted({item.node for item in results})),
            ),
            via,
            {"results": [item.to_json() for item in results], "purpose": purpose},
        )
        drafts = [draft] if results else []
        return await self.write(incident_id, via, lambda _: drafts, step=f"readings:{purpose}")

    async def plan_experiment(
        self, incident_id: str, experiment_id: str, cause: str, planned: NextExperiment, via: Via
    ) -> Recorded:
        """Records what a test predicts, before it runs."""
        draft = self._draft(
            EntryKind.EXPERIMENT,
            say("incident.experiment_planned", predicted=planned.expects),
            via,
            {
                "op": "planned",
                "id": experiment_id,
                "cause": cause,
                "probe": planned.probe,
                "node": planned.node,
                "args": dict(planned.args),
                "query": planned.query,
                "predicted": planned.expects.to_json(),
                "would_refute": planned.would_refute.to_json(),
            },
        )
        return await self.write(incident_id, via, lambda _: [draft], step="plan")

    async def finish_experiment(
        self,
        incident_id: str,
        experiment_id: str,
        verdict: ExperimentVerdict,
        result: Localized,
        via: Via,
        *,
        evidence: Sequence[str] = (),
    ) -> Recorded:
        """Records what a test showed, beside what it had predicted."""
        draft = self._draft(
            EntryKind.EXPERIMENT,
            say(f"incident.experiment_{verdict.value}", result=result),
            via,
            {
                "op": "finished",
                "id": experiment_id,
                "verdict": verdict.value,
                "result": result.to_json(),
                "evidence": list(evidence),
            },
        )
        return await self.write(incident_id, via, lambda _: [draft], step="finish")

    async def record_verification(
        self,
        incident_id: str,
        is_gone: bool | None,
        text: Localized,
        via: Via,
        *,
        evidence: Sequence[Evidence],
    ) -> Recorded:
        """Records whether the symptom is gone after the fix, and what that rests on; None: it could not be seen."""
        found = self._draft(
            EntryKind.EVIDENCE, text, via, {"evidence": [item.to_json() for item in evidence]}
        )
        verified = self._draft(
            EntryKind.ACTION,
            text,
            via,
            {"op": "verified", "verified": is_gone, "evidence": [item.id for item in evidence]},
        )
        drafts = [found, verified] if evidence else [verified]
        return await self.write(incident_id, via, lambda _: drafts, step="verified")
