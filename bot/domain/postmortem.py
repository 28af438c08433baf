"""The postmortem: what an incident's timeline adds up to for the people who were not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.action_item import ActionItem
from bot.domain.alert import Alert
from bot.domain.change import Change
from bot.domain.checklist import ChecklistChange, CheckRun, ProposalStatus
from bot.domain.evidence import BlindSpot, Evidence, Gap, SourceState
from bot.domain.finding import ProbeResult
from bot.domain.guard import GuardNote
from bot.domain.hypothesis import Hypothesis, LayerVerdict, Symptom
from bot.domain.incident import (
    Experiment,
    ExperimentVerdict,
    Fix,
    IncidentStatus,
    Mitigation,
    RootCause,
    Scope,
)
from bot.domain.instant import Window
from bot.domain.precedent import Precedent, Recurrence
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind, Revision

SCHEMA = "rca-bot/postmortem/1"


class ReportState(StrEnum):
    """How far people have taken the report."""

    DRAFT = "draft"
    REVIEWED = "reviewed"
    FINAL = "final"


class DurationName(StrEnum):
    """The measured spans of one incident, each from its opening; the values are the keys of the JSON export."""

    ACKNOWLEDGE = "time_to_acknowledge_s"
    SYMPTOM = "time_to_symptom_s"
    FIRST_EVIDENCE = "time_to_first_evidence_s"
    HYPOTHESES = "time_to_hypotheses_s"
    MITIGATE = "time_to_mitigate_s"
    CONFIRMED_CAUSE = "time_to_confirmed_cause_s"
    VERIFIED_FIX = "time_to_verified_fix_s"
    RESOLVE = "time_to_resolve_s"


class MonitoringKind(StrEnum):
    """What kind of monitoring a proposal would change."""

    ALERT = "alert"
    METRIC = "metric"
    LOG = "log"
    TRACE = "trace"


class JudgementTopic(StrEnum):
    """The sections that only people can write; the report asks, it never answers."""

    IMPACT = "impact"
    CONTRIBUTING = "contributing"
    WENT_WELL = "went_well"
    WENT_BADLY = "went_badly"
    LUCK = "luck"
    PREVENTION = "prevention"
    LESSONS = "lessons"


REQUIRED_TOPICS = frozenset(
    [
        JudgementTopic.IMPACT,
        JudgementTopic.WENT_WELL,
        JudgementTopic.WENT_BADLY,
        JudgementTopic.PREVENTION,
        JudgementTopic.LESSONS,
    ]
)
"""What has to be written before a report can become final."""


class Question(StrEnum):
    """The three questions that a report answers first."""

    TRIGGER = "trigger"
    DEEP_CAUSE = "deep_cause"
    PREVENTION = "prevention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one of the three questions; `text` is None while it is not established.

    needs_evidence: whether the answer states a fact. Prevention is a plan, and is not marked for citing nothing.
    """

    question: Question
    text: Localized | None
    evidence: tuple[str, ...] = ()
    needs_evidence: bool = True

    @property
    def is_unsupported(self) -> bool:
        """Whether it claims a fact and cites nothing for it."""
        return self.text is not None and self.needs_evidence and not self.evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFile:
    """A file that came with a message; it stays in the thread, since nobody can mask what is in it."""

    name: str
    size_bytes: int
    media_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLine:
    """One entry as a reader sees it. `text` is None only where the author took it back.

    author: a display name. corrected_by: seq of the latest entry that corrects this one.
    """

    seq: int
    kind: EntryKind
    at: datetime
    author: str
    source: str
    text: Localized | None
    permalink: str | None = None
    corrects: int | None = None
    corrected_by: int | None = None
    history: tuple[Revision, ...] = ()
    files: tuple[AttachedFile, ...] = ()

    @property
    def is_withheld(self) -> bool:
        """Whether the author deleted the message that this line came from."""
        return self.text is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """One link of the causal chain, with the ids of the evidence that carries it."""

    cause: str
    title: Localized
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedEvidence:
    """Evidence under the id that it is cited by; the id stays when its texts are masked."""

    id: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedChange:
    """A change that was looked at; `is_suspect` when a hypothesis that still stands names it as the trigger."""

    change: Change
    is_suspect: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChart:
    """A chart of the incident with its drawn forms; None where that form was not stored.

    svgs: the drawing in other languages than the incident's.
    """

    id: str
    title: Localized
    alt: Localized
    at: datetime
    is_after_fix: bool = False
    png: bytes | None = None
    svg: bytes | None = None
    svgs: Mapping[Locale, bytes] = field(default_factory=dict)
    csv: bytes | None = None

    def svg_in(self, locale: Locale) -> bytes | None:
        """The drawing in this language, else in the incident's."""
        return self.svgs.get(locale, self.svg)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawProbe:
    """A probe result as the node answered it, and the timeline entry that holds it."""

    seq: int
    purpose: str
    result: ProbeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringChange:
    """A proposed change to alerts, metrics, logs or traces; `n` is the number that people decide it by."""

    n: int = 0
    kind: MonitoringKind
    diff: str
    reason: str | None = None
    status: ProposalStatus = ProposalStatus.PROPOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A question to people; `answer` is None until one of them has written something, `by` is who did last."""

    topic: JudgementTopic
    answer: Localized | None = None
    by: str | None = None
    at: datetime | None = None


class RevisionKind(StrEnum):
    """What made a revision of the report."""

    COMPILED = "compiled"
    EDITED = "edited"
    REVIEWED = "reviewed"
    FINAL = "final"
    REOPENED = "reopened"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRevision:
    """The report as it stood after the entry `seq`.

    n: from 1. state: since this revision. details: formats that were handed over, or sections that were edited
    (`claim:<id>` where evidence was named).
    """

    n: int
    seq: int
    kind: RevisionKind
    by: str
    at: datetime
    state: ReportState
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the incident is, before any judgement.

    began_at: the earliest sign of trouble (alert start or the symptom's stated beginning), None while unknown.
    ended_at: when the last alert was over, else when it was resolved; None while it goes on.
    roles: role to display name.
    """

    id: str
    title: str
    severity: Severity
    status: IncidentStatus
    state: ReportState
    services: tuple[str, ...]
    scope: Scope
    channel: str
    thread_ts: str | None
    locale: Locale
    opened_at: datetime
    began_at: datetime | None = None
    ended_at: datetime | None = None
    acknowledged_at: datetime | None = None
    resolved_at: datetime | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    alert_notifications: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmortem:
    """Everything a report holds, in no format yet.

    zone: IANA name of the zone that readers see times in. version: of the bot that compiled it.
    checklist_reasons: `n` of a checklist change to its reason in both languages.
    changes_window: the span that was searched for changes, None when nobody searched.
    durations: seconds from the opening, None where it did not happen.
    helped / misled: evidence ids that pointed at the confirmed cause / only at causes that fell.
    checks: of the checklist, with what each came to. precedents, recurrences: earlier incidents, never a claim.
    guards: what kept the last ranking honest.
    masked: kind of secret to how many different values were masked; empty until the report was redacted.
    """

    version: str
    zone: str
    header: Header
    answers: tuple[Answer, ...]
    alerts: tuple[Alert, ...]
    symptoms: tuple[Symptom, ...]
    timeline: tuple[TimelineLine, ...]
    evidence: tuple[CitedEvidence, ...]
    gaps: tuple[Gap, ...]
    sources: Mapping[str, SourceState]
    charts: tuple[ReportChart, ...]
    hypotheses: tuple[Hypothesis, ...]
    experiments: tuple[Experiment, ...]
    root_cause: RootCause | None
    chain: tuple[ChainLink, ...]
    layers: tuple[LayerVerdict, ...]
    changes: tuple[ReviewedChange, ...]
    changes_window: Window | None
    blind_spots: tuple[BlindSpot, ...]
    mitigations: tuple[Mitigation, ...]
    fix: Fix | None
    checklist_changes: tuple[ChecklistChange, ...]
    checklist_reasons: Mapping[int, Localized]
    monitoring_changes: tuple[MonitoringChange, ...]
    action_items: tuple[ActionItem, ...]
    durations: Mapping[DurationName, float | None]
    judgements: tuple[Judgement, ...]
    probes: tuple[RawProbe, ...]
    helped: tuple[str, ...] = ()
    misled: tuple[str, ...] = ()
    revisions: tuple[ReportRevision, ...] = ()
    checks: tuple[CheckRun, ...] = ()
    precedents: tuple[Precedent, ...] = ()
    recurrences: tuple[Recurrence, ...] = ()
    guards: tuple[GuardNote, ...] = ()
    is_drill: bool = False
    is_redacted: bool = False
    masked: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_established(self) -> bool:
        """Whether a person confirmed a cause; a report without one is valid."""
        return self.root_cause is not None

    @property
    def reviewed(self) -> ReportRevision | None:
        """Who found it right as it stands, and when; None for a draft."""
        if self.header.state is ReportState.DRAFT:
            return None
        kinds = (RevisionKind.REVIEWED, RevisionKind.FINAL)
        return next((item for item in reversed(self.revisions) if item.kind in kinds), None)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """What is claimed without evidence: ids of answers, links, tests and the fix. It keeps a report from `final`."""
        claims = [answer.question.value for answer in self.answers if answer.is_unsupported]
        claims += [f"chain:{link.cause}" for link in self.chain if not link.evidence]
        claims += [
            f"experiment:{item.id}"
            for item in self.experiments
            if item.verdict in _CLAIMING and not item.evidence
        ]
        if self.fix is not None and self.fix.verified and not self.fix.evidence:
            claims.append("fix")
        return tuple(claims)

    @property
    def unanswered(self) -> tuple[JudgementTopic, ...]:
        """Required sections that nobody has written yet. They keep a report from `final`."""
        return tuple(
            item.topic
            for item in self.judgements
            if item.topic in REQUIRED_TOPICS and item.answer is None
        )


# A test whose result is unclear claims nothing.
_CLAIMING = (ExperimentVerdict.AS_PREDICTED, ExperimentVerdict.CONTRARY)
