"""`/rca hypothesis`: the ranked list, and what people decide about it."""

from __future__ import annotations

from bot.command import Call, Permission, Reply, allowed, command
from bot.domain.hypothesis import Hypothesis
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.errors import CommandError, Reason
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._confirming import confirm
from commands._reply import notice, shown
from commands._waiving import waive

USAGE = (
    "hypothesis list | add CAUSE|TEXT… | up N | reject N REASON… | confirm N | test N"
    " | waive LAYER REASON…"
)
MOST_TEXT = 500
_WORDS = {
    "列表": "list",
    "查看": "list",
    "添加": "add",
    "新增": "add",
    "上移": "up",
    "拒绝": "reject",
    "否定": "reject",
    "排除": "reject",
    "确认": "confirm",
    "验证": "test",
    "豁免": "waive",
}


@command(
    name="hypothesis",
    usage=USAGE,
    en="Show, add, reorder, test, reject or confirm a hypothesis.",
    zh="查看、添加、排序、验证、拒绝或确认假设。",
)
async def hypothesis(call: Call, services: Services) -> Reply:
    """N is the place in the list as it is shown now; a button names the cause itself."""
    word, rest = _line.read(call.text).head()
    word = _WORDS.get(word, word)
    incident = (await services.journal.load(_line.incident_id(call))).incident
    match word or "list":
        case "list":
            return shown("hypotheses", {"incident_id": incident.id})
        case "add" if rest:
            return await _add(
                call, services, incident, _line.shortened(_line.said(rest), MOST_TEXT)
            )
        case "waive":
            return await waive(call, services, incident, rest)
        case "up" | "reject" | "confirm" | "test":
            chosen, reason = _chosen(call, incident, rest)
        case _:
            raise _line.wrong(USAGE)
    match word:
        case "up":
            place = incident.hypotheses.index(chosen)
            await services.responding.move_hypothesis(
                incident.id, chosen.cause, max(1, place), _line.via(call)
            )
            services.wake()
            return shown("hypotheses", {"incident_id": incident.id})
        case "reject":
            return await _reject(call, services, incident, chosen, reason)
        case "test":
            return await _test(call, services, incident, chosen)
        case _:
            return await confirm(call, services, incident, chosen)


def _chosen(call: Call, incident: Incident, rest: str) -> tuple[Hypothesis, str]:
    if cause := call.payload.get("cause"):
        found = incident.hypothesis(str(cause))
        if found is None:
            raise CommandError(say("commands.hypothesis_gone"), reason=Reason.NOT_FOUND)
        return found, rest
    whole, _, behind = rest.partition(" ")
    if (named := incident.hypothesis(whole)) is not None:
        return named, behind.strip()
    first, reason = _line.first(rest)
    place = _line.number(first, USAGE)
    if place > len(incident.hypotheses):
        raise CommandError(
            say("commands.no_such_hypothesis", n=place, count=len(incident.hypotheses)),
            reason=Reason.NOT_FOUND,
        )
    return incident.hypotheses[place - 1], reason


async def _add(call: Call, services: Services, incident: Incident, text: str) -> Reply:
    await services.knowledge.refresh()
    cause = services.catalogue.causes.get(text.lower())
    title = cause.title if cause else Localized.verbatim(text)
    await services.responding.add_hypothesis(
        incident.id,
        cause.id if cause else None,
        title,
        _line.via(call),
        layers=(cause.layer,) if cause else (),
    )
    services.wake()
    added = say("commands.hypothesis_added", title=title)
    after = (await services.journal.load(incident.id)).incident.hypotheses
    named = [place for place, item in enumerate(after, 1) if item.title.en == title.en]
    if not named or named[-1] == 1:
        return notice(added)
    placed = say("commands.hypothesis_placed", n=named[-1])
    return notice(Localized(f"{added.en}. {placed.en}", f"{added.zh}。{placed.zh}"))


async def _reject(
    call: Call, services: Services, incident: Incident, chosen: Hypothesis, reason: str
) -> Reply:
    if not reason:
        raise CommandError(say("commands.reject_needs_reason"))
    await services.responding.reject_hypothesis(
        incident.id, chosen.cause, _line.said(reason), _line.via(call)
    )
    services.wake()
    return notice(say("commands.hypothesis_rejected", title=chosen.title))


async def _test(call: Call, services: Services, incident: Incident, chosen: Hypothesis) -> Reply:
    if chosen.next_experiment is None:
        raise CommandError(say("commands.no_experiment", title=chosen.title))
    may = allowed(services.settings.policy, call.user, Permission.APPROVE_HEAVY)
    job = requests.experiment(
        incident.id, cause=chosen.cause, by=call.user, approved_by=call.user if may else None
    )
    await services.outbox.send(job, once=f"{call.key}:experiment")
    return notice(say("commands.testing", title=chosen.title))
