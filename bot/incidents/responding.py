"""What people (and the engine for them) do to an incident: each verb is one durable step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.change import Change
from bot.domain.evidence import BlindSpot, Evidence, Gap, SourceState
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.domain.guard import GuardNote
from bot.domain.hypothesis import Hypothesis, Layer, LayerVerdict, NextExperiment, Trigger
from bot.domain.incident import ExperimentVerdict, Incident, IncidentStatus, Scope
from bot.domain.instant import to_rfc3339
from bot.domain.responder import Role, Severity
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.journal import Journal, Ledger, Recorded
from bot.incidents.opening import status_draft
from bot.locales import say
from bot.store.queue import Job
from bot.store.transaction import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """Who acts, when, through what, and under which name the step happens at most once.

    message_ts: the Slack message whose words these are; deleting it withholds them.
    """

    by: str
    at: datetime
    key: str
    source: str = "slack"
    permalink: str | None = None
    message_ts: str | None = None


BOT_SOURCE = "engine"


class Responding:
    """Writes what happens after an incident was opened. `jobs_for_news` says what must follow every change."""

    def __init__(
        self, journal: Journal, jobs_for_news: Callable[[Incident], Sequence[Job]]
    ) -> None:
        self._journal = journal
        self._jobs = jobs_for_news

    async def write(
        self,
        incident_id: str,
        via: Via,
        make: Callable[[Incident], Sequence[Draft]],
        *,
        step: str = "",
        jobs: Callable[[Incident], Sequence[Job]] = lambda _: (),
        extra: Batch | None = None,
    ) -> Recorded:
        """Any entries, once per `via.key` and `step`; `jobs` and `extra` writes go with them.

        Raises:
            UnknownIncidentError: no such incident.
            CommandError: `make` refuses.
            StoreError: Redis is not reachable; try again with the same key.
        """

        def drafts(ledger: Ledger) -> Sequence[Draft]:
            return make(ledger.incident)

        def all_jobs(incident: Incident) -> Sequence[Job]:
            return (*self._jobs(incident), *jobs(incident))

        return await self._journal.record(
            incident_id, drafts, once=f"{via.key}:{step}", jobs=all_jobs, extra=extra
        )

    async def note(self, incident_id: str, text: str, via: Via) -> Recorded:
        """Records an observation of a person as evidence."""
        draft = self._draft(EntryKind.EVIDENCE, Localized.verbatim(text), via, {"person": True})
        return await self.write(incident_id, via, lambda _: [draft], step="note")

    async def declare_symptom(
        self,
        incident_id: str,
        text: str,
        via: Via,
        *,
        metric: str | None,
        scope: str | None,
        since: datetime | None,
        symptom_id: str | None = None,
    ) -> Recorded:
        """Adds a symptom, or makes the one named by `symptom_id` more exact; what is not given is kept."""

        def make(incident: Incident) -> list[Draft]:
            known = next((item for item in incident.symptoms if item.id == symptom_id), None)
            began = since or (known.since if known else None)
            data = {
                "id": symptom_id or f"S-{len(incident.symptoms) + 1}",
                "metric": metric or (known.metric if known else None),
                "scope": scope or (known.scope if known else None),
                "since": to_rfc3339(began) if began else None,
            }
            words = Localized.verbatim(text) if text else (known.summary if known else None)
            if words is None:
                raise CommandError(say("incident.symptom_needs_words"))
            return [self._draft(EntryKind.SYMPTOM, words, via, data)]

        return await self.write(incident_id, via, make, step="symptom")

    async def set_scope(
        self, incident_id: str, scope: Scope, via: Via, *, services: Sequence[str] = ()
    ) -> Recorded:
        """Records the scope that a person confirmed or corrected."""
        draft = self._scope_draft(scope, via, services)
        return await self.write(incident_id, via, lambda _: [draft], step="scope")

    async def propose_scope(self, incident_id: str, scope: Scope, via: Via) -> Recorded:
        """Records a proposed scope, unless it is the known one or a person has confirmed theirs meanwhile."""

        def make(incident: Incident) -> list[Draft]:
            if incident.scope.is_confirmed or incident.scope == scope:
                return []
            return [self._scope_draft(scope, via, ())]

        return await self.write(incident_id, via, make, step="scope")

    def _scope_draft(self, scope: Scope, via: Via, services: Sequence[str]) -> Draft:
        parts = {
            "nodes": list(scope.nodes),
            "replicas": list(scope.replicas),
            "models": list(scope.models),
            "tenants": list(scope.tenants),
        }
        words = "; ".join(f"{name}: {', '.join(items)}" for name, items in parts.items() if items)
        key = "incident.scope_confirmed" if scope.is_confirmed else "incident.scope_proposed"
        data: dict[str, Any] = {"op": "scope", **parts, "confirmed": scope.is_confirmed}
        if services:
            data["services"] = list(services)
        return self._draft(EntryKind.SYSTEM, say(key, scope=words or "–"), via, data)

    async def set_role(self, incident_id: str, role: Role, user: str, via: Via) -> Recorded:
        """Gives a role to a person."""
        draft = self._draft(
            EntryKind.ROLE,
            say("incident.role", role=say(f"report.fact.role.{role.value}"), user=user),
            via,
            {"role": role.value, "user": user},
        )
        return await self.write(incident_id, via, lambda _: [draft], step="role")

    async def set_severity(self, incident_id: str, severity: Severity, via: Via) -> Recorded:
        """Changes how bad it is."""
        draft = self._draft(
            EntryKind.SEVERITY,
            say("incident.severity", severity=severity.value),
            via,
            {"severity": severity.value},
        )
        return await self.write(incident_id, via, lambda _: [draft], step="severity")

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
                nodes=", ".join(sorted({item.node for item in results})),
            ),
            via,
            {"results": [item.to_json() for item in results], "purpose": purpose},
        )
        drafts = [draft] if results else []
        return await self.write(incident_id, via, lambda _: drafts, step=f"readings:{purpose}")

    async def add_hypothesis(
        self,
        incident_id: str,
        cause: str | None,
        title: Localized,
        via: Via,
        *,
        layers: Sequence[Layer] = (),
    ) -> Recorded:
        """Adds a candidate: one of the catalogue with its layers, or a person's own words (`cause` None)."""

        def make(incident: Incident) -> list[Draft]:
            own = sum(1 for item in incident.hypotheses if item.cause.startswith("person:"))
            name = cause or f"person:{own + 1}"
            if incident.hypothesis(name):
                raise CommandError(say("incident.hypothesis_known"), reason=Reason.CONFLICT)
            data: dict[str, Any] = {"op": "added", "cause": name}
            if cause is not None:
                data["title"] = title.to_json()
            data["explains"] = [item.id for item in incident.symptoms]
            data["layers"] = [item.value for item in layers]
            return [self._draft(EntryKind.HYPOTHESIS, title, via, data)]

        return await self.write(incident_id, via, make, step="hypothesis")

    async def move_hypothesis(self, incident_id: str, cause: str, to: int, via: Via) -> Recorded:
        """Moves a candidate to place `to` (from 1)."""
        text = say("incident.hypothesis_moved", cause=cause, place=to)
        draft = self._draft(
            EntryKind.HYPOTHESIS, text, via, {"op": "moved", "cause": cause, "to": to}
        )
        return await self.write(incident_id, via, lambda _: [draft], step="hypothesis")

    async def reject_hypothesis(
        self, incident_id: str, cause: str, reason: str, via: Via
    ) -> Recorded:
        """Strikes a candidate, with the reason."""
        draft = self._draft(
            EntryKind.HYPOTHESIS,
            Localized.verbatim(reason),
            via,
            {"op": "rejected", "cause": cause},
        )
        return await self.write(incident_id, via, lambda _: [draft], step="hypothesis")

    async def confirm_cause(
        self,
        incident_id: str,
        hypothesis: Hypothesis,
        via: Via,
        *,
        trigger: Trigger | None,
        deep_cause: Localized,
        prevention: Localized,
    ) -> Recorded:
        """Confirms the root cause. Whether it may be confirmed is the steps' business, not this one's."""
        chain = hypothesis.chain or (hypothesis.cause,)
        draft = self._draft(
            EntryKind.HYPOTHESIS,
            say("incident.cause_confirmed", cause=hypothesis.title),
            via,
            {
                "op": "confirmed",
                "cause": hypothesis.cause,
                "chain": list(chain),
                "trigger": trigger.to_json() if trigger else None,
                "deep_cause": deep_cause.to_json(),
                "prevention": prevention.to_json(),
                "evidence": [item.ref for item in hypothesis.supports],
            },
        )
        return await self.write(incident_id, via, lambda _: [draft], step="confirm")

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

    async def mitigate(
        self, incident_id: str, text: str, via: Via, *, captured: Sequence[str]
    ) -> Recorded:
        """Records what was done to stop the pain; never gated."""
        draft = self._draft(
            EntryKind.MITIGATION,
            Localized.verbatim(text),
            via,
            {"captured": list(captured), "skipped": not captured},
        )
        return await self.write(incident_id, via, lambda _: [draft], step="mitigate")

    async def record_fix(self, incident_id: str, text: str, via: Via) -> Recorded:
        """Records the change that is meant to remove the cause."""
        draft = self._draft(EntryKind.ACTION, Localized.verbatim(text), via, {"op": "fix"})
        return await self.write(incident_id, via, lambda _: [draft], step="fix")

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

    async def add_action_item(
        self, incident_id: str, text: str, via: Via, *, owner: str | None, due: str | None
    ) -> Recorded:
        """Adds something to do afterwards."""

        def make(incident: Incident) -> list[Draft]:
            data = {
                "op": "added",
                "n": len(incident.action_items) + 1,
                "owner": owner,
                "due": due,
            }
            return [self._draft(EntryKind.ACTION, Localized.verbatim(text), via, data)]

        return await self.write(incident_id, via, make, step="action")

    async def resolve(self, incident_id: str, reason: str, via: Via) -> Recorded:
        """Ends the incident; only ever by a person."""

        def make(incident: Incident) -> list[Draft]:
            if incident.status is IncidentStatus.RESOLVED:
                raise CommandError(say("incident.already_resolved"), reason=Reason.CONFLICT)
            drafts = []
            if reason:
                drafts.append(
                    self._draft(EntryKind.MESSAGE, Localized.verbatim(reason), via, {"files": []})
                )
            drafts.append(status_draft(IncidentStatus.RESOLVED, via.at, via.by))
            return drafts

        return await self.write(incident_id, via, make, step="resolve")

    def _draft(self, kind: EntryKind, text: Localized, via: Via, data: Mapping[str, Any]) -> Draft:
        carried = dict(data)
        if via.message_ts is not None and via.by != SYSTEM_AUTHOR:
            carried["ts"] = via.message_ts
        return Draft(
            kind=kind,
            at=via.at,
            text=text,
            author=via.by,
            source=via.source,
            permalink=via.permalink,
            data=carried,
        )
