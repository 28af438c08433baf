"""Whether the symptom is gone: after a fix, and after a mitigation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bot.diagnosis.charts import recovery_chart
from bot.diagnosis.recovery import SymptomState, check_symptom
from bot.domain.incident import Incident
from bot.domain.timeline import SYSTEM_AUTHOR
from bot.errors import EvidenceError
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.charting import Charting, marks_of, request_of
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.locales import say
from bot.message import Message
from bot.store.queue import Claim

_WORDS = {
    SymptomState.CLEARED: ("symptom_gone", True),
    SymptomState.FOUND: ("symptom_stays", False),
    SymptomState.UNKNOWN: ("symptom_unseen", None),
}


class Verifying:
    """Handler of the verify job."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def verify(self, claim: Claim) -> Done | Later:
        """Compares since the fix with before the onset; records it where there is a fix, and shows both in a chart."""
        payload = claim.job.payload
        incident = (await self._services.journal.load(payload["incident"])).incident
        since = _since(incident)
        if since is None or incident.service is None or not incident.is_open:
            return Done()
        via = Via(by=payload["by"], at=self._services.clock(), key=claim.job.id, source="engine")
        request = request_of(self._services, incident, by=payload["by"], window_seconds=900.0)
        begins = [item.since for item in incident.symptoms if item.since is not None]
        check = await check_symptom(
            request, since, self._services.ports_of(incident), onset=min(begins, default=None)
        )
        key, is_gone = _WORDS[check.state]
        text = say(f"jobs.{key}", detail=check.summary)
        if incident.fix is not None:
            recorded = await self._services.responding.record_verification(
                incident.id, is_gone, text, via, evidence=check.evidence
            )
            incident = recorded.incident
            if is_gone and incident.root_cause is not None:
                job = requests.checklist(incident.id, by=SYSTEM_AUTHOR)
                await self._services.outbox.send(job, once=f"learn:{incident.id}")
        message = Message(view="verification", context={"text": text.to_json(), "gone": is_gone})
        await self._services.outbox.send(
            outbox.thread_post(incident, message), once=f"{claim.job.id}:post"
        )
        try:
            spec = await recovery_chart(
                request, self._services.ports_of(incident), fixed_at=since, marks=marks_of(incident)
            )
        except EvidenceError:
            return Done()
        if spec is not None:
            await Charting(self._services).post(incident, [spec], via)
        return Done()


def _since(incident: Incident) -> datetime | None:
    if incident.fix is not None:
        return incident.fix.at
    return incident.mitigations[-1].at if incident.mitigations else None


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {requests.VERIFY: Verifying(services).verify}
