"""What a cause is: its evidence for and against, its tests, its fixes; written as YAML, weighed by the engine.

A signal is a question to one source, a finding an answer of a probe; both are named in the knowledge files so that
every cause speaks of them by the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bot.domain.change import ChangeKind
from bot.domain.hypothesis import Layer
from bot.domain.text import Localized


class Category(StrEnum):
    """The kinds of trouble of an inference service."""

    RESOURCE = "resource"
    LATENCY = "latency"
    MODEL = "model"
    STABILITY = "stability"
    OBSERVABILITY = "observability"


class SymptomKind(StrEnum):
    """What people can see going wrong."""

    LATENCY = "latency"
    ERRORS = "errors"
    QUALITY = "quality"
    THROUGHPUT = "throughput"
    GPU_IDLE = "gpu_idle"
    INSTABILITY = "instability"
    LOGS_MISSING = "logs_missing"
    TRACES_MISSING = "traces_missing"


class Movement(StrEnum):
    """How a signal moved against its own baseline, or where it stands."""

    UP = "up"
    DOWN = "down"
    CHANGED = "changed"
    FLAT = "flat"
    NOT_UP = "not_up"
    NOT_DOWN = "not_down"
    ABOVE = "above"
    BELOW = "below"
    RISING = "rising"
    STOPPED = "stopped"


class LogPlace(StrEnum):
    """Whose lines a log pattern is looked for in."""

    SERVICE = "service"
    NODE = "node"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTest:
    """A signal moved or stands as said.

    ratio: during over baseline; for `down` the value below which it counts.
    delta: least absolute change, in the signal's unit.
    value: the mark of `above` and `below`, in the signal's unit.
    usual: True compares with the same hour of yesterday and last week instead of the hour before.
    every: True asks it of every entity instead of any.
    along: name of another signal that must have risen on the same node at the same time; where that one was looked at
        and did not, the move is somebody else's.
    """

    signal: str
    movement: Movement
    ratio: float | None = None
    delta: float | None = None
    value: float | None = None
    usual: bool = False
    every: bool = False
    along: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingTest:
    """A probe reported this finding; with `pattern`, and its summary matches."""

    finding: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTest:
    """At least `minimum` lines match since shortly before the onset, and more often than before it."""

    pattern: str
    place: LogPlace = LogPlace.SERVICE
    minimum: int = 1
    since_start: bool = False


class ChangeOwner(StrEnum):
    """Whose change it is: the service's own, or that of a program beside it that now writes or computes far more."""

    SERVICE = "service"
    NEIGHBOUR = "neighbour"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTest:
    """A change of one of these kinds, whose text matches, was made before the onset."""

    kinds: tuple[ChangeKind, ...]
    pattern: str | None = None
    within_seconds: float | None = None
    owner: ChangeOwner = ChangeOwner.SERVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomTest:
    """This symptom was seen."""

    symptom: SymptomKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Every part holds."""

    parts: tuple[Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple[Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    """The part was looked at and does not hold; what could not be looked at stays unknown."""

    part: Test


Test = SignalTest | FindingTest | LogTest | ChangeTest | SymptomTest | AllOf | AnyOf | Not


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRule:
    """One reason for or against.

    family: what it is independent of: two rules of one family are one witness.
    weight: log-odds when the test holds; negative is against.
    absent: log-odds, never positive, when it was looked at and does not hold.
    basis: where the weight and the figures come from.
    """

    id: str
    family: str
    test: Test
    weight: float
    absent: float
    text: Localized
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuter:
    """While this holds, the cause is as good as excluded."""

    id: str
    test: Test
    text: Localized
    basis: str


class Cost(StrEnum):
    """What an experiment costs the running service."""

    CHEAP = "cheap"
    MODERATE = "moderate"
    HEAVY = "heavy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A small test of the cause.

    probe: name of a probe, or None for a read-only `query`.
    predicts / contradicts: finding ids that the cause predicts, and that speak against it.
    """

    probe: str | None
    query: str | None
    args: Mapping[str, Any]
    cost: Cost
    expects: Localized
    would_refute: Localized
    predicts: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing for a person to do; `command` is what to type, with parameters in angle brackets."""

    text: Localized
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeeperLink:
    """A cause that may lie beneath this one; `test` is what must hold between the two."""

    cause: str
    test: Test | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guilt:
    """Which changes can set the cause off."""

    kinds: tuple[ChangeKind, ...]
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One root cause of the catalogue; `id` is its file's name.

    prior: share of incidents that end here, 0..1, before any evidence; our judgement, which the team's own past shifts.
    local: True when it sits on one node, False when it is the service's or a peer's.
    families: independent families that must support it before it may be called likely.
    """

    id: str
    title: Localized
    summary: Localized
    layer: Layer
    category: Category
    prior: float
    local: bool
    families: int
    symptoms: tuple[SymptomKind, ...]
    evidence: tuple[EvidenceRule, ...]
    refuters: tuple[Refuter, ...]
    experiments: tuple[Experiment, ...]
    guilt: Guilt | None
    commands: tuple[Advice, ...]
    fixes: tuple[Advice, ...]
    prevention: tuple[Localized, ...]
    checklist: tuple[Localized, ...]
    deeper: tuple[DeeperLink, ...] = ()


EPOCH = "epoch"
"""The unit of a signal that is a moment: seconds since 1970. It is told as a date and charted as the time since then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A named question.

    queries: PromQL alternatives, the first with an answer wins and is the one that is named; empty for signals that
        the engine derives from traces and logs.
    unit: of the answer; `ratio` is 0..1, `epoch` a moment.
    floor: a change smaller than this, in the unit, is never abnormal.
    ratio: how many times its baseline counts as moved.
    symptom / direction: set when its movement is itself a symptom.
    seasonal: True when yesterday and last week are asked as well.
    recorded: pattern of the recording rules that hold the same measure, for sites that keep no raw series.
    """

    name: str
    title: Localized
    layer: Layer
    unit: str
    queries: tuple[str, ...] = ()
    floor: float = 0.0
    ratio: float = 1.5
    symptom: SymptomKind | None = None
    direction: Movement = Movement.UP
    seasonal: bool = False
    trend: bool = False
    recorded: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """A finding id: which probe reports it, on which layer, and whether it means checked and clean."""

    id: str
    probe: str
    layer: Layer
    title: Localized
    clean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All causes, signals and findings; ordered by name, so that the same knowledge gives the same ranking."""

    causes: Mapping[str, Cause] = field(default_factory=dict)
    signals: Mapping[str, Signal] = field(default_factory=dict)
    findings: Mapping[str, KnownFinding] = field(default_factory=dict)


def signals_of(test: Test) -> tuple[str, ...]:
    """Names of the signals that a test asks for."""
    match test:
        case SignalTest(signal=name, along=along):
            return (name, along) if along else (name,)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return tuple(name for part in parts for name in signals_of(part))
        case Not(part=part):
            return signals_of(part)
        case FindingTest() | LogTest() | ChangeTest() | SymptomTest():
            return ()


def findings_of(test: Test) -> tuple[str, ...]:
    """Ids of the findings that a test asks for."""
    match test:
        case FindingTest(finding=name):
            return (name,)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return tuple(name for part in parts for name in findings_of(part))
        case Not(part=part):
            return findings_of(part)
        case SignalTest() | LogTest() | ChangeTest() | SymptomTest():
            return ()


def logs_of(test: Test) -> tuple[LogTest, ...]:
    """The log patterns that a test looks for."""
    match test:
        case LogTest():
            return (test,)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return tuple(found for part in parts for found in logs_of(part))
        case Not(part=part):
            return logs_of(part)
        case SignalTest() | FindingTest() | ChangeTest() | SymptomTest():
            return ()
