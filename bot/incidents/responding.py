"""What people do to an incident: each verb is one durable step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bot.domain.hypothesis import Hypothesis, Layer, Trigger
from bot.domain.incident import Incident, IncidentStatus, Scope
from bot.domain.instant import to_rfc3339
from bot.domain.responder import Role, Severity
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.examining import BOT_SOURCE, Examining
from bot.incidents.journal import Recorded
from bot.incidents.opening import status_draft
from bot.incidents.scope_words import scope_words
from bot.incidents.writing import Via
from bot.locales import say

__all__ = ["BOT_SOURCE", "Responding", "Via"]


class Responding(Examining):
    """Writes what happens after an incident was opened."""

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
        key = "incident.scope_confirmed" if scope.is_confirmed else "incident.scope_proposed"
        data: dict[str, Any] = {
            "op": "scope",
            "nodes": list(scope.nodes),
            "replicas": list(scope.replicas),
            "models": list(scope.models),
            "tenants": list(scope.tenants),
            "confirmed": scope.is_confirmed,
        }
        if services:
            data["services"] = list(services)
        words = scope_words(scope)
        text = Localized(
            "; ".join(w.en for w in words) or "–", "；".join(w.zh for w in words) or "–"
        )
        return self._draft(EntryKind.SYSTEM, say(key, scope=text), via, data)

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
