"""What people did to the report: sections they wrote, evidence they named, and how far they have taken it.

A revision is a place in the timeline: the report as it stood there is compiled again from the entries up to it, so
nothing is kept twice and a text that its author takes back disappears from every revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.postmortem import JudgementTopic, ReportRevision, ReportState, RevisionKind
from bot.domain.text import Localized
from bot.domain.timeline import Entry, EntryKind


class ReportOp(StrEnum):
    """The `op` of a `report` entry; one without `op` is a report that was compiled and handed over."""

    EDITED = "edited"
    CITED = "cited"
    REVIEWED = "reviewed"
    FINAL = "final"
    REOPENED = "reopened"
    DELIVERED = "delivered"


_KINDS = {
    "": RevisionKind.COMPILED,
    ReportOp.EDITED: RevisionKind.EDITED,
    ReportOp.CITED: RevisionKind.EDITED,
    ReportOp.REVIEWED: RevisionKind.REVIEWED,
    ReportOp.FINAL: RevisionKind.FINAL,
    ReportOp.REOPENED: RevisionKind.REOPENED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a person wrote into a section that is theirs; text None once its author took it back."""

    topic: JudgementTopic
    text: Localized | None
    by: str
    at: datetime


def written(entries: Iterable[Entry]) -> Mapping[JudgementTopic, Written]:
    """The newest words of each section that has some; a section that was emptied is missing."""
    found: dict[JudgementTopic, Written] = {}
    for entry in _reports(entries):
        topic = _topic(entry.data.get("topic"))
        if entry.op != ReportOp.EDITED or topic is None:
            continue
        if entry.text is not None and not entry.text.en.strip():
            found.pop(topic, None)
        else:
            found[topic] = Written(topic=topic, text=entry.text, by=entry.author, at=entry.at)
    return found


def citations(entries: Iterable[Entry]) -> Mapping[str, tuple[str, ...]]:
    """Claim to the evidence ids that people named for it."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in _reports(entries):
        if entry.op == ReportOp.CITED:
            ids = tuple(str(item) for item in entry.data.get("evidence") or ())
            claim = str(entry.data.get("claim") or "")
            found[claim] = tuple(dict.fromkeys((*found.get(claim, ()), *ids)))
    return found


def revisions(entries: Iterable[Entry]) -> tuple[ReportRevision, ...]:
    """The report's revisions, oldest first; what one person changed in one go is one of them."""
    found: list[ReportRevision] = []
    state = ReportState.DRAFT
    for entry in _reports(entries):
        kind = _KINDS.get(entry.op)
        if kind is None:
            continue
        state = _state(entry.data.get("state")) or state
        details = _details(entry)
        last = found[-1] if found else None
        is_same = (
            last is not None
            and kind is RevisionKind.EDITED
            and (last.kind, last.by, last.at) == (kind, entry.author, entry.at)
        )
        if last is not None and is_same:
            details = tuple(dict.fromkeys((*last.details, *details)))
            found.pop()
        found.append(
            ReportRevision(
                n=len(found) + 1,
                seq=entry.seq,
                kind=kind,
                by=entry.author,
                at=entry.at,
                state=state,
                details=details,
            )
        )
    return tuple(found)


def _reports(entries: Iterable[Entry]) -> list[Entry]:
    return sorted((e for e in entries if e.kind is EntryKind.REPORT), key=lambda entry: entry.seq)


def _details(entry: Entry) -> tuple[str, ...]:
    if entry.op == ReportOp.EDITED:
        return (str(entry.data.get("topic") or ""),)
    if entry.op == ReportOp.CITED:
        return (f"claim:{entry.data.get('claim') or ''}",)
    return tuple(str(item) for item in entry.data.get("formats") or ())


def _topic(value: object) -> JudgementTopic | None:
    return JudgementTopic(str(value)) if value in set(JudgementTopic) else None


def _state(value: object) -> ReportState | None:
    return ReportState(str(value)) if value in set(ReportState) else None
