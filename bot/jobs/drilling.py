"""The end of an exercise: the score with its reasons, and the path that a model responder would have gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.domain.incident import Incident
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.incidents.responding import Via
from bot.jobs import outbox, requests
from bot.jobs.services import Services
from bot.jobs.worker import Done, Handler, Later
from bot.learning.drills.debrief import model_path
from bot.learning.drills.scoring import score
from bot.locales import say
from bot.message import Message
from bot.store.queue import Claim, Job


class Debriefing:
    """Handler of the debrief job."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def debrief(self, claim: Claim) -> Done | Later:
        """Scores an exercise that was resolved, once, and says so in its thread."""
        incident_id = str(claim.job.payload["incident"])
        ledger = await self._services.journal.load(incident_id)
        incident = ledger.incident
        if incident.drill is None or incident.is_open:
            return Done()
        await self._services.knowledge.refresh()
        judged = score(ledger, self._services.sop, self._services.catalogue.causes)
        path = model_path(incident, self._services.catalogue)
        cause = self._services.catalogue.causes.get(incident.drill.cause)
        message = Message(
            view="debrief",
            context={
                "points": judged.points,
                "cause_named": cause.title.to_json() if cause else incident.drill.cause,
                "parts": [
                    {
                        "name": part.name,
                        "points": part.points,
                        "most": part.most,
                        "why": part.why.to_json(),
                    }
                    for part in judged.parts
                ],
                "path": [
                    {"step": item.step, "texts": [text.to_json() for text in item.texts]}
                    for item in path
                ],
            },
        )
        draft = Draft(
            kind=EntryKind.SYSTEM,
            at=self._services.clock(),
            text=say("learning.debriefed", points=judged.points),
            source="drill",
            data={
                "op": "debrief",
                "points": judged.points,
                "parts": {part.name: part.points for part in judged.parts},
            },
        )

        def jobs(after: Incident) -> Sequence[Job]:
            return (outbox.thread_post(after, message),)

        via = Via(by=SYSTEM_AUTHOR, at=draft.at, key="drill", source="drill")
        await self._services.responding.write(
            incident_id, via, lambda _: [draft], step="debrief", jobs=jobs
        )
        return Done()


def handlers(services: Services) -> Mapping[str, Handler]:
    """By job kind."""
    return {requests.DEBRIEF: Debriefing(services).debrief}
