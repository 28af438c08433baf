"""Folds what happens to checklists, proposals and checks into the state of an incident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.domain.checklist import (
    ChecklistChange,
    CheckRun,
    ProposalKind,
    ProposalStatus,
    UsedChecklist,
    UsedProcedure,
)
from bot.domain.incident import Incident
from bot.domain.timeline import Entry

_DECISIONS = {"accepted": ProposalStatus.ACCEPTED, "declined": ProposalStatus.DECLINED}


def fold_checklist(incident: Incident, entry: Entry) -> Incident:
    """The incident after one more entry of the kind `checklist`."""
    data = entry.data
    match entry.op:
        case "proposed":
            return _proposed(incident, entry)
        case "edited":
            diff = str(data["diff"])
            return _changed(
                incident, int(data["n"]), lambda item: replace(item, diff=diff, is_edited=True)
            )
        case "accepted" | "declined":
            status = _DECISIONS[entry.op]
            said = entry.text if entry.op == "declined" else None
            return _changed(
                incident,
                int(data["n"]),
                lambda item: replace(
                    item,
                    status=status,
                    reason=said.en if said else item.reason,
                    why=said or item.why,
                    by=entry.author,
                ),
            )
        case "none":
            return replace(incident, is_checklist_reviewed=True)
        case "used":
            return replace(incident, checklist=UsedChecklist.from_json(data["used"]))
        case "procedure":
            return replace(incident, procedure=UsedProcedure.from_json(data["procedure"]))
        case "checked":
            known = {(item.checklist, item.item): item for item in incident.checks}
            for value in data.get("checks") or ():
                run = CheckRun.from_json(value)
                known[run.checklist, run.item] = run
            return replace(incident, checks=tuple(known.values()))
        case _:
            return incident


def _proposed(incident: Incident, entry: Entry) -> Incident:
    data = entry.data
    proposed = ChecklistChange(
        n=int(data["n"]),
        checklist=data["checklist"],
        diff=data["diff"],
        reason=entry.text.en if entry.text else None,
        kind=ProposalKind(data.get("kind", ProposalKind.CHECK.value)),
        why=entry.text,
    )
    if proposed.kind.is_monitoring:
        others = tuple(item for item in incident.monitoring_changes if item.n != proposed.n)
        return replace(incident, monitoring_changes=(*others, proposed), is_checklist_reviewed=True)
    others = tuple(item for item in incident.checklist_changes if item.n != proposed.n)
    return replace(incident, checklist_changes=(*others, proposed), is_checklist_reviewed=True)


def _changed(
    incident: Incident, n: int, change: Callable[[ChecklistChange], ChecklistChange]
) -> Incident:
    def each(items: tuple[ChecklistChange, ...]) -> tuple[ChecklistChange, ...]:
        return tuple(change(item) if item.n == n else item for item in items)

    return replace(
        incident,
        checklist_changes=each(incident.checklist_changes),
        monitoring_changes=each(incident.monitoring_changes),
    )
