"""What a reaction on a thread message means for the incident, and what taking it back undoes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType

from bot.domain.action_item import ActionItem, ActionStatus
from bot.domain.evidence_news import person_evidence
from bot.domain.hypothesis import Hypothesis, HypothesisStatus
from bot.domain.incident import Fix, Incident
from bot.domain.timeline import WITHHELD, Entry


class Meaning(StrEnum):
    """The five things that a reaction can say about a message."""

    EVIDENCE = "evidence"
    HYPOTHESIS = "hypothesis"
    DECISION = "decision"
    FIX = "fix"
    ACTION_ITEM = "action_item"


MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {
        "pushpin": Meaning.EVIDENCE,
        "bulb": Meaning.HYPOTHESIS,
        "scales": Meaning.DECISION,
        "hammer_and_wrench": Meaning.FIX,
        "ballot_box_with_check": Meaning.ACTION_ITEM,
    }
)

_TAKEN_BACK = "reaction taken back"


def fold_reaction(incident: Incident, entry: Entry) -> Incident:
    """The incident after a reaction; one with `removed` undoes the entry that it corrects.

    A message that its author deleted no longer supports anything.
    """
    meaning = entry.data.get("meaning")
    if meaning not in set(Meaning):
        return incident
    if entry.data.get("removed"):
        return _undo(incident, entry, Meaning(meaning))
    return _apply(incident, entry, Meaning(meaning))


def hypothesis_of(seq: int) -> str:
    """The name of the candidate that a reaction entry brought in."""
    return f"person:r{seq}"


def _apply(incident: Incident, entry: Entry, meaning: Meaning) -> Incident:
    match meaning:
        case Meaning.EVIDENCE:
            return replace(incident, evidence=(*incident.evidence, person_evidence(entry)))
        case Meaning.HYPOTHESIS:
            cause = hypothesis_of(entry.seq)
            added = Hypothesis(
                cause=cause,
                title=entry.text or WITHHELD,
                probability=0.0,
                chain=(cause,),
                explains=tuple(item.id for item in incident.symptoms),
            )
            return replace(incident, hypotheses=(*incident.hypotheses, added))
        case Meaning.ACTION_ITEM:
            item = ActionItem(
                n=int(entry.data.get("n") or len(incident.action_items) + 1),
                text=entry.text,
                owner=None,
            )
            return replace(incident, action_items=(*incident.action_items, item))
        case Meaning.FIX:
            return replace(incident, fix=Fix(text=entry.text, by=entry.author, at=entry.at))
        case Meaning.DECISION:
            return incident


def _undo(incident: Incident, entry: Entry, meaning: Meaning) -> Incident:
    match meaning:
        case Meaning.EVIDENCE:
            query = f"timeline:{entry.corrects}"
            kept = tuple(item for item in incident.evidence if item.query != query)
            return replace(incident, evidence=kept)
        case Meaning.HYPOTHESIS:
            cause = hypothesis_of(entry.corrects or 0)
            return replace(
                incident,
                hypotheses=tuple(
                    replace(item, status=HypothesisStatus.REJECTED, reason=_TAKEN_BACK)
                    if item.cause == cause and item.status is not HypothesisStatus.CONFIRMED
                    else item
                    for item in incident.hypotheses
                ),
            )
        case Meaning.ACTION_ITEM:
            return replace(
                incident,
                action_items=tuple(
                    replace(item, status=ActionStatus.DROPPED)
                    if item.n == entry.data.get("n") and item.status is ActionStatus.OPEN
                    else item
                    for item in incident.action_items
                ),
            )
        case Meaning.FIX:
            is_same = incident.fix is not None and incident.fix.at.isoformat() == entry.data.get(
                "taken_at"
            )
            return replace(incident, fix=None) if is_same else incident
        case Meaning.DECISION:
            return incident
