"""`/rca checklist answer`: what a person saw of one check."""

from __future__ import annotations

from bot.command import Call, Reply
from bot.domain.checklist import CheckOutcome, CheckRun
from bot.errors import CommandError, Reason
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice

_OUTCOMES = {
    "found": CheckOutcome.FOUND,
    "clean": CheckOutcome.CLEAN,
    "skipped": CheckOutcome.SKIPPED,
    "发现": CheckOutcome.FOUND,
    "正常": CheckOutcome.CLEAN,
    "跳过": CheckOutcome.SKIPPED,
}


async def answer(call: Call, services: Services, rest: str) -> Reply:
    """A person's answer to a check; it stands above what the bot saw.

    Raises:
        CommandError: no such check, or an outcome that is none.
    """
    item_id, rest = _line.first(rest)
    word, words = _line.first(rest)
    if named := call.payload.get("check"):
        item_id, word = str(named), str(call.payload.get("outcome") or "")
        words = str(call.payload.get("text") or "")
    incident_id = _line.incident_id(call)
    listed = (await services.journal.load(incident_id)).incident.checklist
    item = next((item for item in listed.checks if item.id == item_id), None) if listed else None
    if listed is None or item is None:
        raise CommandError(say("checklist.no_item", name=item_id[:60]), reason=Reason.NOT_FOUND)
    outcome = _OUTCOMES.get(word.lower())
    if outcome is None:
        raise CommandError(say("checklist.bad_outcome"))
    via = _line.via(call)
    run = CheckRun(
        checklist=listed.id,
        item=item.id,
        version=listed.version,
        text=item.text,
        outcome=outcome,
        summary=say("checklist.answered"),
        by=via.by,
        at=via.at,
        learned_from=item.learned_from,
        probe=item.probe,
        query=item.query,
    )
    await services.checklists.record_checks(incident_id, [run], via, step="answer")
    if said := _line.said(words).strip():
        # The words are evidence of their own, where their author can take them back.
        await services.responding.note(incident_id, f"{item.id}: {said}", via)
    services.wake()
    outcome_said = say(f"checklist.outcome_{outcome.value}")
    return notice(say("checklist.answer_kept", item=item.id, outcome=outcome_said))
