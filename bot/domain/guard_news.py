"""Folds guards and waivers into the state of an incident."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.guard import GuardKind, GuardNote
from bot.domain.hypothesis import Layer
from bot.domain.incident import Incident
from bot.domain.timeline import Entry
from bot.domain.waiver import Waiver

_KINDS = frozenset(GuardKind)


def guards_of(incident: Incident, entry: Entry) -> tuple[GuardNote, ...]:
    """The guards after an entry of evidence: a new pass replaces what the last one said.

    A kind that a newer version wrote is left out.
    """
    if "guards" not in entry.data:
        return incident.guards
    return tuple(
        GuardNote.from_json(item) for item in entry.data["guards"] if item.get("kind") in _KINDS
    )


def fold_waiver(incident: Incident, entry: Entry) -> Incident:
    """The incident after a `waived` entry; any other changes nothing."""
    if entry.op != "waived":
        return incident
    waiver = Waiver(
        layer=Layer(entry.data["layer"]), reason=entry.text, by=entry.author, at=entry.at
    )
    others = tuple(item for item in incident.waivers if item.layer is not waiver.layer)
    return replace(incident, waivers=(*others, waiver))
