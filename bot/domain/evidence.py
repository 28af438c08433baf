"""An answer with its citation, or the reason why there is none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from bot.domain.instant import Window
from bot.domain.text import Localized


class EvidenceSource(StrEnum):
    """Where evidence came from; the closed set of the JSON export."""

    METRICS = "metrics"
    LOGS = "logs"
    TRACES = "traces"
    EVENTS = "events"
    PROBE = "probe"
    PERSON = "person"


class SourceState(StrEnum):
    """What a source had to say. Only `OK` may exonerate anything."""

    OK = "ok"
    EMPTY = "empty"
    UNREACHABLE = "unreachable"


def digest_of(content: object) -> str:
    """Hex SHA-256 of `content` as JSON with sorted keys, so that equal answers have equal digests."""
    text = json.dumps(
        content, sort_keys=True, separators=(",", ":"), default=str, ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


# A fold asks for the ids of all evidence with every entry that adds some.
@lru_cache(maxsize=32_768)
def _id_of(plugin: str, query: str, node: str | None, finding: str | None, digest: str) -> str:
    return f"E-{digest_of([plugin, query, node, finding, digest])[:6]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One point of a series; `value` is None where the source has a gap."""

    at: datetime
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A time series as it was read.

    labels: label name to value, without the metric name.
    samples: time-ordered; gaps stay gaps.
    step_seconds: effective resolution of the query, not the wish.
    """

    name: str
    labels: Mapping[str, str]
    unit: str
    samples: tuple[Sample, ...]
    step_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One citable observation.

    `id` is short and stable (`E-1a2b3c`: from the digest), what the report cites. `query` is what was asked, in the
    source's own language, `window` over which time, `samples` how many values answered.
    """

    source: EvidenceSource
    plugin: str
    summary: Localized
    query: str
    window: Window
    samples: int
    digest: str
    node: str | None = None
    component: str | None = None
    finding: str | None = None
    is_abnormal: bool = True

    @property
    def id(self) -> str:
        """`E-` and the first six hex digits of the digest over question and answer."""
        return _id_of(self.plugin, self.query, self.node, self.finding, self.digest)

    def to_json(self) -> dict[str, Any]:
        """The shape of the JSON export, and what timeline entries carry."""
        return {
            "id": self.id,
            "source": self.source.value,
            "plugin": self.plugin,
            "summary": self.summary.to_json(),
            "query": self.query,
            "window": self.window.to_json(),
            "samples": self.samples,
            "digest": self.digest,
            "node": self.node,
            "component": self.component,
            "finding": self.finding,
            "abnormal": self.is_abnormal,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Evidence:
        """Reads `to_json`'s shape."""
        return cls(
            source=EvidenceSource(value["source"]),
            plugin=value["plugin"],
            summary=Localized.from_json(value["summary"]),
            query=value["query"],
            window=Window.from_json(value["window"]),
            samples=int(value["samples"]),
            digest=value["digest"],
            node=value.get("node"),
            component=value.get("component"),
            finding=value.get("finding"),
            is_abnormal=bool(value.get("abnormal", True)),
        )


NOT_CONFIGURED = "not_configured"
"""Reason of a gap where nobody was asked: the deployment has no such source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Why a question has no answer.

    reason: a `bot.errors.Reason` value, a probe's status, `empty` or `NOT_CONFIGURED`.
    """

    source: EvidenceSource
    plugin: str
    query: str
    reason: str
    detail: str
    node: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What timeline entries carry."""
        return {
            "source": self.source.value,
            "plugin": self.plugin,
            "query": self.query,
            "reason": self.reason,
            "detail": self.detail,
            "node": self.node,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Gap:
        """Reads `to_json`'s shape."""
        return cls(
            source=EvidenceSource(value["source"]),
            plugin=value["plugin"],
            query=value["query"],
            reason=value["reason"],
            detail=value["detail"],
            node=value.get("node"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindSpot:
    """Something that nobody could see during the incident, and why."""

    what: Localized
    why: Localized

    def to_json(self) -> dict[str, Any]:
        """`{"what", "why"}`, each in both languages."""
        return {"what": self.what.to_json(), "why": self.why.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BlindSpot:
        """Reads `to_json`'s shape."""
        return cls(what=Localized.from_json(value["what"]), why=Localized.from_json(value["why"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """A vertical mark on a chart: an alert, a change, a fix."""

    at: datetime
    label: Localized
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPanel:
    """One panel of a chart.

    baseline_low / baseline_high: the band of usual values in the panel's unit, None when there is no baseline.
    threshold: the line above or below which the value is abnormal, in the panel's unit.
    """

    title: Localized
    unit: str
    series: tuple[Series, ...]
    query: str
    source: str
    baseline_low: float | None = None
    baseline_high: float | None = None
    threshold: float | None = None
    evidence_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSpec:
    """What a chart shows; panels share one time axis. Drawing it is the report's business."""

    id: str
    title: Localized
    window: Window
    panels: tuple[ChartPanel, ...]
    marks: tuple[ChartMark, ...] = ()
    onset: Window | None = None
    notes: tuple[Localized, ...] = field(default=())
