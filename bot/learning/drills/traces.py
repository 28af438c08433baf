"""The traces of an exercise: one request every quarter minute, whose phases take what the script says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.diagnosis.tracing import phase_of
from bot.domain.instant import Window
from bot.learning.drills.calm import LEVELS
from bot.learning.drills.script import Course, Script, Stage
from bot.learning.drills.tracks import curve
from bot.source import Answer, Span

EVERY_SECONDS = 15
CALLER = "gateway"
_OPERATIONS = ("tokenize", "wait for a slot", "copy_to_device", "forward")
_METRIC_OF: Mapping[str, str] = {
    "trace.frontend": "phase.frontend",
    "trace.queue": "phase.queue",
    "trace.h2d": "phase.h2d",
    "trace.compute": "phase.compute",
    "trace.peer": "peer.latency",
}
"""What a phase is where the script moves the metric and not the trace: both tell of the same requests."""


@dataclass(frozen=True, slots=True)
class PlayedTraces:
    """Whole traces: the caller, the service with its phases, and the dependency that it waits for."""

    script: Script
    stage: Stage

    async def spans(
        self, service: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[Span]:
        """Up to `limit` traces that began in the window; none while spans do not arrive."""
        del timeout_seconds
        found: list[Span] = []
        if service == self.stage.service:
            for at in list(_moments(window))[-limit:]:
                if not self._is_silent(at):
                    found += self._trace(at)
        return Answer(items=tuple(found), query=f"traces of {service}", window=window)

    def _is_silent(self, at: datetime) -> bool:
        received = self.script.courses.get("spans.received")
        return received is not None and received.sick == 0 and self.stage.is_sick(at)

    def _seconds(self, name: str, at: datetime) -> float:
        usual = LEVELS[name]
        course = self.script.courses.get(name)
        known = self.script.courses.get(_METRIC_OF.get(name, ""))
        if course is None and known is not None and known.usual > 0:
            course = Course(usual=usual, sick=usual * known.sick / known.usual, rises=known.rises)
        course = course or Course(usual=usual, sick=usual)
        return max(0.0, curve(name, course, self.stage, CALLER)(at) or 0.0)

    def _trace(self, at: datetime) -> Iterator[Span]:
        """Parent before child, one phase after the other; what no phase explains is the service's own."""
        start = round(at.timestamp()) * 1_000_000
        trace = f"{self.stage.seed % 0xFFFFFF:06x}{start:026x}"
        phases = [(name, self._seconds(f"trace.{phase_of(name)}", at)) for name in _OPERATIONS]
        peer = self._seconds("trace.peer", at)
        inside = sum(seconds for _, seconds in phases) + peer
        latency = self.script.courses.get("latency.server")
        if latency is not None and self.stage.is_sick(at):
            inside = max(inside, latency.sick)
        outside = self._seconds("trace.outside", at)

        def span(
            number: int,
            parent: int | None,
            name: str,
            begins: float,
            lasts: float,
            who: str,
            **tags: str,
        ) -> Span:
            return Span(
                trace_id=trace,
                span_id=f"{start:015x}{number}",
                parent=None if parent is None else f"{start:015x}{parent}",
                service=who,
                operation=name,
                start_us=start + round(begins * 1e6),
                duration_us=round(lasts * 1e6),
                tags=tags,
            )

        own, other = self.stage.service, self.stage.peers[0]
        yield span(0, None, "POST", 0.0, outside + inside, CALLER)
        yield span(1, 0, "handle", outside / 2, inside, own)
        clock = outside / 2
        for number, (name, seconds) in enumerate(phases, 2):
            yield span(number, 1, name, clock, seconds, own)
            clock += seconds
        yield span(7, 1, f"call {other}", clock, peer, own, **{"peer.service": other})
        yield span(8, 7, "answer", clock, peer * 0.9, other)


def _moments(window: Window) -> Iterator[datetime]:
    """Every quarter minute of the window, the same whatever the window."""
    first = -(-window.start.timestamp() // EVERY_SECONDS)
    last = window.end.timestamp() // EVERY_SECONDS
    for place in range(int(first), int(last) + 1):
        yield datetime.fromtimestamp(place * EVERY_SECONDS, UTC)
