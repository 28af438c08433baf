"""What the timeline says of checklists and their checks."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.checklist import CheckOutcome, CheckRun, UsedChecklist
from bot.domain.text import Localized, listed
from bot.domain.timeline import SYSTEM_AUTHOR
from bot.locales import say


def used_said(used: UsedChecklist) -> Localized:
    """Which checklist an incident works with, and whom it owes what to."""
    learned = sorted({item.learned_from for item in used.checks if item.learned_from})
    said = say("checklist.entry_used", name=used.id, version=used.version, count=len(used.checks))
    if not learned:
        return said
    more = say("checklist.entry_taught", ids=listed(learned))
    return Localized(f"{said.en} {more.en}", f"{said.zh}{more.zh}")


def runs_said(runs: Sequence[CheckRun]) -> Localized:
    """What came of checks of one list: what was found or learned in full, the others by name under what they came to."""
    told = [
        run
        for run in runs
        if run.learned_from or run.outcome is CheckOutcome.FOUND or run.by != SYSTEM_AUTHOR
    ]
    lines = [
        say(
            "checklist.entry_learned" if run.learned_from else "checklist.entry_one",
            item=run.item,
            id=run.learned_from or "",
            outcome=say(f"checklist.outcome_{run.outcome.value}"),
            summary=run.summary,
        )
        for run in told
    ]
    for outcome in CheckOutcome:
        names = [run.item for run in runs if run.outcome is outcome and run not in told]
        items = listed(names)
        came_to = say(f"checklist.outcome_{outcome.value}")
        lines += [say("checklist.entry_many", outcome=came_to, items=items)] if names else []
    said = Localized("; ".join(line.en for line in lines), "；".join(line.zh for line in lines))
    return say("checklist.entry_checked", name=runs[0].checklist if runs else "", said=said)
