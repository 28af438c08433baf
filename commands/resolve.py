"""`/rca resolve`: ends an incident; only ever a person does."""

from __future__ import annotations

from collections.abc import Sequence

from bot.command import Call, Permission, Reply, allowed, command
from bot.domain.incident import Incident
from bot.domain.timeline import SYSTEM_AUTHOR, Draft
from bot.errors import CommandError, Reason
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from bot.steps.walk import Walker, resolve_gate
from commands import _line
from commands._may import refused
from commands._reply import notice


@command(
    name="resolve",
    usage="resolve [REASON…]",
    en="End the incident; a reason is needed while step 6 still asks for something.",
    zh="关闭事件；第 6 步尚未完成时需要说明理由。",
    permission=Permission.RESOLVE,
)
async def resolve(call: Call, services: Services) -> Reply:
    """What was left open is recorded as a gate that was passed with the reason."""
    if not allowed(services.settings.policy, call.user, Permission.RESOLVE):
        raise CommandError(
            refused(services.settings.policy, Permission.RESOLVE), reason=Reason.UNAUTHORISED
        )
    reason = _line.said(call.text)
    incident_id = _line.incident_id(call)
    walker = Walker(
        by=call.user,
        at=call.at,
        source=call.source,
        reason=reason,
        permalink=call.permalink,
        message_ts=call.message_ts,
    )

    def gate(incident: Incident) -> Sequence[Draft]:
        if not incident.is_open:
            raise CommandError(say("incident.already_resolved"), reason=Reason.CONFLICT)
        return resolve_gate(incident, services.sop, walker)

    via = _line.via(call)
    await services.knowledge.refresh()
    await services.responding.write(incident_id, via, gate, step="resolve_gate")
    await services.responding.resolve(incident_id, reason, via)
    learn = requests.checklist(incident_id, by=SYSTEM_AUTHOR)
    await services.outbox.send(learn, once=f"learn:{incident_id}")
    services.wake()
    return notice(say("commands.resolved", incident=incident_id))
