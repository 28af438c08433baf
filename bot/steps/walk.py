"""The entries by which a step is left: next, back, skip, pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.locales import say
from bot.sop import Sop, SopStep
from bot.steps.gates import missing


class Move(StrEnum):
    """What a person can do with the step they are in."""

    NEXT = "next"
    BACK = "back"
    SKIP = "skip"
    PASS = "pass"  # noqa: S105  a word of the grammar


@dataclass(frozen=True, slots=True, kw_only=True)
class Walker:
    """Who moves, when, through what; `reason` is needed to skip a step and to pass a closed gate."""

    by: str
    at: datetime
    source: str = "slack"
    reason: str = ""
    permalink: str | None = None
    message_ts: str | None = None


class GateClosedError(CommandError):
    """The gate still asks for something; `missing` says what."""

    def __init__(self, step: SopStep, asked: Sequence[Localized]) -> None:
        listed = Localized(
            "; ".join(item.en for item in asked), "；".join(item.zh for item in asked)
        )
        super().__init__(
            say("steps.gate_closed", step=step.title, missing=listed), reason=Reason.CONFLICT
        )
        self.missing = tuple(asked)


def drafts_for(move: Move, incident: Incident, sop: Sop, walker: Walker) -> list[Draft]:
    """The entries of a move from the incident's current step.

    Raises:
        GateClosedError: `next` while something is missing.
        CommandError: no reason where one is needed, or nowhere to go.
    """
    step = sop.step(incident.current_step or "")
    if step is None:
        raise CommandError(say("steps.all_done"), reason=Reason.CONFLICT)
    following = sop.after(step.id)
    match move:
        case Move.NEXT:
            if asked := missing(incident, sop, step.id):
                raise GateClosedError(step, asked)
            return [*_leave(step, "passed", walker), *_enter(following, walker)]
        case Move.PASS:
            reason = _reason(walker, "steps.pass_needs_reason")
            asked = missing(incident, sop, step.id)
            data = {"step": step.id.value, "missing": [item.to_json() for item in asked]}
            gate = _draft(EntryKind.GATE, reason, walker, data)
            return [gate, *_leave(step, "passed", walker), *_enter(following, walker)]
        case Move.SKIP:
            reason = _reason(walker, "steps.skip_needs_reason")
            data = {"op": "skipped", "step": step.id.value}
            skipped = _draft(EntryKind.STEP, reason, walker, data)
            return [skipped, *_enter(following, walker)]
        case Move.BACK:
            before = sop.before(step.id)
            if before is None:
                raise CommandError(say("steps.no_way_back"), reason=Reason.CONFLICT)
            return [*_leave(step, "back", walker), *_enter(before, walker)]


def resolve_gate(incident: Incident, sop: Sop, walker: Walker) -> list[Draft]:
    """The entry that must stand before a resolve while the last step still asks for something.

    Raises:
        GateClosedError: something is missing and no reason was given.
    """
    last = sop.steps[-1]
    asked = missing(incident, sop, last.id)
    if not asked:
        return []
    if not walker.reason:
        raise GateClosedError(last, asked)
    data = {"step": last.id.value, "missing": [item.to_json() for item in asked]}
    return [_draft(EntryKind.GATE, Localized.verbatim(walker.reason), walker, data)]


def _leave(step: SopStep, op: str, walker: Walker) -> list[Draft]:
    text = say(f"steps.step_{op}", step=step.title)
    return [_draft(EntryKind.STEP, text, walker, {"op": op, "step": step.id.value})]


def _enter(step: SopStep | None, walker: Walker) -> list[Draft]:
    if step is None:
        return []
    text = say("steps.step_entered", step=step.title)
    return [_draft(EntryKind.STEP, text, walker, {"op": "entered", "step": step.id.value})]


def _reason(walker: Walker, asked: str) -> Localized:
    if not walker.reason.strip():
        raise CommandError(say(asked))
    return Localized.verbatim(walker.reason)


def _draft(kind: EntryKind, text: Localized, walker: Walker, data: Mapping[str, Any]) -> Draft:
    carried = dict(data)
    if walker.message_ts is not None:
        carried["ts"] = walker.message_ts
    return Draft(
        kind=kind,
        at=walker.at,
        text=text,
        author=walker.by,
        source=walker.source,
        permalink=walker.permalink,
        data=carried,
    )
