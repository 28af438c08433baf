"""Folds what was done about it into the state of an incident: mitigations, the fix, action items."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.action_item import ActionItem, ActionStatus
from bot.domain.incident import Fix, Incident, IncidentStatus, Mitigation
from bot.domain.timeline import Entry


def fold_mitigation(incident: Incident, entry: Entry) -> Incident:
    """The incident after something was done to stop the pain."""
    mitigation = Mitigation(
        text=entry.text,
        by=entry.author,
        at=entry.at,
        captured=tuple(entry.data.get("captured") or ()),
    )
    status = IncidentStatus.MITIGATED if incident.status is IncidentStatus.OPEN else incident.status
    return replace(incident, mitigations=(*incident.mitigations, mitigation), status=status)


def fold_action(incident: Incident, entry: Entry) -> Incident:
    """The incident after the fix or an action item moved on."""
    data = entry.data
    match entry.op:
        case "added":
            item = ActionItem(
                n=int(data["n"]), text=entry.text, owner=data.get("owner"), due=data.get("due")
            )
            return replace(incident, action_items=(*incident.action_items, item))
        case "done" | "dropped":
            status = ActionStatus(entry.op)
            return replace(
                incident,
                action_items=tuple(
                    replace(item, status=status) if item.n == int(data["n"]) else item
                    for item in incident.action_items
                ),
            )
        case "linked":
            told = ActionStatus(data["status"])
            return replace(
                incident,
                action_items=tuple(
                    replace(item, issue_url=data["url"], issue_status=told)
                    if item.n == int(data["n"])
                    else item
                    for item in incident.action_items
                ),
            )
        case "fix":
            return replace(incident, fix=Fix(text=entry.text, by=entry.author, at=entry.at))
        case "verified":
            if incident.fix is None:
                return incident
            return replace(
                incident,
                fix=replace(
                    incident.fix,
                    verified=data.get("verified"),
                    evidence=tuple(data.get("evidence") or ()),
                ),
            )
        case _:
            return incident
