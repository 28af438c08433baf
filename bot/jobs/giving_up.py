"""Work that failed for good is said in the incident, where a person can do something about it."""

from __future__ import annotations

import structlog

from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.errors import BotError, CommandError
from bot.incidents.responding import Via
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Message
from bot.store.queue import Claim

log = structlog.get_logger(__name__)


async def tell(services: Services, claim: Claim, error: BaseException) -> None:
    """Records the failure once, and says it in the thread unless saying things is what failed."""
    log.error("job.gave_up", kind=claim.job.kind, id=claim.job.id, error=str(error))
    incident_id = claim.job.payload.get("incident")
    if not isinstance(incident_id, str):
        return
    why = (
        error.text
        if isinstance(error, CommandError)
        else Localized.verbatim(str(error) if isinstance(error, BotError) else type(error).__name__)
    )
    text = say("jobs.gave_up", attempts=claim.attempt, what=claim.job.kind, why=why)
    now = services.clock()
    draft = Draft(
        kind=EntryKind.SYSTEM, at=now, text=text, data={"op": "gave_up", "job": claim.job.kind}
    )
    via = Via(by=SYSTEM_AUTHOR, at=now, key=claim.job.id, source="engine")
    message = Message(view="error", context={"text": text.to_json()})
    is_post = claim.job.kind in (outbox.POST, outbox.CARD)
    await services.responding.write(
        incident_id,
        via,
        lambda _: [draft],
        step="gave_up",
        jobs=lambda incident: () if is_post else (outbox.thread_post(incident, message),),
    )
