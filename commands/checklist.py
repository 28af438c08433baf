"""`/rca checklist`: the change that this incident justifies."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.domain.checklist import ProposalStatus
from bot.errors import CommandError
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice, shown

USAGE = "checklist show | accept N | decline N REASON…"


@command(
    name="checklist",
    usage=USAGE,
    en="Show, accept or decline the proposed change of the checklist.",
    zh="查看、采纳或拒绝检查单变更建议。",
)
async def checklist(call: Call, services: Services) -> Reply:
    """`show` asks for proposals when there are none yet."""
    word, rest = _line.read(call.text).head()
    incident_id = _line.incident_id(call)
    match word or "show":
        case "show":
            incident = (await services.journal.load(incident_id)).incident
            if incident.checklist_changes:
                return shown("checklist", {"incident_id": incident_id})
            job = requests.checklist(incident_id, by=call.user)
            await services.outbox.send(job, once=f"{call.key}:checklist")
            return notice(say("commands.proposing"))
        case "accept":
            n = _line.number(str(call.payload.get("n") or rest), USAGE)
            await services.responding.decide_checklist(
                incident_id, n, ProposalStatus.ACCEPTED, _line.via(call)
            )
            services.wake()
            return notice(say("commands.checklist_accepted", n=n))
        case "decline":
            first, _, reason = rest.partition(" ")
            if named := call.payload.get("n"):
                first, reason = str(named), rest
            n = _line.number(first, USAGE)
            if not reason.strip():
                raise CommandError(say("commands.decline_needs_reason"))
            await services.responding.decide_checklist(
                incident_id,
                n,
                ProposalStatus.DECLINED,
                _line.via(call),
                reason=_line.unquoted(reason.strip()),
            )
            services.wake()
            return notice(say("commands.checklist_declined", n=n))
        case _:
            raise _line.wrong(USAGE)
