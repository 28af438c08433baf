"""Compiles the postmortem from the timeline and nothing else: same entries in, same postmortem out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.domain.evidence import Evidence
from bot.domain.incident import ChartRef, Incident
from bot.domain.postmortem import (
    Answer,
    AttachedFile,
    ChainLink,
    CitedEvidence,
    Header,
    JudgementTopic,
    Postmortem,
    Question,
    ReportChart,
    ReportState,
    TimelineLine,
)
from bot.domain.report_news import citations, revisions, written
from bot.domain.text import Locale, Localized
from bot.domain.timeline import Entry, EntryKind
from bot.locales import say
from bot.report.compile_facts import (
    changes,
    checklist_reasons,
    measured,
    pointers,
    probes,
    searched,
)
from bot.report.compile_layers import layers_left
from bot.report.compile_people import as_people_left_it, judgement, monitoring, with_named
from bot.report.durations import durations
from bot.report.rewrite import rewrite

_MENTION = re.compile(r"<@([A-Z0-9]{2,})(?:\|[^<>]*)?>")
_USER = re.compile(r"\b[UW][A-Z0-9]{2,}\b")
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
    charts: blob name to content.
    zone: IANA name. titles: cause id to title, for links of the chain that were never hypotheses themselves.
    """
    ordered = sorted(entries, key=lambda entry: (entry.at, entry.seq))
    words = written(entries)
    named = citations(entries)
    incident = as_people_left_it(incident, words, named, measured(ordered))
    established = incident.root_cause is not None
    helped, misled = pointers(incident)
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
        layers=layers_left(incident, directory),
        guards=incident.guards,
        changes=changes(incident),
        changes_window=searched(ordered),
        blind_spots=incident.blind_spots,
        mitigations=tuple(
            replace(item, by=_name(item.by, directory)) for item in incident.mitigations
        ),
        fix=replace(incident.fix, by=_name(incident.fix.by, directory)) if incident.fix else None,
        checklist_changes=tuple(sorted(incident.checklist_changes, key=lambda item: item.n)),
        checklist_reasons=checklist_reasons(ordered),
        monitoring_changes=monitoring(incident),
        checks=tuple(replace(item, by=_name(item.by, directory)) for item in incident.checks),
        action_items=tuple(
            replace(item, owner=_name(item.owner, directory) if item.owner else None)
            for item in sorted(incident.action_items, key=lambda item: item.n)
        ),
        durations=durations(incident, ordered),
        judgements=tuple(judgement(topic, words, directory) for topic in JudgementTopic),
        probes=probes(ordered),
        helped=helped,
        misled=misled,
        revisions=tuple(replace(item, by=_name(item.by, directory)) for item in revisions(entries)),
    )
    return rewrite(compiled, _readable(directory))


def _name(user: str, directory: Mapping[str, str]) -> str:
    return directory.get(user, user)


def _readable(directory: Mapping[str, str]) -> Callable[[str], str]:
    """Ids and mentions as names, and half a surrogate pair (no encoding can write it) as the replacement character."""

    def change(text: str) -> str:
        if text in directory:
            return directory[text]
        if "<@" in text:
            text = _MENTION.sub(lambda match: f"@{_name(match[1], directory)}", text)
        text = _USER.sub(lambda match: _name(match[0], directory), text)
        return text if text.isascii() else _SURROGATE.sub("\ufffd", text)

    return change


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
            evidence=with_named(set_off, named.get(Question.TRIGGER)),
        ),
        Answer(
            question=Question.DEEP_CAUSE,
            text=root.deep_cause,
            evidence=with_named(root.evidence, named.get(Question.DEEP_CAUSE)),
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
    if entry.text is None:
        return None
    if entry.text.en.strip() or entry.text.zh.strip():
        return _marked(entry, entry.text)
    kind = say(f"report.kind.{entry.kind.value}")
    if not entry.op:
        return kind
    op = _operation(entry.op)
    return Localized(f"{kind.en}: {op.en}", f"{kind.zh}：{op.zh}")


def _marked(entry: Entry, text: Localized) -> Localized:
    """A reaction repeats the words that it is about: what it makes of them stands before them."""
    if entry.kind is not EntryKind.REACTION or entry.data.get("removed"):
        return text
    try:
        meaning = say(f"report.reacted.{entry.data.get('meaning')}")
    except KeyError:
        return text
    return Localized(f"{meaning.en}: {text.en}", f"{meaning.zh}：{text.zh}")


def _operation(op: str) -> Localized:
    try:
        return say(f"report.op.{op}")
    except KeyError:
        # Written by a newer version: its own word is better than none.
        return Localized.verbatim(op)


def _evidence_order(item: Evidence) -> tuple[Any, ...]:
    """What was out of the ordinary stands first in each source."""
    place = list(type(item.source)).index(item.source)
    return (place, not item.is_abnormal, item.window.start, item.id)


def _chart(ref: ChartRef, incident: Incident, blobs: Mapping[str, bytes]) -> ReportChart:
    others = {locale: blobs.get(ref.svg_in(locale) or "") for locale in Locale}
    return ReportChart(
        id=ref.id,
        title=ref.title,
        alt=ref.alt,
        at=ref.at,
        is_after_fix=incident.fix is not None and ref.at >= incident.fix.at,
        png=blobs.get(ref.png) if ref.png else None,
        svg=blobs.get(ref.svg) if ref.svg else None,
        svgs={locale: content for locale, content in others.items() if content is not None},
        csv=blobs.get(ref.csv) if ref.csv else None,
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
