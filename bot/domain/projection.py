"""Folds a timeline into the state of its incident: pure, total, the same for every reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from bot.domain.alert import AlertStatus
from bot.domain.alert_news import fold_alert, fold_followup
from bot.domain.cause_news import fold_experiment, fold_hypothesis
from bot.domain.checklist_news import fold_checklist
from bot.domain.evidence_news import fold_change, fold_evidence, fold_symptom
from bot.domain.incident import ChartRef, Incident, IncidentStatus, Scope, StepState, StormMember
from bot.domain.precedent_news import fold_precedent
from bot.domain.reaction import fold_reaction
from bot.domain.remedy_news import fold_action, fold_mitigation
from bot.domain.responder import Role, Severity
from bot.domain.text import Locale, Localized
from bot.domain.timeline import Entry, EntryKind, is_person


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


_FOLDS: Mapping[EntryKind, Callable[[Incident, Entry], Incident]] = {
    EntryKind.SYSTEM: _system,
    EntryKind.ALERT: fold_alert,
    EntryKind.SYMPTOM: fold_symptom,
    EntryKind.EVIDENCE: fold_evidence,
    EntryKind.CHANGE: fold_change,
    EntryKind.HYPOTHESIS: fold_hypothesis,
    EntryKind.EXPERIMENT: fold_experiment,
    EntryKind.STEP: _step,
    EntryKind.MITIGATION: fold_mitigation,
    EntryKind.ROLE: _role,
    EntryKind.SEVERITY: _severity,
    EntryKind.CHART: _chart,
    EntryKind.REPORT: _report,
    EntryKind.CHECKLIST: fold_checklist,
    EntryKind.ACTION: fold_action,
    EntryKind.FOLLOWUP: fold_followup,
    EntryKind.REACTION: fold_reaction,
}


def all_resolved(incident: Incident) -> bool:
    """Whether there were alerts and each of them is over."""
    return bool(incident.alerts) and all(
        alert.status is AlertStatus.RESOLVED for alert in incident.alerts.values()
    )
