"""Which version of the SOP an incident follows, and which earlier incidents speak in it, as an entry of its timeline."""

from __future__ import annotations

from bot.domain.checklist import UsedProcedure
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.incidents.responding import Via
from bot.locales import say
from bot.sop import Sop
from bot.steps.prompts import learned_prompts


def procedure_drafts(incident: Incident, sop: Sop, via: Via) -> list[Draft]:
    """One entry where the SOP is another than the incident has followed so far; none for the file as it is."""
    known = incident.procedure.version if incident.procedure else 0
    if sop.version == known:
        return []
    learned = learned_prompts(incident, sop)
    used = UsedProcedure(
        sop=sop.id,
        version=sop.version,
        learned=tuple(dict.fromkeys(item.learned_from or "" for _, item in learned)),
    )
    said = say("checklist.entry_procedure", name=sop.id, version=sop.version)
    for step, item in learned:
        named = sop.step(step)
        more = say(
            "checklist.entry_prompt",
            step=named.title if named else Localized.verbatim(step),
            text=item.text,
            id=item.learned_from,
        )
        said = Localized(f"{said.en} {more.en}", f"{said.zh}{more.zh}")
    return [
        Draft(
            kind=EntryKind.CHECKLIST,
            at=via.at,
            text=said,
            author=SYSTEM_AUTHOR,
            source="engine",
            data={"op": "procedure", "procedure": used.to_json()},
        )
    ]
