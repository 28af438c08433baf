"""What a step asks of people in one incident: the prompts of its file, and those that earlier incidents taught it."""

from __future__ import annotations

from bot.checklist.proposing import words_of
from bot.domain.incident import Incident
from bot.sop import Prompt, Sop


def prompts_for(incident: Incident, sop: Sop, step_id: str) -> tuple[Prompt, ...]:
    """The prompts of a step that are for this incident; what was learned comes first."""
    step = sop.step(step_id)
    if step is None:
        return ()
    words = words_of(incident)
    found = [
        item
        for item in step.prompts
        if not item.matches or any(word in words for word in item.matches)
    ]
    return tuple(sorted(found, key=lambda item: item.learned_from is None))


def learned_prompts(incident: Incident, sop: Sop) -> tuple[tuple[str, Prompt], ...]:
    """Step and prompt of everything that earlier incidents taught the SOP for one like this."""
    return tuple(
        (step.id.value, item)
        for step in sop.steps
        for item in prompts_for(incident, sop, step.id)
        if item.learned_from is not None
    )
