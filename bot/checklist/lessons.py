"""What can be learned from the way an incident went: a bound that was wrong, a step that wasted time, checks of no use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.checklist.procedure import title_of, with_prompt
from bot.checklist.reading import STEPS, Checklist
from bot.checklist.writing import NewItem, appended, with_bound, without
from bot.domain.checklist import CheckOutcome, ProposalKind, Usage
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.text import Localized, listed
from bot.domain.timeline import Entry, EntryKind
from bot.locales import say

STALE_AFTER = 10
"""Incidents in which a check was due before its silence says something. Our own choice: fewer is a quiet month."""
WASTED_SECONDS = 600.0
WASTED_SHARE = 0.4
"""A step is worth a lesson from ten minutes and two fifths of the way to the cause. Our own choice."""
_LOWER, _HIGHER = 0.8, 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A change of a checklist, or of the SOP: its whole text afterwards, and why."""

    kind: ProposalKind
    text: str
    reason: Localized
    is_of_procedure: bool = False


def wrong_bound(incident: Incident, checklist: Checklist) -> Lesson | None:
    """A query that stayed within its bound while the incident was on, and that spoke for the confirmed cause all along.

    Its bound moves a fifth beyond what was seen: at what was seen, the same incident would only just touch it.
    """
    root = incident.root_cause
    if root is None:
        return None
    abnormal = {item.query for item in incident.evidence if item.is_abnormal}
    abnormal |= {symptom.metric for symptom in incident.symptoms if symptom.metric}
    items = {item.id: item for item in checklist.items if item.query}
    for run in incident.checks:
        item = items.get(run.item)
        if item is None or run.checklist != checklist.id or run.outcome is not CheckOutcome.CLEAN:
            continue
        seen = _number(run.summary.en)
        bound = item.above if item.above is not None else item.below
        if item.query not in abnormal or seen is None or bound is None or seen <= 0:
            continue
        wanted = float(f"{seen * (_LOWER if item.above is not None else _HIGHER):.3g}")
        reason = say(
            "checklist.threshold",
            id=incident.id,
            item=item.id,
            value=f"{seen:g}",
            bound=f"{bound:g}",
            wanted=f"{wanted:g}",
        )
        text = with_bound(checklist, item.id, wanted)
        return Lesson(kind=ProposalKind.THRESHOLD, text=text, reason=reason)
    return None


def _number(text: str) -> float | None:
    """The figure that a query's summary begins with."""
    try:
        return float(text.split(",")[0].split(" ")[0])
    except ValueError:
        return None


def wasted_step(
    incident: Incident,
    checklist: Checklist,
    entries: Sequence[Entry],
    deciding: Sequence[str],
    titles: Mapping[str, Localized],
    procedure: str = "",
) -> Lesson | None:
    """The step that most of the way to the cause was spent in; what ended it is asked for first from then on.

    deciding: probes that spoke for the cause, strongest first. titles: of causes, by id. procedure: the SOP's text;
    where it leaves no place for a prompt, the checklist takes it.
    """
    root = incident.root_cause
    if root is None or not deciding:
        return None
    spent = _seconds_by_step(entries, incident)
    total = (root.at - incident.opened_at).total_seconds()
    if not spent or total <= 0:
        return None
    step, seconds = max(spent.items(), key=lambda item: (item[1], item[0]))
    if seconds < WASTED_SECONDS or seconds < WASTED_SHARE * total or step not in STEPS:
        return None
    first = deciding[0]
    name = f"{step.replace('_', '-')}-{first.replace('_', '-')}-first"
    if any(item.id == name for item in checklist.items):
        return None
    minutes = round(seconds / 60)
    contrary = [
        item.cause
        for item in incident.experiments
        if item.verdict is ExperimentVerdict.CONTRARY and item.cause not in root.chain
    ]
    what = Localized.verbatim(first)
    text = (
        say(
            "checklist.wasted_test",
            tested=titles.get(contrary[0], Localized.verbatim(contrary[0])),
            what=what,
            id=incident.id,
            minutes=minutes,
        )
        if contrary and step == "verification"
        else say("checklist.wasted_item", what=what, id=incident.id, minutes=minutes)
    )
    reason = say(
        "checklist.wasted_step",
        id=incident.id,
        step=title_of(procedure, step),
        minutes=minutes,
        share=round(100 * seconds / total),
    )
    asked = with_prompt(procedure, step, text, learned_from=incident.id, matches=checklist.matches)
    if asked is not None:
        return Lesson(kind=ProposalKind.STEP, text=asked, reason=reason, is_of_procedure=True)
    after = appended(checklist, incident.id, [NewItem(id=name, text=text, step=step)])
    return Lesson(kind=ProposalKind.STEP, text=after, reason=reason)


def _seconds_by_step(entries: Sequence[Entry], incident: Incident) -> dict[str, float]:
    """Seconds in each step until the cause was confirmed."""
    root = incident.root_cause
    if root is None:
        return {}
    entered = [
        (entry.at, str(entry.data.get("step")))
        for entry in entries
        if entry.kind is EntryKind.STEP and entry.op == "entered" and entry.at < root.at
    ]
    ends = [*(at for at, _ in entered[1:]), root.at][: len(entered)]
    spent: dict[str, float] = {}
    for (start, step), end in zip(entered, ends, strict=True):
        spent[step] = spent.get(step, 0.0) + max(0.0, (end - start).total_seconds())
    return spent


def stale_checks(checklist: Checklist, usage: Mapping[str, Usage]) -> Lesson | None:
    """Checks that found nothing in all of the last incidents that they were for; one check always stays."""
    stale = [
        item.id
        for item in checklist.items
        if (used := usage.get(item.id)) and used.incidents >= STALE_AFTER and not used.found
    ]
    if not stale or len(stale) == len(checklist.items):
        return None
    least = min(usage[name].incidents for name in stale)
    reason = say(
        "checklist.stale",
        count=len(stale),
        incidents=least,
        names=listed(stale),
    )
    return Lesson(kind=ProposalKind.STALE, text=without(checklist, stale), reason=reason)
