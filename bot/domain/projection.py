"""Folds a timeline into the state of its incident: pure, total, the same for every reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.domain.action_item import ActionItem, ActionStatus
from bot.domain.alert import AlertStatus
from bot.domain.alert_news import fold_alert, fold_followup
from bot.domain.change import Change
from bot.domain.checklist_news import fold_checklist
from bot.domain.evidence import BlindSpot, Evidence, EvidenceSource, Gap, SourceState, digest_of
from bot.domain.guard_news import fold_waiver, guards_of
from bot.domain.hypothesis import (
    Hypothesis,
    HypothesisStatus,
    Layer,
    LayerVerdict,
    Symptom,
    Trigger,
)
from bot.domain.incident import (
    ChartRef,
    Experiment,
    ExperimentVerdict,
    Fix,
    Incident,
    IncidentStatus,
    Mitigation,
    RootCause,
    Scope,
    StepState,
    StormMember,
)
from bot.domain.instant import Window, parse_rfc3339
from bot.domain.precedent_news import fold_precedent
from bot.domain.reaction import fold_reaction
from bot.domain.responder import Role, Severity
from bot.domain.text import Locale, Localized
from bot.domain.timeline import Entry, EntryKind, is_person

_WITHHELD = Localized("(withheld by its author)", "（作者已撤回）")


def opened(incident_id: str, entry: Entry) -> Incident:
    """The incident that its first entry opens.

    Raises:
        ValueError: the entry opens nothing.
    """
    if entry.kind is not EntryKind.SYSTEM or entry.op != "opened":
        raise ValueError(f"{incident_id}: the first entry is {entry.kind} {entry.op!r}, not opened")
    data = entry.data
    return Incident(
        id=incident_id,
        title=str(data["title"]),
        status=IncidentStatus.OPEN,
        severity=Severity(data["severity"]),
        services=tuple(data.get("services") or ()),
        channel=str(data["channel"]),
        opened_at=entry.at,
        locale=Locale(data.get("locale", Locale.EN.value)),
        labels=dict(data.get("labels") or {}),
        thread_ts=data.get("thread_ts"),
        scope=Scope(nodes=tuple(data.get("nodes") or ())),
        last_seq=entry.seq,
        acknowledged_at=entry.at if is_person(entry.author) else None,
        active_at=entry.at,
    )


def apply(incident: Incident, entry: Entry) -> Incident:
    """The incident after one more entry. An entry that a newer version wrote and this one does not know changes nothing."""
    moved = replace(incident, last_seq=entry.seq)
    if is_person(entry.author):
        moved = replace(
            moved,
            acknowledged_at=incident.acknowledged_at or entry.at,
            active_at=_later(incident.active_at, entry.at),
        )
    fold = _FOLDS.get(entry.kind)
    return fold(moved, entry) if fold else moved


def project(incident_id: str, entries: Iterable[Entry]) -> Incident:
    """The state that all `entries` (in order of seq) add up to.

    Raises:
        ValueError: there is no opening entry.
    """
    iterator = iter(entries)
    first = next(iterator, None)
    if first is None:
        raise ValueError(f"{incident_id}: empty timeline")
    incident = opened(incident_id, first)
    for entry in iterator:
        incident = apply(incident, entry)
    return incident


def _system(incident: Incident, entry: Entry) -> Incident:
    data = entry.data
    match entry.op:
        case "attached":
            return replace(
                incident,
                thread_ts=data.get("thread_ts") or incident.thread_ts,
                card_ts=data.get("card_ts") or incident.card_ts,
            )
        case "status":
            status = IncidentStatus(data["status"])
            resolved_at = entry.at if status is IncidentStatus.RESOLVED else None
            return replace(
                incident,
                status=status,
                resolved_at=resolved_at,
                active_at=_later(incident.active_at, entry.at),
            )
        case "truncated":
            return replace(incident, alerts_left_out=int(data["left_out"]))
        case "recurrence":
            return replace(incident, recurrence_of=str(data["recurrence_of"]))
        case "storm_member":
            return replace(incident, storm_of=str(data["storm"]))
        case "storm":
            listed = tuple(StormMember(id=i["id"], title=i["title"]) for i in data["members"])
            return replace(incident, storm=(*incident.storm, *listed))
        case "scope":
            return replace(
                incident,
                scope=Scope(
                    nodes=tuple(data.get("nodes") or ()),
                    replicas=tuple(data.get("replicas") or ()),
                    models=tuple(data.get("models") or ()),
                    tenants=tuple(data.get("tenants") or ()),
                    is_confirmed=bool(data.get("confirmed")),
                ),
                services=tuple(data.get("services") or incident.services),
            )
        case _:
            return fold_precedent(incident, entry)


def _later(known: datetime | None, at: datetime) -> datetime:
    return at if known is None else max(known, at)


def _symptom(incident: Incident, entry: Entry) -> Incident:
    data = entry.data
    symptom = Symptom(
        id=str(data["id"]),
        summary=entry.text or _WITHHELD,
        since=parse_rfc3339(data["since"]) if data.get("since") else None,
        metric=data.get("metric"),
        scope=data.get("scope"),
    )
    others = tuple(item for item in incident.symptoms if item.id != symptom.id)
    return replace(incident, symptoms=(*others, symptom))


def _evidence(incident: Incident, entry: Entry) -> Incident:
    data = entry.data
    found = [Evidence.from_json(item) for item in data.get("evidence") or ()]
    if data.get("person"):
        found.append(person_evidence(entry))
    known = {item.id: item for item in incident.evidence}
    known.update({item.id: item for item in found})
    gaps = tuple(Gap.from_json(item) for item in data["gaps"]) if "gaps" in data else incident.gaps
    sources = {key: SourceState(value) for key, value in (data.get("sources") or {}).items()}
    layers = tuple(LayerVerdict.from_json(item) for item in data.get("layers") or ())
    spots = tuple(BlindSpot.from_json(item) for item in data.get("blind_spots") or ())
    return replace(
        incident,
        evidence=tuple(known.values()),
        evidence_at=entry.at if "sources" in data else incident.evidence_at,
        gaps=gaps,
        sources={**incident.sources, **sources},
        layers=layers or incident.layers,
        blind_spots=spots if "blind_spots" in data else incident.blind_spots,
        guards=guards_of(incident, entry),
    )


def person_evidence(entry: Entry) -> Evidence:
    """A person's observation as evidence; its digest is over author and time, so that a withheld text leaks nothing."""
    return Evidence(
        source=EvidenceSource.PERSON,
        plugin="person",
        summary=entry.text or _WITHHELD,
        query=f"timeline:{entry.seq}",
        window=Window(entry.at, entry.at),
        samples=1,
        digest=digest_of([entry.author, entry.at.isoformat(), entry.seq]),
    )


def _change(incident: Incident, entry: Entry) -> Incident:
    known = {change.id: change for change in incident.changes}
    for item in entry.data.get("changes") or ():
        change = Change.from_json(item)
        known[change.id] = change
    return replace(
        incident,
        changes=tuple(sorted(known.values(), key=lambda item: (item.at, item.id))),
        changes_back_seconds=entry.data.get("back_s") or incident.changes_back_seconds,
    )


def _hypothesis(incident: Incident, entry: Entry) -> Incident:
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
                title=title or _WITHHELD,
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


def _experiment(incident: Incident, entry: Entry) -> Incident:
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


def _step(incident: Incident, entry: Entry) -> Incident:
    step = str(entry.data["step"])
    states: dict[str, StepState] = dict(incident.steps)
    match entry.op:
        case "entered":
            for name, state in states.items():
                if state is StepState.CURRENT:
                    states[name] = StepState.PENDING
            states[step] = StepState.CURRENT
            active_at = _later(incident.active_at, entry.at)
            return replace(incident, steps=states, current_step=step, active_at=active_at)
        case "passed":
            states[step] = StepState.PASSED
        case "skipped":
            states[step] = StepState.SKIPPED
        case "back":
            states[step] = StepState.PENDING
        case _:
            return incident
    current = None if incident.current_step == step else incident.current_step
    return replace(incident, steps=states, current_step=current)


def _mitigation(incident: Incident, entry: Entry) -> Incident:
    mitigation = Mitigation(
        text=entry.text,
        by=entry.author,
        at=entry.at,
        captured=tuple(entry.data.get("captured") or ()),
    )
    status = IncidentStatus.MITIGATED if incident.status is IncidentStatus.OPEN else incident.status
    return replace(incident, mitigations=(*incident.mitigations, mitigation), status=status)


def _role(incident: Incident, entry: Entry) -> Incident:
    return replace(
        incident, roles={**incident.roles, Role(entry.data["role"]): str(entry.data["user"])}
    )


def _severity(incident: Incident, entry: Entry) -> Incident:
    return replace(incident, severity=Severity(entry.data["severity"]))


def _chart(incident: Incident, entry: Entry) -> Incident:
    data = entry.data
    chart = ChartRef(
        id=data["chart"],
        title=Localized.from_json(data["title"]),
        alt=Localized.from_json(data["alt"]),
        png=data.get("png"),
        svg=data.get("svg"),
        at=entry.at,
    )
    others = tuple(item for item in incident.charts if item.id != chart.id)
    return replace(incident, charts=(*others, chart))


def _report(incident: Incident, entry: Entry) -> Incident:
    formats = dict.fromkeys([*incident.report_formats, *(entry.data.get("formats") or ())])
    return replace(
        incident,
        report_state=str(entry.data.get("state", incident.report_state)),
        report_formats=tuple(formats),
    )


def _action(incident: Incident, entry: Entry) -> Incident:
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


_FOLDS: Mapping[EntryKind, Callable[[Incident, Entry], Incident]] = {
    EntryKind.SYSTEM: _system,
    EntryKind.ALERT: fold_alert,
    EntryKind.SYMPTOM: _symptom,
    EntryKind.EVIDENCE: _evidence,
    EntryKind.CHANGE: _change,
    EntryKind.HYPOTHESIS: _hypothesis,
    EntryKind.EXPERIMENT: _experiment,
    EntryKind.STEP: _step,
    EntryKind.MITIGATION: _mitigation,
    EntryKind.ROLE: _role,
    EntryKind.SEVERITY: _severity,
    EntryKind.CHART: _chart,
    EntryKind.REPORT: _report,
    EntryKind.CHECKLIST: fold_checklist,
    EntryKind.ACTION: _action,
    EntryKind.FOLLOWUP: fold_followup,
    EntryKind.REACTION: fold_reaction,
}


def all_resolved(incident: Incident) -> bool:
    """Whether there were alerts and each of them is over."""
    return bool(incident.alerts) and all(
        alert.status is AlertStatus.RESOLVED for alert in incident.alerts.values()
    )


def data_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """`value` without its empty members, to keep entries small."""
    return {key: item for key, item in value.items() if item not in (None, (), [], {})}
