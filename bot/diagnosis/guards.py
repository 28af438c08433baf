"""What kept a ranking honest, in words: each guard that stepped in says what it did and to which candidate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta

from bot.cause import Catalogue
from bot.diagnosis.chain import ESTABLISHED_SUPPORT, late_links
from bot.diagnosis.collected import Collected
from bot.diagnosis.facts import Facts
from bot.diagnosis.rank import Ranked
from bot.diagnosis.time_lost import where_time_is_lost
from bot.diagnosis.weigh import Weighed
from bot.diagnosis.wording import describe, quantity
from bot.domain.evidence import SourceState
from bot.domain.finding import ProbeResult
from bot.domain.guard import GuardKind, GuardNote
from bot.domain.hypothesis import Hypothesis
from bot.domain.text import Localized, listed
from bot.locales import say

_MOST_OF_A_KIND = 3
_COUNTERS = "burst_sample"


def guard_notes(
    ranked: Sequence[Ranked],
    hypotheses: Sequence[Hypothesis],
    facts: Facts,
    catalogue: Catalogue,
    collected: Collected,
) -> tuple[GuardNote, ...]:
    """The notes of one pass: where to look first, what held candidates back, order in time, how changes were searched."""
    weighed = {item.cause: item.weighed for item in ranked if item.weighed is not None}
    return (
        *_time_lost(facts),
        *_held(ranked, catalogue),
        *_refuted(ranked),
        *_root_first(ranked, weighed, catalogue),
        *_late(weighed, facts, catalogue),
        *_unordered(ranked, facts, catalogue),
        *_old_change(hypotheses, facts),
        _searched(facts, collected),
    )


def _time_lost(facts: Facts) -> list[GuardNote]:
    """The layer at which looking begins: the part of a request's time that grew most."""
    lost = where_time_is_lost(facts.observations)
    if lost is None:
        return []
    layer = say(f"guards.name.{lost.signal.layer.value}")
    text = say(f"guards.time_lost.{lost.source}", layer=layer, detail=describe(lost))
    return [GuardNote(kind=GuardKind.TIME_LOST, text=text)]


def _held(ranked: Sequence[Ranked], catalogue: Catalogue) -> list[GuardNote]:
    """Candidates that would have been likelier: by one kind of evidence alone, or above something unseen."""
    notes = []
    for item in ranked:
        weighed = item.weighed
        if weighed is None or item.most is None or weighed.is_refuted:
            continue
        cause, share = weighed.cause, quantity(item.most, "ratio")
        if len(weighed.families) < cause.families:
            text = say(
                "guards.co_movement", cause=cause.title, count=len(weighed.families),
                needed=cause.families, share=share,
            )  # fmt: skip
            kind = GuardKind.CO_MOVEMENT
        else:
            below = listed([catalogue.causes[link.cause].title for link in cause.deeper])
            text = say("guards.unseen_below", cause=cause.title, below=below, share=share)
            kind = GuardKind.UNSEEN_BELOW
        notes.append(GuardNote(kind=kind, text=text, causes=(cause.id,)))
    return notes[:_MOST_OF_A_KIND]


def _refuted(ranked: Sequence[Ranked]) -> list[GuardNote]:
    """Candidates with enough for a link of a chain, that a contrary observation excludes."""
    found = [
        item.weighed
        for item in ranked
        if item.weighed is not None
        and item.weighed.is_refuted
        and item.weighed.support >= ESTABLISHED_SUPPORT
        and _without_refuter(item.weighed) > 0
    ]
    found.sort(key=lambda weighed: (-weighed.support, weighed.cause.id))
    return [
        GuardNote(
            kind=GuardKind.REFUTED,
            text=say(
                "guards.refuted", cause=weighed.cause.title, refuter=weighed.refuted_by[0][0].text,
                count=sum(1 for move in weighed.moves if move.weight > 0),
            ),
            causes=(weighed.cause.id,),
        )
        for weighed in found[:_MOST_OF_A_KIND]
    ]  # fmt: skip


def _without_refuter(weighed: Weighed) -> float:
    prior = weighed.cause.prior
    return math.log(prior / (1 - prior)) + sum(move.weight for move in weighed.moves)


def _root_first(
    ranked: Sequence[Ranked], weighed: Mapping[str, Weighed], catalogue: Catalogue
) -> list[GuardNote]:
    """The third factor: what moved first and explains the others as well."""
    links = ranked[0].chain.links
    if len(links) < 2:
        return []
    *above, root = links
    effects = listed([catalogue.causes[name].title for name in above])
    title, onset = catalogue.causes[root].title, weighed[root].onset
    if ranked[0].chain.unordered or onset is None:
        text = say("guards.explains_all", root=title, effects=effects)
    else:
        text = say("guards.moved_first", root=title, effects=effects, at=f"{onset.end:%H:%M:%S}Z")
    return [GuardNote(kind=GuardKind.MOVED_FIRST, text=text, causes=links)]


def _late(weighed: Mapping[str, Weighed], facts: Facts, catalogue: Catalogue) -> list[GuardNote]:
    notes = []
    for effect, cause in late_links(weighed, facts, catalogue)[:_MOST_OF_A_KIND]:
        onset = weighed[effect].onset
        text = say(
            "guards.began_late", late=catalogue.causes[cause].title,
            effect=catalogue.causes[effect].title, at=f"{onset.end:%H:%M:%S}Z" if onset else "–",
        )  # fmt: skip
        notes.append(GuardNote(kind=GuardKind.BEGAN_LATE, text=text, causes=(effect, cause)))
    return notes


def _unordered(ranked: Sequence[Ranked], facts: Facts, catalogue: Catalogue) -> list[GuardNote]:
    """The links of the first candidate's chain whose order no scrape shows, with what the node's own counters say."""
    first = ranked[0]
    names = tuple(dict.fromkeys(name for pair in first.chain.unordered for name in pair))
    if not names:
        return []
    text = say(
        "guards.unordered",
        names=listed([catalogue.causes[name].title for name in names]),
        seconds=f"{facts.resolution_seconds:g}",
        counters=_counters(facts, first.weighed.node if first.weighed else None),
    )
    return [GuardNote(kind=GuardKind.UNORDERED, text=text, causes=names)]


def _counters(facts: Facts, node: str | None) -> Localized:
    for name in (node,) if node is not None else facts.nodes:
        result = facts.results.get((name, _COUNTERS))
        if result is not None and (shares := _stalls(result)):
            return say(
                "guards.counters", node=name, shares=listed(shares),
                window=f"{_number(result.data.get('window_s')) or 0:g}",
            )  # fmt: skip
    return say("guards.counters_ask")


def _stalls(result: ProbeResult) -> list[Localized]:
    """How long each resource stalled, by the probe's own data; a node may say anything in its place."""
    found = result.data.get("pressure")
    shares = []
    for name, item in sorted(found.items()) if isinstance(found, Mapping) else ():
        mean = _number(item.get("mean_ratio")) if isinstance(item, Mapping) else None
        if mean is not None:
            shares.append(
                say("guards.counters_share", name=str(name)[:20], share=quantity(mean, "ratio"))
            )
    return shares[:_MOST_OF_A_KIND]


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def _old_change(hypotheses: Sequence[Hypothesis], facts: Facts) -> list[GuardNote]:
    """The suspected change where newer ones were passed over."""
    trigger = hypotheses[0].trigger
    known = {change.id: change for change in facts.changes}
    change = known.get(trigger.change) if trigger and trigger.change else None
    if change is None:
        return []
    onset = facts.incident.window.start
    newer = [one for one in facts.changes if change.at < one.at <= onset]
    if not newer:
        return []
    text = say("guards.old_change", id=change.id, age=_age(onset - change.at), count=len(newer))
    return [GuardNote(kind=GuardKind.OLD_CHANGE, text=text, causes=(hypotheses[0].cause,))]


def _age(age: timedelta) -> Localized:
    seconds = max(age.total_seconds(), 0.0)
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0)):
        if seconds >= size:
            return say(f"guards.age.{unit}", count=f"{seconds / size:.1f}".removesuffix(".0"))
    return say("guards.age.minutes", count=f"{seconds / 60:.0f}")


def _searched(facts: Facts, collected: Collected) -> GuardNote:
    if collected.states.get("events") not in (SourceState.OK, SourceState.EMPTY):
        text = say("guards.changes_unread")
    else:
        days = collected.request.changes_back_seconds / 86_400
        text = say("guards.changes_searched", days=f"{days:g}", count=len(facts.changes))
    return GuardNote(kind=GuardKind.CHANGES_SEARCHED, text=text)
