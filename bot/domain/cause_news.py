"""Folds the search for the cause into the state of an incident: candidates, tests, the confirmed one."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.guard_news import fold_waiver
from bot.domain.hypothesis import Hypothesis, HypothesisStatus, Layer, Trigger
from bot.domain.incident import Experiment, ExperimentVerdict, Incident, RootCause
from bot.domain.text import Localized
from bot.domain.timeline import WITHHELD, Entry


def fold_hypothesis(incident: Incident, entry: Entry) -> Incident:
    """The incident after a candidate was ranked, added, moved, struck or confirmed, or a layer waived."""
    data = entry.data
    cause = str(data.get("cause", ""))
    match entry.op:
        case "ranked":
            ranked = [Hypothesis.from_json(item) for item in data["hypotheses"]]
            return replace(incident, hypotheses=_keep_verdicts(incident.hypotheses, ranked))
        case "added":
            if incident.hypothesis(cause):
                return incident
            title = entry.text if data.get("title") is None else Localized.from_json(data["title"])
            added = Hypothesis(
                cause=cause,
                title=title or WITHHELD,
                probability=0.0,
                chain=(cause,),
                explains=tuple(data.get("explains") or ()),
                layers=tuple(Layer(item) for item in data.get("layers") or ()),
            )
            return replace(incident, hypotheses=(*incident.hypotheses, added))
        case "moved":
            rest = [item for item in incident.hypotheses if item.cause != cause]
            chosen = incident.hypothesis(cause)
            if chosen is None:
                return incident
            rest.insert(max(0, int(data["to"]) - 1), chosen)
            return replace(incident, hypotheses=tuple(rest))
        case "rejected":
            text = entry.text.en if entry.text else None
            return _with_status(incident, cause, HypothesisStatus.REJECTED, text)
        case "status":
            return _with_status(incident, cause, HypothesisStatus(data["status"]), None)
        case "confirmed":
            return _confirm(incident, entry, cause)
        case _:
            return fold_waiver(incident, entry)


def fold_experiment(incident: Incident, entry: Entry) -> Incident:
    """The incident after a test was planned or finished; its verdict moves the candidate that it tests."""
    data = entry.data
    if entry.op == "planned":
        planned = Experiment(
            id=data["id"],
            cause=data["cause"],
            probe=data.get("probe"),
            node=data.get("node"),
            args=dict(data.get("args") or {}),
            query=data.get("query"),
            predicted=Localized.from_json(data["predicted"]),
            would_refute=Localized.from_json(data["would_refute"]),
            by=entry.author,
            at=entry.at,
        )
        testing = incident
        hypothesis = incident.hypothesis(planned.cause)
        if hypothesis and hypothesis.status is HypothesisStatus.CANDIDATE:
            testing = _with_status(incident, planned.cause, HypothesisStatus.TESTING, None)
        return replace(testing, experiments=(*testing.experiments, planned))
    verdict = ExperimentVerdict(data["verdict"])
    finished = tuple(
        replace(
            item,
            result=Localized.from_json(data["result"]),
            verdict=verdict,
            evidence=tuple(data.get("evidence") or ()),
        )
        if item.id == data["id"]
        else item
        for item in incident.experiments
    )
    after = replace(incident, experiments=finished)
    cause = next((item.cause for item in finished if item.id == data["id"]), "")
    hypothesis = after.hypothesis(cause)
    if hypothesis is None or hypothesis.status not in (
        HypothesisStatus.TESTING,
        HypothesisStatus.CANDIDATE,
        HypothesisStatus.SUPPORTED,
    ):
        return after
    match verdict:
        case ExperimentVerdict.AS_PREDICTED:
            return _with_status(after, cause, HypothesisStatus.SUPPORTED, None)
        case ExperimentVerdict.CONTRARY:
            return _with_status(after, cause, HypothesisStatus.TESTING, None)
        case ExperimentVerdict.UNCLEAR:
            return after


def _keep_verdicts(
    before: tuple[Hypothesis, ...], ranked: list[Hypothesis]
) -> tuple[Hypothesis, ...]:
    """A new ranking never undoes what a person decided, and never drops what a person added."""
    decided = {item.cause: item for item in before}
    kept = [
        replace(item, status=decided[item.cause].status, reason=decided[item.cause].reason)
        if item.cause in decided
        else item
        for item in ranked
    ]
    names = {item.cause for item in ranked}
    added = [
        item
        for item in before
        if item.cause not in names
        and (item.cause.startswith("person:") or item.status is not HypothesisStatus.CANDIDATE)
    ]
    return (*kept, *added)


def _with_status(
    incident: Incident, cause: str, status: HypothesisStatus, reason: str | None
) -> Incident:
    return replace(
        incident,
        hypotheses=tuple(
            replace(item, status=status, reason=reason) if item.cause == cause else item
            for item in incident.hypotheses
        ),
    )


def _confirm(incident: Incident, entry: Entry, cause: str) -> Incident:
    data = entry.data
    confirmed = _with_status(incident, cause, HypothesisStatus.CONFIRMED, None)
    trigger = data.get("trigger")
    return replace(
        confirmed,
        root_cause=RootCause(
            cause=cause,
            chain=tuple(data.get("chain") or (cause,)),
            trigger=Trigger.from_json(trigger) if trigger else None,
            deep_cause=Localized.from_json(data["deep_cause"]),
            prevention=Localized.from_json(data["prevention"]),
            evidence=tuple(data.get("evidence") or ()),
            by=entry.author,
            at=entry.at,
        ),
    )
