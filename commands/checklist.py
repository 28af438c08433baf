"""`/rca checklist`: the checklist of this incident, what it would change for the next one, and who changed what."""

from __future__ import annotations

from bot.checklist.editing import edited
from bot.command import Call, Reply, command
from bot.domain.checklist import ChecklistChange
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.whole import whole
from bot.errors import CommandError, Reason
from bot.incidents.checklists import Decision
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from bot.sop import StepId
from commands import _line
from commands._checklist_answer import answer
from commands._checklist_history import history
from commands._reply import notice, shown

USAGE = (
    "checklist show | accept N | decline N REASON… | answer CHECK found|clean|skipped [TEXT…] "
    "| history [NAME] | rollback NAME N REASON…"
)
_WORDS = {
    "查看": "show",
    "采纳": "accept",
    "接受": "accept",
    "拒绝": "decline",
    "回答": "answer",
    "历史": "history",
    "回退": "rollback",
}


@command(
    name="checklist",
    usage=USAGE,
    en="Show the checklist and what this incident would change in it; decide, answer, look back.",
    zh="查看检查单及本事件的变更建议；采纳、拒绝、回答检查项、查看历史或回退。",
)
async def checklist(call: Call, services: Services) -> Reply:
    """`show` asks for proposals when the time has come and there are none yet."""
    word, rest = _line.read(call.text).head()
    match _WORDS.get(word, word) or "show":
        case "show":
            return await _show(call, services)
        case "accept":
            return await _accept(call, services, rest)
        case "decline":
            return await _decline(call, services, rest)
        case "edit":
            return await _edit(call, services)
        case "answer":
            return await answer(call, services, rest)
        case "history":
            return await history(services, rest, _line.incident_id(call))
        case "rollback":
            return await _roll_back(call, services, rest)
        case _:
            raise _line.wrong(USAGE)


async def _show(call: Call, services: Services) -> Reply:
    incident_id = _line.incident_id(call)
    incident = (await services.journal.load(incident_id)).incident
    if incident.checklist_changes or incident.monitoring_changes:
        return shown("checklist", {"incident_id": incident_id})
    if incident.checklist is not None and not _is_closing(incident):
        return shown("checks", {"incident_id": incident_id})
    job = requests.checklist(incident_id, by=call.user)
    await services.outbox.send(job, once=f"{call.key}:checklist")
    return notice(say("commands.proposing"))


def _is_closing(incident: Incident) -> bool:
    """What an incident teaches is known once its cause is, or once it ends without one."""
    is_over = not incident.is_open or incident.fix is not None
    return is_over or incident.root_cause is not None or incident.current_step == StepId.REVIEW


async def _accept(call: Call, services: Services, rest: str) -> Reply:
    n = _line.number(str(call.payload.get("n") or rest), USAGE)
    done = await services.checklists.accept(_line.incident_id(call), n, _line.via(call))
    services.wake()
    return notice(_accepted(n, done))


def _accepted(n: int, done: Decision) -> Localized:
    if done.version is None:
        return say("checklist.accepted_file", n=n, name=done.name)
    return say("checklist.accepted", n=n, name=done.name, version=done.version)


async def _decline(call: Call, services: Services, rest: str) -> Reply:
    first, reason = _line.first(rest)
    if named := call.payload.get("n"):
        first, reason = str(named), rest
    n = _line.number(first, USAGE)
    if not reason.strip():
        raise CommandError(say("commands.decline_needs_reason"))
    said = _line.said(reason)
    await services.checklists.decline(_line.incident_id(call), n, said, _line.via(call))
    services.wake()
    return notice(say("commands.checklist_declined", n=n))


async def _edit(call: Call, services: Services) -> Reply:
    """Only a form sends it: what it holds is lines of a file, and no line of a chat."""
    block = call.payload.get("block")
    if not isinstance(block, str):
        raise _line.wrong(USAGE)
    incident_id = _line.incident_id(call)
    n = _line.number(str(call.payload.get("n") or ""), USAGE)
    change = _proposal((await services.journal.load(incident_id)).incident, n)
    diff = edited(change.diff, block)
    await services.checklists.edit(incident_id, n, diff, _line.via(call))
    services.wake()
    return shown(
        "checklist", {"incident_id": incident_id, "said": say("checklist.edited", n=n).to_json()}
    )


def _proposal(incident: Incident, n: int) -> ChecklistChange:
    known = (*incident.checklist_changes, *incident.monitoring_changes)
    found = next((item for item in known if item.n == n), None)
    if found is None:
        raise CommandError(say("incident.no_checklist_change", n=n), reason=Reason.NOT_FOUND)
    return found


async def _roll_back(call: Call, services: Services, rest: str) -> Reply:
    name, rest = _line.first(rest)
    number, reason = _line.first(rest)
    if (version := whole(number)) is None:
        raise _line.wrong(USAGE)
    if not reason.strip():
        raise CommandError(say("checklist.rollback_needs_reason"))
    said = _line.said(reason)
    done = await services.checklists.roll_back(
        _line.incident_id(call), name, version, said, _line.via(call)
    )
    services.wake()
    return notice(
        say("checklist.rolled_back", name=name, to=number, number=done.version, reason=said)
    )
