"""Plays an exercise through the doors that a diagnosis looks through, so that everything else works as on real days."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bot.cause import Catalogue, LogPlace
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.change import Change
from bot.domain.evidence import Sample, Series
from bot.domain.finding import Finding, FindingSeverity, ProbeResult
from bot.domain.instant import Window
from bot.inventory import Inventory, Node, Service
from bot.learning.drills.answers import (
    clean_finding,
    moments,
    not_played,
    probe_result,
    refused,
    volume_of,
    volume_samples,
)
from bot.learning.drills.calm import LEVELS
from bot.learning.drills.script import NEIGHBOUR, Course, Script, Stage
from bot.learning.drills.traces import PlayedTraces
from bot.learning.drills.tracks import Tracks, curve, tracks_of
from bot.source import Answer, LogLine

RESOLUTION_SECONDS = 15.0
_MOST_POINTS = 2_000
_LINE_EVERY = timedelta(seconds=10)


def ports_of(
    script: Script, stage: Stage, real: DiagnosisPorts, clock: Callable[[], datetime]
) -> DiagnosisPorts:
    """The doors of an exercise; the catalogue is the real one, nothing else is."""
    service = Service(
        name=stage.service,
        nodes=stage.nodes,
        depends_on=stage.peers,
        selectors=dict(stage.matchers),
    )
    inventory = Inventory(
        nodes={name: Node(name=name, url=None) for name in stage.nodes},
        services={stage.service: service},
    )
    return replace(
        real,
        inventory=inventory,
        metrics=PlayedMetrics(tracks_of(script, stage, real.catalogue)),
        logs=PlayedLogs(script, stage),
        traces=PlayedTraces(script, stage),
        changes=PlayedChanges(script.changes),
        cluster=None,
        probes=PlayedProbes(script, stage, real.catalogue, clock),
    )


@dataclass(frozen=True, slots=True)
class PlayedMetrics:
    """Answers the queries of the catalogue from the tracks."""

    tracks: Tracks
    resolution_seconds: float = RESOLUTION_SECONDS

    async def names(self, window: Window, *, timeout_seconds: float) -> frozenset[str]:
        """Every metric that is played."""
        del window, timeout_seconds
        return self.tracks.names

    async def range(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        """The series of a query, at the asked step."""
        del timeout_seconds
        step = max(step_seconds, window.seconds / _MOST_POINTS, 1.0)
        return self._answer(query, window, moments(window, step), step)

    async def instant(self, query: str, at: datetime, *, timeout_seconds: float) -> Answer[Series]:
        """The value at one moment; a range selector gets the samples of its last minutes."""
        del timeout_seconds
        reach = 8 if query.endswith("]") else 1
        step = self.resolution_seconds
        times = [at - timedelta(seconds=step * back) for back in reversed(range(reach))]
        name = query.partition("[")[0] if query.endswith("]") else query
        return self._answer(name, Window(times[0], at), times, step)

    def _answer(
        self, query: str, window: Window, times: Sequence[datetime], step: float
    ) -> Answer[Series]:
        found = tuple(
            Series(
                name="",
                labels=dict(track.labels),
                unit="",
                step_seconds=step,
                samples=tuple(
                    Sample(at=at, value=value)
                    for at in times
                    if (value := track.value(at)) is not None
                ),
            )
            for track in self.tracks.answer(query)
        )
        return Answer(
            items=tuple(item for item in found if item.samples), query=query, window=window
        )


@dataclass(frozen=True, slots=True)
class PlayedLogs:
    """A quiet service, and since the onset the lines of the script."""

    script: Script
    stage: Stage

    async def lines(
        self, query: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[LogLine]:
        """Lines by the kind of question: the service's, the node's, the loud ones, those that a pattern picks."""
        del timeout_seconds
        is_node = query.startswith("{node")
        is_picked = "level=~" in query or "|~" in query
        found = [] if is_picked else self._usual(window, is_node=is_node)
        found += self._said(window, is_node=is_node)
        kept = sorted(found, key=lambda line: (line.at_ns, line.text))[-limit:]
        return Answer(items=tuple(kept), query=query, window=window)

    async def volume(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        """Lines or bytes of the service, or bytes of another program on the node."""
        del timeout_seconds
        name = volume_of(query)
        level = LEVELS[name]
        course = self.script.courses.get(name, Course(usual=level, sick=level))
        value = curve(name, course, self.stage, "")
        samples = volume_samples(value, window, step_seconds)
        others = {"node": self.stage.sick_node, "service": NEIGHBOUR}
        labels = others if name == "logs.bytes_others" else {}
        series = Series(name="", labels=labels, unit="", samples=samples, step_seconds=step_seconds)
        return Answer(items=(series,) if samples else (), query=query, window=window)

    def _usual(self, window: Window, *, is_node: bool) -> list[LogLine]:
        is_silent = self.script.courses.get("logs.lines") is not None and not is_node
        found = []
        at = window.start
        while at <= window.end:
            if not (is_silent and self.stage.is_sick(at)):
                text = "systemd: session opened" if is_node else "request served"
                found.append(self._line(at, text, is_node=is_node, level="info"))
            at += _LINE_EVERY
        return found

    def _said(self, window: Window, *, is_node: bool) -> list[LogLine]:
        found = []
        for place, said in enumerate(self.script.lines):
            if (said.place is LogPlace.NODE) is not is_node:
                continue
            for count in range(said.count):
                at = self.stage.onset + timedelta(seconds=20 + 7 * place + 45 * count)
                if window.start <= at <= window.end and self.stage.is_sick(at):
                    found.append(self._line(at, said.text, is_node=is_node, level="error"))
        return found

    def _line(self, at: datetime, text: str, *, is_node: bool, level: str) -> LogLine:
        labels = {"job": "systemd-journal"} if is_node else dict(self.stage.matchers)
        labels |= {"node": self.stage.sick_node, "level": level}
        if not is_node:
            labels.setdefault("service", self.stage.service)
        return LogLine(at_ns=round(at.timestamp() * 1e3) * 1_000_000, labels=labels, text=text)


@dataclass(frozen=True, slots=True)
class PlayedChanges:
    """The change log of an exercise."""

    changes: tuple[Change, ...]

    async def between(self, start: datetime, end: datetime) -> Sequence[Change]:
        """What was changed in that time."""
        return [item for item in self.changes if start <= item.at <= end]


@dataclass(frozen=True, slots=True)
class PlayedProbes:
    """Nodes that answer by the script: the sick one with its findings, all else clean."""

    script: Script
    stage: Stage
    catalogue: Catalogue
    clock: Callable[[], datetime]

    async def run(
        self,
        node: str,
        probe: str,
        args: Mapping[str, Any],
        *,
        subject: str,
        timeout_seconds: float,
        approved_by: str | None = None,
    ) -> ProbeResult:
        """One run; a heavy probe needs its approval here too."""
        del args, subject, timeout_seconds
        now = self.clock()
        if (denied := refused(node, probe, now, approved_by)) is not None:
            return denied
        good = clean_finding(self.catalogue, probe)
        if good is None or node not in self.stage.nodes:
            return not_played(node, probe, now)
        is_hit = not self.script.is_local or node == self.stage.sick_node
        found = [good]
        if is_hit and self.stage.is_sick(now) and probe in self.script.findings:
            found = [
                Finding(id=item.id, severity=FindingSeverity.WARNING, summary=item.summary)
                for item in self.script.findings[probe]
            ]
        return probe_result(node, probe, now, findings=found)
