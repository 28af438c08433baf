"""`/rca step`: walks the six steps."""

from __future__ import annotations

from collections.abc import Sequence

from bot.command import Call, Reply, command
from bot.domain.incident import Incident
from bot.domain.timeline import Draft
from bot.incidents.procedure import procedure_drafts
from bot.jobs import outbox, requests
from bot.jobs.services import Services
from bot.message import Message
from bot.sop import StepId
from bot.steps.walk import Move, Walker, drafts_for
from bot.store.queue import Job
from commands import _line
from commands._reply import DONE

USAGE = "step next | back | skip REASON… | pass REASON…"
_WORDS = {
    "下一步": "next",
    "继续": "next",
    "返回": "back",
    "上一步": "back",
    "跳过": "skip",
    "放行": "pass",
}


@command(
    name="step",
    usage=USAGE,
    en="Go to the next step, back, or past a gate with a reason.",
    zh="进入下一步、返回，或说明理由后放行。",
)
async def step(call: Call, services: Services) -> Reply:
    """Moves once per call; the new step's prompt goes into the thread with the move itself."""
    word, reason = _line.read(call.text).head()
    word = _WORDS.get(word, word)
    if word not in set(Move):
        raise _line.wrong(USAGE)
    via = _line.via(call)
    walker = Walker(
        by=call.user,
        at=call.at,
        source=call.source,
        reason=_line.said(reason),
        permalink=call.permalink,
        message_ts=call.message_ts,
    )

    def moved(incident: Incident) -> Sequence[Draft]:
        followed = procedure_drafts(incident, services.sop, via)
        return [*followed, *drafts_for(Move(word), incident, services.sop, walker)]

    await services.knowledge.refresh()
    await services.responding.write(
        _line.incident_id(call), via, moved, step="step", jobs=_what_follows
    )
    services.wake()
    return DONE


def _what_follows(incident: Incident) -> Sequence[Job]:
    entered = incident.current_step
    if entered is None:
        return ()
    prompt = Message(view=f"step_{entered}", context={"step": entered})
    jobs = [outbox.thread_post(incident, prompt)]
    searches = (StepId.INFORMATION, StepId.HYPOTHESES)
    if entered in searches and not incident.sources:
        jobs.append(requests.collect(incident.id, reason="asked", by="rca-bot"))
    if entered == StepId.HYPOTHESES and incident.hypotheses:
        jobs.append(outbox.thread_post(incident, Message(view="hypotheses")))
    return jobs
