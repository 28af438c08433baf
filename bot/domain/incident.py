"""The state of an incident: a projection of its timeline, never written by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.action_item import ActionItem
from bot.domain.alert import Alert
from bot.domain.change import Change
from bot.domain.checklist import ChecklistChange, CheckRun, UsedChecklist, UsedProcedure
from bot.domain.evidence import BlindSpot, Evidence, Gap, SourceState
from bot.domain.guard import GuardNote
from bot.domain.hypothesis import Hypothesis, LayerVerdict, Symptom, Trigger
from bot.domain.precedent import Drill, Precedent, Recurrence
from bot.domain.responder import Role, Severity
from bot.domain.silence import Hearing
from bot.domain.text import Locale, Localized
from bot.domain.waiver import Waiver


class IncidentStatus(StrEnum):
    """The closed set of the contract. Only a person moves an incident to RESOLVED."""

    OPEN = "open"
    MITIGATED = "mitigated"
    RECOVERED = "recovered"
    RESOLVED = "resolved"


class StepState(StrEnum):
    """Where one step of the SOP stands."""

    PENDING = "pending"
    CURRENT = "current"
    PASSED = "passed"
    SKIPPED = "skipped"


class ExperimentVerdict(StrEnum):
    """How a result compares with what was predicted before the run."""

    AS_PREDICTED = "as_predicted"
    CONTRARY = "contrary"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One test of a hypothesis; `predicted` was recorded before it ran, `result` is None until it has."""

    id: str
    cause: str
    probe: str | None
    node: str | None
    args: Mapping[str, Any]
    query: str | None
    predicted: Localized
    would_refute: Localized
    by: str
    at: datetime
    result: Localized | None = None
    verdict: ExperimentVerdict | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """What a person confirmed. `cause` is the deepest link of `chain` (effect first, root last)."""

    cause: str
    chain: tuple[str, ...]
    trigger: Trigger | None
    deep_cause: Localized
    prevention: Localized
    evidence: tuple[str, ...]
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Mitigation:
    """What somebody did to stop the pain, and what was captured before it destroyed evidence."""

    text: Localized | None
    by: str
    at: datetime
    captured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """The change that removed the cause; `verified` is None until the symptom was checked."""

    text: Localized | None
    by: str
    at: datetime
    verified: bool | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is affected: proposed by the bot from labels and series until a person confirmed it."""

    nodes: tuple[str, ...] = ()
    replicas: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    is_confirmed: bool = False


def svg_beside(svg: str, locale: Locale) -> str:
    """The name under which a drawing lies beside `svg` in another language.

    >>> svg_beside("symptom-J1.svg", Locale.ZH_CN)
    'symptom-J1.zh-CN.svg'
    """
    return f"{svg.removesuffix('.svg')}.{locale.value}.svg"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartRef:
    """A chart that was posted; `png` and `svg` name blobs of the incident, drawn in its language.

    What lies beside the SVG is named after it: the numbers as CSV, the same drawing in other languages.
    """

    id: str
    title: Localized
    alt: Localized
    png: str | None
    svg: str | None
    at: datetime

    @property
    def csv(self) -> str | None:
        """The blob of the numbers."""
        return f"{self.svg.removesuffix('.svg')}.csv" if self.svg else None

    def svg_in(self, locale: Locale) -> str | None:
        """The blob of the drawing in one language, where it was drawn in that beside the incident's own."""
        return svg_beside(self.svg, locale) if self.svg else None

    @property
    def blobs(self) -> tuple[str, ...]:
        """Every blob that this chart may have."""
        names = (self.png, self.svg, self.csv, *map(self.svg_in, Locale))
        return tuple(name for name in names if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowupState:
    """What became of one kind of automatic follow-up in this incident.

    anchor: what the last ones were about (a step, a time); count: how many were sent about it.
    """

    anchor: str = ""
    count: int = 0
    last_at: datetime | None = None
    snoozed_until: datetime | None = None
    is_stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StormMember:
    """An incident that an alert storm lists instead of giving it a message of its own."""

    id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Everything that the timeline adds up to.

    alert_groups: sender's way in and group key of every notification that was taken in.
    alerts_left_out: alerts that the sender itself left out of its newest notification.
    hearing: which of its alerts are silenced at their sender; None where that was never asked or never news.
    notified_at: when a notification said something new last; alert_notifications: how many came.
    active_at: when a person or the procedure moved last. evidence_at: when the sources were asked last.
    storm_of: the storm that lists this incident, while it has no message of its own. storm: what a storm lists.
    changes_back_seconds: how far back people had changes searched; None: as far as the engine does by itself.
    procedure: the SOP that it follows, where changes were accepted over the file.
    precedents: earlier incidents that look alike. drill: set when this is an exercise.
    """

    id: str
    title: str
    status: IncidentStatus
    severity: Severity
    services: tuple[str, ...]
    channel: str
    opened_at: datetime
    locale: Locale
    labels: Mapping[str, str] = field(default_factory=dict)
    thread_ts: str | None = None
    card_ts: str | None = None
    resolved_at: datetime | None = None
    acknowledged_at: datetime | None = None
    last_seq: int = 0
    scope: Scope = field(default_factory=Scope)
    alerts: Mapping[str, Alert] = field(default_factory=dict)
    alert_notifications: int = 0
    notified_at: datetime | None = None
    alert_groups: frozenset[tuple[str, str]] = frozenset()
    alerts_left_out: int = 0
    hearing: Hearing | None = None
    active_at: datetime | None = None
    evidence_at: datetime | None = None
    recurrence_of: str | None = None
    storm_of: str | None = None
    storm: tuple[StormMember, ...] = ()
    followups: Mapping[str, FollowupState] = field(default_factory=dict)
    symptoms: tuple[Symptom, ...] = ()
    steps: Mapping[str, StepState] = field(default_factory=dict)
    current_step: str | None = None
    evidence: tuple[Evidence, ...] = ()
    gaps: tuple[Gap, ...] = ()
    sources: Mapping[str, SourceState] = field(default_factory=dict)
    layers: tuple[LayerVerdict, ...] = ()
    blind_spots: tuple[BlindSpot, ...] = ()
    guards: tuple[GuardNote, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    changes: tuple[Change, ...] = ()
    changes_back_seconds: float | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    root_cause: RootCause | None = None
    mitigations: tuple[Mitigation, ...] = ()
    fix: Fix | None = None
    charts: tuple[ChartRef, ...] = ()
    checklist_changes: tuple[ChecklistChange, ...] = ()
    monitoring_changes: tuple[ChecklistChange, ...] = ()
    is_checklist_reviewed: bool = False
    checklist: UsedChecklist | None = None
    procedure: UsedProcedure | None = None
    checks: tuple[CheckRun, ...] = ()
    action_items: tuple[ActionItem, ...] = ()
    roles: Mapping[Role, str] = field(default_factory=dict)
    precedents: tuple[Precedent, ...] = ()
    recurrences: tuple[Recurrence, ...] = ()
    drill: Drill | None = None
    report_state: str = "draft"
    report_formats: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to resolve it."""
        return self.status is not IncidentStatus.RESOLVED

    @property
    def is_only_listed(self) -> bool:
        """Whether a storm lists it and nobody has taken it up: it has no message of its own."""
        return self.storm_of is not None and self.card_ts is None and self.acknowledged_at is None

    @property
    def service(self) -> str | None:
        """The service that the incident is about; None while unknown."""
        return self.services[0] if self.services else None

    def hypothesis(self, cause: str) -> Hypothesis | None:
        """The hypothesis with this cause id."""
        return next((item for item in self.hypotheses if item.cause == cause), None)
