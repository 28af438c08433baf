"""The series that an exercise answers queries with: every query of the catalogue, filled for its service."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.cause import Catalogue, Signal
from bot.diagnosis.plan import Scope, metrics_in
from bot.inventory import Service
from bot.learning.drills.calm import LEVELS, STEADY, level_of
from bot.learning.drills.script import NEIGHBOUR, Course, Script, Stage

RATES = (60.0, 600.0)
"""Rate windows that a diagnosis uses at a resolution of 15 s, for the incident and for other days."""

_GROWTH = timedelta(hours=6)
_NOISE = 0.012


@dataclass(frozen=True, slots=True)
class Track:
    """One series: its labels, and its value at any moment (None: no sample)."""

    labels: Mapping[str, str]
    value: Callable[[datetime], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks:
    """All series by the text of the query; `names` are the metrics that there are."""

    by_query: Mapping[str, tuple[Track, ...]]
    names: frozenset[str]

    def answer(self, query: str) -> tuple[Track, ...]:
        """The series of a query; one that nobody planned is answered by the metric that it reads, if that is known."""
        found = self.by_query.get(query)
        if found is not None:
            return found
        words = set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", query)) & self.names
        for known, tracks in self.by_query.items():
            if words and words <= metrics_in(known):
                return tracks
        return ()


def tracks_of(script: Script, stage: Stage, catalogue: Catalogue) -> Tracks:
    """Every signal of the catalogue, those of the script with their course."""
    service = Service(name=stage.service, nodes=stage.nodes, selectors=dict(stage.matchers))
    by_query: dict[str, tuple[Track, ...]] = {}
    names: set[str] = set()
    for signal in catalogue.signals.values():
        if not signal.queries or (signal.name not in LEVELS and signal.name not in script.courses):
            continue
        tracks = tuple(_tracks(signal, script, stage))
        names |= metrics_in(signal.queries[0])
        for rate in RATES:
            scope = Scope(service=service, nodes=stage.nodes, rate_seconds=rate)
            by_query.setdefault(scope.fill(signal.queries[0]), tracks)
    return Tracks(by_query=by_query, names=frozenset(names | {"up"}))


def _tracks(signal: Signal, script: Script, stage: Stage) -> Iterator[Track]:
    query = signal.queries[0]
    course = script.courses.get(signal.name)
    usual = Course(usual=level_of(signal), sick=level_of(signal))
    if not re.search(r"\$node|\$host|by \((node|Hostname)", query):
        yield Track(_shared_labels(query, stage), curve(signal.name, course or usual, stage, ""))
        return
    for node in stage.nodes:
        is_hit = not script.is_local or node == stage.sick_node
        own = course if course is not None and is_hit else usual
        yield Track(_node_labels(query, node), curve(signal.name, own, stage, node))


def _shared_labels(query: str, stage: Stage) -> dict[str, str]:
    return {"peer": stage.peers[0]} if "by (peer" in query else {}


def _node_labels(query: str, node: str) -> dict[str, str]:
    if "$host" in query:
        return {"Hostname": node} if "by (Hostname" in query else {"Hostname": node, "gpu": "0"}
    labels = {"node": node}
    if "container)" in query and "by (" in query and "$others" in query:
        labels["container"] = NEIGHBOUR
    if "node_disk_" in query:
        labels["device"] = "nvme0n1"
    return labels


def curve(name: str, course: Course, stage: Stage, node: str) -> Callable[[datetime], float | None]:
    """The value of a course at any moment, with a little noise that depends on the seed alone."""
    noise = 0.0 if name in STEADY else _NOISE
    digest = hashlib.blake2b(f"{stage.seed}:{name}:{node}".encode(), digest_size=8).digest()
    start = int.from_bytes(digest)

    def value(at: datetime) -> float:
        # A multiplicative hash of the quarter minute: cheap, and the same for the same moment.
        mixed = (start ^ (int(at.timestamp() // 15) * 2_654_435_761)) % 6_283
        return _level(course, stage, at) * (1 + noise * math.sin(mixed / 1_000))

    return value


def _level(course: Course, stage: Stage, at: datetime) -> float:
    if course.rises:
        if stage.recovered is not None and at >= stage.recovered:
            return course.usual
        grown = (at - (stage.began - _GROWTH)) / _GROWTH
        return course.usual + (course.sick - course.usual) * max(0.0, grown)
    return course.sick if stage.is_sick(at) else course.usual
