"""`/rca hypothesis confirm`: the cause as a person decides it, with what speaks for it."""

from __future__ import annotations

from bot.command import Call, Permission, Reply, allowed
from bot.domain.hypothesis import NOT_ESTABLISHED, Hypothesis
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.errors import CommandError, Reason
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Message
from bot.steps.confirming import why_not, with_evidence
from commands import _line
from commands._may import refused
from commands._reply import DONE


async def confirm(call: Call, services: Services, incident: Incident, chosen: Hypothesis) -> Reply:
    """Records the cause and says it in the thread.

    Raises:
        CommandError: the caller may not, or the hypothesis is not ripe for it.
    """
    if not allowed(services.settings.policy, call.user, Permission.CONFIRM_CAUSE):
        raise CommandError(
            refused(services.settings.policy, Permission.CONFIRM_CAUSE), reason=Reason.UNAUTHORISED
        )
    if refusal := why_not(incident, chosen):
        raise CommandError(refusal, reason=Reason.CONFLICT)
    backed = with_evidence(incident, chosen)
    await services.knowledge.refresh()
    deep, prevention = _answers(services, backed)
    recorded = await services.responding.confirm_cause(
        incident.id,
        backed,
        _line.via(call),
        trigger=backed.trigger,
        deep_cause=deep,
        prevention=prevention,
    )
    after = recorded.incident
    await services.outbox.send(
        outbox.thread_post(after, Message(view="confirmed", context={"by": call.user})),
        once=f"{call.key}:confirmed",
    )
    return DONE


def _answers(services: Services, chosen: Hypothesis) -> tuple[Localized, Localized]:
    """The deep cause and what keeps it from coming back, as the catalogue says it of the deepest link."""
    if chosen.cause == NOT_ESTABLISHED:
        return say("commands.not_established_deep"), say("commands.not_established_prevention")
    root = (chosen.chain or (chosen.cause,))[-1]
    cause = services.catalogue.causes.get(root) or services.catalogue.causes.get(chosen.cause)
    if cause is None:
        return chosen.title, say("commands.prevention_open")
    if not cause.prevention:
        return cause.summary, say("commands.prevention_open")
    return cause.summary, Localized(
        "; ".join(item.en for item in cause.prevention),
        "；".join(item.zh for item in cause.prevention),
    )
