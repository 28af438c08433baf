"""What an exercise plays: levels of signals before and since the onset, lines, changes and findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.cause import LogPlace
from bot.domain.change import Change

ONSET = timedelta(minutes=15)
"""How long the incident had been going on when the exercise begins. Basis: an alert that is not immediate."""

NEIGHBOUR = "batch-export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One signal: `usual` before the onset and after the recovery, `sick` in between.

    rises: it does not step but grows towards `sick` over the hours before.
    """

    usual: float
    sick: float
    rises: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A log line that is repeated `count` times since the onset."""

    text: str
    place: LogPlace
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding that a probe reports on the sick node."""

    id: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The whole of a generated exercise, relative to its onset.

    courses: by signal name. findings: by probe. changes: dated relative to the onset by `changed`.
    spans: whether traces arrive.
    """

    cause: str
    courses: Mapping[str, Course]
    lines: tuple[Said, ...] = ()
    changes: tuple[Change, ...] = ()
    findings: Mapping[str, tuple[Found, ...]] = field(default_factory=dict)
    is_local: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """When and where an exercise takes place.

    recovered: since when the fault is gone, None while it is there.
    """

    service: str
    nodes: tuple[str, ...]
    peers: tuple[str, ...]
    matchers: Mapping[str, str]
    began: datetime
    recovered: datetime | None
    seed: int

    @property
    def onset(self) -> datetime:
        """When the fault set in."""
        return self.began - ONSET

    @property
    def sick_node(self) -> str:
        """Where a local fault sits."""
        return self.nodes[self.seed % len(self.nodes)]

    def is_sick(self, at: datetime) -> bool:
        """Whether the fault is there at that moment."""
        return at >= self.onset and (self.recovered is None or at < self.recovered)
