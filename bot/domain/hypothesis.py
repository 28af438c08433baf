"""Candidate causes, ranked, each with the reason for every move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.evidence import BlindSpot, Evidence, EvidenceSource, Gap, SourceState
from bot.domain.guard import GuardNote
from bot.domain.instant import Window, parse_rfc3339, to_rfc3339
from bot.domain.text import Localized

NOT_ESTABLISHED = "not_established"


class HypothesisStatus(StrEnum):
    """Where the verification of a hypothesis stands."""

    CANDIDATE = "candidate"
    TESTING = "testing"
    SUPPORTED = "supported"
    REJECTED = "rejected"
    CONFIRMED = "confirmed"


class Layer(StrEnum):
    """The layers of a serving stack, outermost first."""

    INPUT = "input"
    APPLICATION = "application"
    MODEL = "model"
    RUNTIME = "runtime"
    GPU = "gpu"
    HOST = "host"
    NETWORK = "network"
    STORAGE = "storage"
    DEPENDENCY = "dependency"


class LayerState(StrEnum):
    """What is known about a layer; `NOT_CHECKED` is never `CLEAN`."""

    ABNORMAL = "abnormal"
    CLEAN = "clean"
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What people see going wrong. `since` is None while nobody knows."""

    id: str
    summary: Localized
    since: datetime | None = None
    metric: str | None = None
    scope: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "id": self.id,
            "summary": self.summary.to_json(),
            "since": to_rfc3339(self.since) if self.since else None,
            "metric": self.metric,
            "scope": self.scope,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Symptom:
        """Reads `to_json`'s shape."""
        return cls(
            id=value["id"],
            summary=Localized.from_json(value["summary"]),
            since=parse_rfc3339(value["since"]) if value.get("since") else None,
            metric=value.get("metric"),
            scope=value.get("scope"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One reason for or against: `weight` in log-odds, positive for, negative against; `ref` an evidence id."""

    source: EvidenceSource
    summary: Localized
    ref: str
    weight: float

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "source": self.source.value,
            "summary": self.summary.to_json(),
            "ref": self.ref,
            "weight": round(self.weight, 4),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Contribution:
        """Reads `to_json`'s shape."""
        return cls(
            source=EvidenceSource(value["source"]),
            summary=Localized.from_json(value["summary"]),
            ref=value["ref"],
            weight=float(value["weight"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Evidence that would move this hypothesis and was not to be had."""

    what: Localized
    why: Localized

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {"what": self.what.to_json(), "why": self.why.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Missing:
        """Reads `to_json`'s shape."""
        return cls(what=Localized.from_json(value["what"]), why=Localized.from_json(value["why"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NextExperiment:
    """The smallest test that would move the ranking most: a probe, or a read-only query when `probe` is None."""

    probe: str | None
    node: str | None
    args: Mapping[str, Any]
    query: str | None
    expects: Localized
    would_refute: Localized
    command: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "probe": self.probe,
            "node": self.node,
            "args": dict(self.args),
            "query": self.query,
            "expects": self.expects.to_json(),
            "would_refute": self.would_refute.to_json(),
            "command": self.command,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NextExperiment:
        """Reads `to_json`'s shape."""
        return cls(
            probe=value.get("probe"),
            node=value.get("node"),
            args=dict(value.get("args") or {}),
            query=value.get("query"),
            expects=Localized.from_json(value["expects"]),
            would_refute=Localized.from_json(value["would_refute"]),
            command=value.get("command"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """What set the cause off: a recorded change, or a sentence when none is recorded."""

    change: str | None
    summary: Localized

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {"change": self.change, "summary": self.summary.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Trigger:
        """Reads `to_json`'s shape."""
        return cls(change=value.get("change"), summary=Localized.from_json(value["summary"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One candidate.

    cause: an id of the catalogue, `not_established`, or `person:<n>` for one that a responder put into words.
    probability: 0..1; all hypotheses of a ranking sum to 1.
    chain: cause ids, effect first, root last; begins or ends with `cause` (the root is the deepest link).
    explains: ids of the symptoms that this cause can produce.
    layers: of the links of its chain, effect first; none for a cause that a responder put into words.
    """

    cause: str
    title: Localized
    probability: float
    node: str | None = None
    component: str | None = None
    chain: tuple[str, ...] = ()
    supports: tuple[Contribution, ...] = ()
    against: tuple[Contribution, ...] = ()
    missing: tuple[Missing, ...] = ()
    trigger: Trigger | None = None
    next_experiment: NextExperiment | None = None
    explains: tuple[str, ...] = ()
    layers: tuple[Layer, ...] = ()
    status: HypothesisStatus = HypothesisStatus.CANDIDATE
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "cause": self.cause,
            "title": self.title.to_json(),
            "probability": round(self.probability, 4),
            "node": self.node,
            "component": self.component,
            "chain": list(self.chain),
            "for": [item.to_json() for item in self.supports],
            "against": [item.to_json() for item in self.against],
            "missing": [item.to_json() for item in self.missing],
            "trigger": self.trigger.to_json() if self.trigger else None,
            "next_experiment": self.next_experiment.to_json() if self.next_experiment else None,
            "explains": list(self.explains),
            "layers": [item.value for item in self.layers],
            "status": self.status.value,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Hypothesis:
        """Reads `to_json`'s shape."""
        experiment = value.get("next_experiment")
        trigger = value.get("trigger")
        return cls(
            cause=value["cause"],
            title=Localized.from_json(value["title"]),
            probability=float(value["probability"]),
            node=value.get("node"),
            component=value.get("component"),
            chain=tuple(value.get("chain") or ()),
            supports=tuple(Contribution.from_json(item) for item in value.get("for") or ()),
            against=tuple(Contribution.from_json(item) for item in value.get("against") or ()),
            missing=tuple(Missing.from_json(item) for item in value.get("missing") or ()),
            trigger=Trigger.from_json(trigger) if trigger else None,
            next_experiment=NextExperiment.from_json(experiment) if experiment else None,
            explains=tuple(value.get("explains") or ()),
            layers=tuple(Layer(item) for item in value.get("layers") or ()),
            status=HypothesisStatus(value.get("status", "candidate")),
            reason=value.get("reason"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerVerdict:
    """What a diagnosis says about one layer."""

    layer: Layer
    state: LayerState
    why: Localized

    def to_json(self) -> dict[str, Any]:
        """`{"layer","state","why"}`."""
        return {"layer": self.layer.value, "state": self.state.value, "why": self.why.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LayerVerdict:
        """Reads `to_json`'s shape."""
        return cls(
            layer=Layer(value["layer"]),
            state=LayerState(value["state"]),
            why=Localized.from_json(value["why"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything that one pass of the engine concluded; deterministic for the same evidence.

    sources: state of `metrics`, `logs`, `traces`, `events`, `probes`.
    hypotheses: best first, `not_established` among them; probabilities sum to 1.
    guards: what kept the ranking honest this time, in the order in which it is to be read.
    """

    service: str
    at: datetime
    window: Window
    symptoms: tuple[Symptom, ...]
    hypotheses: tuple[Hypothesis, ...]
    layers: tuple[LayerVerdict, ...]
    sources: Mapping[str, SourceState]
    blind_spots: tuple[BlindSpot, ...]
    evidence: tuple[Evidence, ...]
    gaps: tuple[Gap, ...]
    guards: tuple[GuardNote, ...] = ()
