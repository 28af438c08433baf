"""Folds what is remembered of earlier incidents, and the mark of an exercise, into the state of an incident."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.incident import Incident
from bot.domain.precedent import Drill, Precedent, Recurrence
from bot.domain.timeline import SYSTEM_AUTHOR, Entry


def fold_precedent(incident: Incident, entry: Entry) -> Incident:
    """The incident after a `similar`, `recurrences` or `drill` entry; any other changes nothing.

    Raises:
        KeyError: an entry of the bot's own that lacks its members.
    """
    data = entry.data
    match entry.op:
        case "similar":
            found = tuple(Precedent.from_json(item) for item in data["similar"])
            return replace(incident, precedents=found)
        case "recurrences":
            counted = Recurrence(
                by=str(data["by"]), days=int(data["days"]), incidents=tuple(data["incidents"])
            )
            others = tuple(item for item in incident.recurrences if item.by != counted.by)
            return replace(incident, recurrences=(*others, counted))
        case "drill" if entry.source == "drill" and entry.author == SYSTEM_AUTHOR:
            drill = Drill(cause=str(data["cause"]), seed=int(data["seed"]), case=data.get("case"))
            return replace(incident, drill=drill)
        case _:
            return incident
