"""Compiles the postmortem from the timeline and nothing else: same entries in, same postmortem out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.domain.evidence import Evidence
from bot.domain.finding import ProbeResult
from bot.domain.hypothesis import NOT_ESTABLISHED, HypothesisStatus
from bot.domain.incident import ChartRef, Incident, IncidentStatus
from bot.domain.instant import Window, parse_rfc3339
from bot.domain.postmortem import (
    Answer,
    AttachedFile,
    ChainLink,
    CitedEvidence,
    DurationName,
    Header,
    Judgement,
    JudgementTopic,
    MonitoringChange,
    MonitoringKind,
    Postmortem,
    Question,
    RawProbe,
    ReportChart,
    ReportState,
    ReviewedChange,
    TimelineLine,
)
from bot.domain.report_news import Written, citations, revisions, written
from bot.domain.text import Localized
from bot.domain.timeline import Entry, EntryKind
from bot.locales import say
from bot.report.rewrite import rewrite

_MENTION = re.compile(r"<@([A-Z0-9]{2,})(?:\|[^<>]*)?>")
_SURROGATE = re.compile("[\ud800-\udfff]")


def compile_postmortem(
    incident: Incident,
    entries: Sequence[Entry],
    *,
    directory: Mapping[str, str],
    charts: Mapping[str, bytes],
    zone: str,
    version: str,
    titles: Mapping[str, Localized] | None = None,
) -> Postmortem:
    """The postmortem of one incident.

    entries: the whole timeline, in any order. directory: user id to display name; an unknown id is shown as it is.
    charts: blob name to content; `csv_name` says which blob is a chart's CSV.
    zone: IANA name. titles: cause id to title, for links of the chain that were never hypotheses themselves.
    """
    ordered = sorted(entries, key=lambda entry: (entry.at, entry.seq))
    words = written(entries)
    named = citations(entries)
    incident = _as_people_left_it(incident, words, named)
    established = incident.root_cause is not None
    helped, misled = _pointers(incident)
    compiled = Postmortem(
        version=version,
        zone=zone,
        header=_header(incident, directory),
        answers=_answers(incident, named),
        alerts=tuple(sorted(incident.alerts.values(), key=lambda a: (a.starts_at, a.fingerprint))),
        symptoms=incident.symptoms,
        timeline=_timeline(ordered, directory),
        evidence=tuple(
            CitedEvidence(id=item.id, evidence=item)
            for item in sorted(incident.evidence, key=_evidence_order)
        ),
        gaps=tuple(
            sorted(set(incident.gaps), key=lambda g: (g.source, g.plugin, g.query, g.node or ""))
        ),
        sources=dict(sorted(incident.sources.items())),
        charts=tuple(_chart(ref, incident, charts) for ref in incident.charts),
        hypotheses=incident.hypotheses,
        experiments=tuple(
            replace(item, by=_name(item.by, directory)) for item in incident.experiments
        ),
        root_cause=(
            replace(incident.root_cause, by=_name(incident.root_cause.by, directory))
            if incident.root_cause
            else None
        ),
        chain=_chain(incident, titles or {}, named) if established else (),
        layers=incident.layers,
        changes=_changes(incident),
        changes_window=_searched(ordered),
        blind_spots=incident.blind_spots,
        mitigations=tuple(
            replace(item, by=_name(item.by, directory)) for item in incident.mitigations
        ),
        fix=replace(incident.fix, by=_name(incident.fix.by, directory)) if incident.fix else None,
        checklist_changes=tuple(sorted(incident.checklist_changes, key=lambda item: item.n)),
        checklist_reasons=_checklist_reasons(ordered),
        monitoring_changes=_monitoring(incident),
        checks=tuple(replace(item, by=_name(item.by, directory)) for item in incident.checks),
        action_items=tuple(
            replace(item, owner=_name(item.owner, directory) if item.owner else None)
            for item in sorted(incident.action_items, key=lambda item: item.n)
        ),
        durations=durations(incident, ordered),
        judgements=tuple(_judgement(topic, words, directory) for topic in JudgementTopic),
        probes=_probes(ordered),
        helped=helped,
        misled=misled,
        revisions=tuple(replace(item, by=_name(item.by, directory)) for item in revisions(entries)),
    )
    return rewrite(compiled, _readable(directory))


def durations(incident: Incident, entries: Sequence[Entry]) -> dict[DurationName, float | None]:
    """Seconds from the opening to each milestone; None where it did not happen, 0 where it came before the opening.

    entries: ordered by time.
    """
    confirmed = incident.root_cause.at if incident.root_cause else None
    resolved = incident.resolved_at if incident.status is IncidentStatus.RESOLVED else None
    reached: dict[DurationName, datetime | None] = {
        DurationName.ACKNOWLEDGE: incident.acknowledged_at,
        DurationName.SYMPTOM: _first(entries, lambda e: e.kind is EntryKind.SYMPTOM),
        DurationName.FIRST_EVIDENCE: _first(entries, _holds_evidence),
        DurationName.HYPOTHESES: _first(
            entries, lambda e: e.kind is EntryKind.HYPOTHESIS and e.op in ("ranked", "added")
        ),
        DurationName.MITIGATE: _first(entries, lambda e: e.kind is EntryKind.MITIGATION),
        DurationName.CONFIRMED_CAUSE: confirmed,
        DurationName.VERIFIED_FIX: _verified_at(incident, entries),
        DurationName.RESOLVE: resolved,
    }
    return {name: _since(incident.opened_at, at) for name, at in reached.items()}


def _since(start: datetime, at: datetime | None) -> float | None:
    return None if at is None else round(max(0.0, (at - start).total_seconds()), 3)


def _first(entries: Sequence[Entry], holds: Callable[[Entry], bool]) -> datetime | None:
    return next((entry.at for entry in entries if holds(entry)), None)


def _holds_evidence(entry: Entry) -> bool:
    if entry.kind is EntryKind.EVIDENCE:
        return bool(entry.data.get("evidence") or entry.data.get("person"))
    return entry.kind is EntryKind.PROBE and (entry.data.get("result") or {}).get("status") == "ok"


def _verified_at(incident: Incident, entries: Sequence[Entry]) -> datetime | None:
    """When the fix that stands was first seen to work; a verification of an earlier fix does not count."""
    fix = incident.fix
    if fix is None or not fix.verified:
        return None
    return _first(
        entries,
        lambda e: (
            e.kind is EntryKind.ACTION
            and e.op == "verified"
            and e.data.get("verified") is True
            and e.at >= fix.at
        ),
    )


def _name(user: str, directory: Mapping[str, str]) -> str:
    return directory.get(user, user)


def _readable(directory: Mapping[str, str]) -> Callable[[str], str]:
    """Ids and mentions as names, and half a surrogate pair (no encoding can write it) as the replacement character."""

    def change(text: str) -> str:
        if text in directory:
            return directory[text]
        if "<@" in text:
            text = _MENTION.sub(lambda match: f"@{_name(match[1], directory)}", text)
        return text if text.isascii() else _SURROGATE.sub("\ufffd", text)

    return change


def _as_people_left_it(
    incident: Incident,
    words: Mapping[JudgementTopic, Written],
    named: Mapping[str, tuple[str, ...]],
) -> Incident:
    """The incident with what people wrote and named themselves in the place of what was compiled."""
    root, fix = incident.root_cause, incident.fix
    prevention = words.get(JudgementTopic.PREVENTION)
    if root is not None and prevention is not None and prevention.text is not None:
        root = replace(root, prevention=prevention.text)
    if fix is not None:
        fix = replace(fix, evidence=_with(fix.evidence, named.get("fix")))
    tests = tuple(
        replace(item, evidence=_with(item.evidence, named.get(f"experiment:{item.id}")))
        for item in incident.experiments
    )
    return replace(incident, root_cause=root, fix=fix, experiments=tests)


def _with(cited: Sequence[str], named: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*cited, *(named or ()))))


def _judgement(
    topic: JudgementTopic,
    words: Mapping[JudgementTopic, Written],
    directory: Mapping[str, str],
) -> Judgement:
    found = words.get(topic)
    if found is None or found.text is None:
        return Judgement(topic=topic)
    return Judgement(topic=topic, answer=found.text, by=_name(found.by, directory), at=found.at)


def _monitoring(incident: Incident) -> tuple[MonitoringChange, ...]:
    kinds = {item.value for item in MonitoringKind}
    return tuple(
        MonitoringChange(
            n=item.n,
            kind=MonitoringKind(item.kind.value),
            diff=item.diff,
            reason=item.reason,
            status=item.status,
        )
        for item in sorted(incident.monitoring_changes, key=lambda item: item.n)
        if item.kind.value in kinds
    )


def _header(incident: Incident, directory: Mapping[str, str]) -> Header:
    signs = [alert.starts_at for alert in incident.alerts.values()]
    signs += [symptom.since for symptom in incident.symptoms if symptom.since]
    ends = [alert.ends_at for alert in incident.alerts.values()]
    over = [end for end in ends if end is not None]
    ended = max(over) if over and len(over) == len(ends) else incident.resolved_at
    return Header(
        id=incident.id,
        title=incident.title,
        severity=incident.severity,
        status=incident.status,
        state=ReportState(incident.report_state),
        services=incident.services,
        scope=incident.scope,
        channel=incident.channel,
        thread_ts=incident.thread_ts,
        locale=incident.locale,
        opened_at=incident.opened_at,
        began_at=min(signs) if signs else None,
        ended_at=ended,
        acknowledged_at=incident.acknowledged_at,
        resolved_at=incident.resolved_at,
        roles={role.value: _name(user, directory) for role, user in sorted(incident.roles.items())},
        alert_notifications=incident.alert_notifications,
    )


def _answers(incident: Incident, named: Mapping[str, tuple[str, ...]]) -> tuple[Answer, ...]:
    root = incident.root_cause
    if root is None:
        return tuple(Answer(question=question, text=None) for question in Question)
    trigger = root.trigger
    set_off = (trigger.change,) if trigger and trigger.change else root.evidence
    return (
        Answer(
            question=Question.TRIGGER,
            text=trigger.summary if trigger else None,
            evidence=_with(set_off, named.get(Question.TRIGGER)),
        ),
        Answer(
            question=Question.DEEP_CAUSE,
            text=root.deep_cause,
            evidence=_with(root.evidence, named.get(Question.DEEP_CAUSE)),
        ),
        Answer(question=Question.PREVENTION, text=root.prevention, needs_evidence=False),
    )


def _timeline(entries: Sequence[Entry], directory: Mapping[str, str]) -> tuple[TimelineLine, ...]:
    corrections = {entry.corrects: entry.seq for entry in entries if entry.corrects is not None}
    return tuple(
        TimelineLine(
            seq=entry.seq,
            kind=entry.kind,
            at=entry.at,
            author=_name(entry.author, directory),
            source=entry.source,
            text=_line_text(entry),
            permalink=entry.permalink,
            corrects=entry.corrects,
            corrected_by=corrections.get(entry.seq),
            # Earlier wordings of a message that its author took back are taken back with it.
            history=() if entry.is_withheld else entry.history,
            files=() if entry.is_withheld else _files(entry),
        )
        for entry in entries
    )


def _files(entry: Entry) -> tuple[AttachedFile, ...]:
    return tuple(
        AttachedFile(
            name=str(item.get("name") or "file"),
            size_bytes=int(item.get("size") or 0),
            media_type=str(item.get("mimetype") or ""),
        )
        for item in entry.data.get("files") or ()
        if isinstance(item, Mapping)
    )


def _line_text(entry: Entry) -> Localized | None:
    if entry.text is None or (entry.text.en.strip() or entry.text.zh.strip()):
        return entry.text
    kind = say(f"report.kind.{entry.kind.value}")
    if not entry.op:
        return kind
    op = _operation(entry.op)
    return Localized(f"{kind.en}: {op.en}", f"{kind.zh}：{op.zh}")


def _operation(op: str) -> Localized:
    try:
        return say(f"report.op.{op}")
    except KeyError:
        # Written by a newer version: its own word is better than none.
        return Localized.verbatim(op)


def _evidence_order(item: Evidence) -> tuple[Any, ...]:
    return (list(type(item.source)).index(item.source), item.window.start, item.id)


def csv_name(chart: ChartRef) -> str | None:
    """The blob of the numbers behind a chart: named as its SVG, with `.csv` in place of `.svg`."""
    return f"{chart.svg.removesuffix('.svg')}.csv" if chart.svg else None


def _chart(ref: ChartRef, incident: Incident, blobs: Mapping[str, bytes]) -> ReportChart:
    data = csv_name(ref)
    return ReportChart(
        id=ref.id,
        title=ref.title,
        alt=ref.alt,
        at=ref.at,
        is_after_fix=incident.fix is not None and ref.at >= incident.fix.at,
        png=blobs.get(ref.png) if ref.png else None,
        svg=blobs.get(ref.svg) if ref.svg else None,
        csv=blobs.get(data) if data else None,
    )


def _chain(
    incident: Incident, titles: Mapping[str, Localized], named: Mapping[str, tuple[str, ...]]
) -> tuple[ChainLink, ...]:
    root = incident.root_cause
    if root is None:
        return ()
    links = []
    for cause in root.chain or (root.cause,):
        hypothesis = incident.hypothesis(cause)
        cited = [item.ref for item in hypothesis.supports] if hypothesis else []
        if cause == root.cause:
            cited += root.evidence
        cited += named.get(f"chain:{cause}", ())
        title = hypothesis.title if hypothesis else titles.get(cause)
        links.append(
            ChainLink(
                cause=cause,
                title=title or Localized.verbatim(cause.replace("_", " ")),
                evidence=tuple(dict.fromkeys(ref for ref in cited if ref)),
            )
        )
    return tuple(links)


def _changes(incident: Incident) -> tuple[ReviewedChange, ...]:
    root = incident.root_cause
    if root and root.trigger and root.trigger.change:
        suspects = {root.trigger.change}
    else:
        suspects = {
            item.trigger.change
            for item in incident.hypotheses
            if item.trigger and item.trigger.change and item.status is not HypothesisStatus.REJECTED
        }
    return tuple(
        ReviewedChange(change=change, is_suspect=change.id in suspects)
        for change in sorted(incident.changes, key=lambda change: (change.at, change.id))
    )


def _searched(entries: Sequence[Entry]) -> Window | None:
    """The union of the spans that were searched for changes."""
    spans = [
        (start, entry.at)
        for entry in entries
        if entry.kind is EntryKind.CHANGE and (start := _instant(entry.data.get("since")))
    ]
    if not spans:
        return None
    return Window(min(start for start, _ in spans), max(end for _, end in spans))


def _instant(value: object) -> datetime | None:
    try:
        return parse_rfc3339(str(value)) if value else None
    except ValueError:
        return None


def _checklist_reasons(entries: Sequence[Entry]) -> dict[int, Localized]:
    """Why each change was proposed, or why it was declined."""
    return {
        int(entry.data["n"]): entry.text
        for entry in entries
        if entry.kind is EntryKind.CHECKLIST and entry.op in ("proposed", "declined") and entry.text
    }


def _probes(entries: Sequence[Entry]) -> tuple[RawProbe, ...]:
    """Every reading that the timeline holds, in its order."""
    return tuple(
        RawProbe(
            seq=entry.seq,
            purpose=str(entry.data.get("purpose") or ""),
            result=ProbeResult.from_json(result),
        )
        for entry in entries
        if entry.kind is EntryKind.PROBE
        for result in (entry.data.get("results") or [entry.data.get("result")])
        if isinstance(result, Mapping)
    )


def _pointers(incident: Incident) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Evidence that spoke for the confirmed cause, and evidence that spoke only for causes that fell."""
    root = incident.root_cause
    if root is None:
        return (), ()
    chain = {root.cause, *root.chain}
    right = [c.ref for h in incident.hypotheses if h.cause in chain for c in h.supports]
    wrong = [
        c.ref
        for h in incident.hypotheses
        if h.cause not in chain and h.cause != NOT_ESTABLISHED
        for c in h.supports
    ]
    helped = tuple(dict.fromkeys(ref for ref in right if ref))
    return helped, tuple(dict.fromkeys(ref for ref in wrong if ref and ref not in helped))
