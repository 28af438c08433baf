"""What an exercise says of its responder: by rules that are printed beside the points, from the timeline alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.cause import Cause
from bot.domain.hypothesis import HypothesisStatus
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.postmortem import DurationName
from bot.domain.text import Localized, listed
from bot.domain.timeline import Entry, EntryKind
from bot.incidents.journal import Ledger
from bot.learning.past import past_of
from bot.locales import say
from bot.sop import Sop

CAUSE, ORDER, TESTED, PROBES, TIME = 40, 20, 15, 10, 15
"""Points at most for each part; 100 in all. Basis: judgement."""

_ORDER_EACH, _PROBE_EACH = 5, 2
_FAST_SECONDS, _SLOW_SECONDS = 15 * 60.0, 60 * 60.0
"""To the confirmed cause: full points up to a quarter of an hour, none after an hour. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the score: what was judged, the points, and why."""

    name: str
    points: int
    most: int
    why: Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """All parts, in the order in which they are shown."""

    parts: tuple[Part, ...]

    @property
    def points(self) -> int:
        """Of 100."""
        return sum(part.points for part in self.parts)


def score(ledger: Ledger, sop: Sop, causes: Mapping[str, Cause] | None = None) -> Score:
    """Judges an exercise that is over.

    causes: of the catalogue, so that they are named by their titles.

    Raises:
        ValueError: the incident is no exercise.
    """
    incident = ledger.incident
    if incident.drill is None:
        raise ValueError(f"{incident.id}: is no exercise")
    return Score(
        parts=(
            _cause(incident, causes or {}),
            _order(ledger.entries, sop),
            _conclusions(incident, ledger.entries),
            _probes(ledger),
            _time(ledger),
        )
    )


def _cause(incident: Incident, causes: Mapping[str, Cause]) -> Part:
    played = incident.drill.cause if incident.drill else ""
    root = incident.root_cause
    cause = _title(incident, causes, played)
    if root is None:
        return Part(
            name="cause", points=0, most=CAUSE, why=say("learning.score_cause_none", cause=cause)
        )
    named = _title(incident, causes, root.cause)
    if root.cause == played:
        points, why = CAUSE, say("learning.score_cause_right", cause=cause)
    elif _is_near(incident):
        points, why = CAUSE // 2, say("learning.score_cause_near", cause=cause, named=named)
    else:
        points, why = 0, say("learning.score_cause_wrong", cause=cause, named=named)
    return Part(name="cause", points=points, most=CAUSE, why=why)


def _title(incident: Incident, causes: Mapping[str, Cause], cause: str) -> Localized:
    if cause in causes:
        return causes[cause].title
    known = incident.hypothesis(cause)
    return known.title if known else Localized.verbatim(cause)


def _is_near(incident: Incident) -> bool:
    """Whether what was confirmed is what was played, or a link of its chain."""
    played = incident.drill.cause if incident.drill else ""
    root = incident.root_cause
    return root is not None and (
        played in (root.cause, *root.chain) or _is_on_chain(incident, played)
    )


def _is_on_chain(incident: Incident, played: str) -> bool:
    named = incident.hypothesis(incident.root_cause.cause) if incident.root_cause else None
    return named is not None and played in named.chain


def _order(entries: Sequence[Entry], sop: Sop) -> Part:
    """Steps that were skipped, gates that were passed with a reason, and acts that came before their step."""
    order: list[str] = [step.id for step in sop.steps]
    skipped = [
        str(item.data["step"])
        for item in entries
        if item.kind is EntryKind.STEP and item.op == "skipped"
    ]
    # The report and the checklist of an exercise are nobody's loss.
    forced = [
        str(item.data.get("step", ""))
        for item in entries
        if item.kind is EntryKind.GATE and item.data.get("step") != order[-1]
    ]
    places = [
        order.index(str(item.data["step"]))
        for item in entries
        if item.kind is EntryKind.STEP and item.op == "entered" and item.data["step"] in order
    ]
    never = [name for name in order if order.index(name) not in places and name not in skipped]
    faults = [*skipped, *forced, *never]
    points = max(0, ORDER - _ORDER_EACH * len(faults))
    titles = [found.title for name in dict.fromkeys(faults) if (found := sop.step(name))]
    why = (
        say("learning.score_order_faults", steps=listed(titles))
        if faults
        else say("learning.score_order_kept")
    )
    return Part(name="order", points=points, most=ORDER, why=why)


def _conclusions(incident: Incident, entries: Sequence[Entry]) -> Part:
    """A conclusion is jumped when nothing was tested, when a test spoke against it, or when others never fell."""
    root = incident.root_cause
    if root is None:
        return Part(
            name="conclusions", points=TESTED, most=TESTED, why=say("learning.score_no_conclusion")
        )
    before = [
        item for item in incident.experiments if item.cause == root.cause and item.at <= root.at
    ]
    verdicts = [item.verdict for item in before]
    # The confirmation itself may pass over what the gate still asked for.
    forced = any(
        item.kind is EntryKind.GATE and item.data.get("step") == "root_cause" for item in entries
    )
    if not before:
        points, key = 0, "score_untested"
    elif verdicts[-1] is ExperimentVerdict.CONTRARY:
        points, key = 0, "score_contrary"
    elif forced:
        points, key = TESTED // 2, "score_forced"
    else:
        points, key = TESTED, "score_tested"
    rejected = sum(item.status is HypothesisStatus.REJECTED for item in incident.hypotheses)
    return Part(
        name="conclusions",
        points=points,
        most=TESTED,
        why=say(f"learning.{key}", tests=len(before), rejected=rejected),
    )


def _probes(ledger: Ledger) -> Part:
    use = past_of(ledger).probes
    points = max(0, PROBES - _PROBE_EACH * use.wasted)
    why = say("learning.score_probes", asked=use.asked, wasted=use.wasted)
    return Part(name="probes", points=points, most=PROBES, why=why)


def _time(ledger: Ledger) -> Part:
    seconds = past_of(ledger).durations[DurationName.CONFIRMED_CAUSE]
    if seconds is None:
        return Part(name="time", points=0, most=TIME, why=say("learning.score_time_none"))
    if not _is_near(ledger.incident):
        # A wrong answer is not better for having been quick.
        return Part(name="time", points=0, most=TIME, why=say("learning.score_time_wrong"))
    share = (_SLOW_SECONDS - seconds) / (_SLOW_SECONDS - _FAST_SECONDS)
    points = round(TIME * min(1.0, max(0.0, share)))
    why = say("learning.score_time", minutes=round(seconds / 60, 1))
    return Part(name="time", points=points, most=TIME, why=why)
