"""What went wrong and since when: the lasting deviations that people can see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.cause import Catalogue, Movement, Signal, SymptomKind
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.newcomers import find_newcomers
from bot.diagnosis.observation import (
    Observation,
    entity_of,
    find_shift,
    is_log_signal,
    observe,
    points,
    zero_filled,
)
from bot.diagnosis.tracing import silent_since, trace_paths
from bot.diagnosis.wording import describe, describe_beside, describe_standing, evidence_of
from bot.domain.evidence import Evidence
from bot.domain.hypothesis import Symptom
from bot.domain.instant import Window
from bot.locales import say

_LASTING_RATE, _LASTING_STEPS = 120.0, 2
"""What a deviation of a rate must last beyond its window: two minutes and two scrapes; a shorter one is a blip.

Basis: the rate itself smears a blip over one window; two minutes are a judgement.
"""

_LASTING_LEVEL, _LASTING_SCRAPES = 300.0, 6
"""The same for what is no rate: five minutes and six scrapes. Basis: judgement."""

_STANDING = 1.6
"""How many times the better of two other days a level must be to count as wrong all along. Basis: judgement."""

_WITHOUT_SYMPTOM = 0.25
"""Share of the window that stands for the incident when nothing deviates. Basis: judgement; a quarter of an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One symptom with the observation that shows it."""

    kind: SymptomKind
    symptom: Symptom
    observation: Observation | None

    @property
    def evidence(self) -> Evidence | None:
        """The citation, in the symptom's own words; None where no series shows it."""
        if self.observation is None:
            return None
        return replace(evidence_of(self.observation, abnormal=True), summary=self.symptom.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """When it was: `window` runs from the onset to its end or to the moment that was asked about.

    earliest: the onset is not before this.
    is_seen: False when nothing that people notice deviates lastingly.
    is_over: True when the level had come back by the moment that was asked about.
    is_standing: True when it has been so for longer than the window, in which nothing shows the time before.
    """

    window: Window
    earliest: datetime
    is_seen: bool
    is_over: bool
    sightings: tuple[Sighting, ...]
    is_standing: bool = False

    @property
    def kinds(self) -> frozenset[SymptomKind]:
        """The kinds of the symptoms seen."""
        return frozenset(sighting.kind for sighting in self.sightings)


def find_incident(collected: Collected, catalogue: Catalogue) -> Incident:
    """Looks for lasting, unusual deviations of everything that counts as a symptom."""
    at = collected.request.at
    found: list[tuple[float, Observation, Signal, datetime, datetime | None]] = []
    for name, reading in collected.now.items():
        signal = collected.signal(name, catalogue)
        if signal is None or signal.symptom is None:
            continue
        for raw in reading.series:
            series = zero_filled(raw, reading.window) if is_log_signal(signal) else raw
            values = points(series)
            shift = find_shift(values)
            if shift is None:
                continue
            span = Window(shift.onset, shift.end or at)
            if span.seconds < _lasting(collected, reading.query):
                continue
            observation = observe(
                signal, series, query=reading.query, source="metrics", window=reading.window,
                incident=span, settle_seconds=collected.rate_seconds, partial=reading.partial,
                beyond=reading.beyond,
            )  # fmt: skip
            if not shows(observation) or _is_usual(observation, collected, name):
                continue
            found.append(
                (abs(observation.deviation), observation, signal, shift.earliest, shift.end)
            )
    # What still goes on is the incident; what passed before is at most its forerunner.
    found.sort(
        key=lambda item: (
            item[4] is not None, _rank(item[1]), -item[0], item[2].name, item[1].entity,
        )
    )  # fmt: skip
    if not found:
        return _without_onset(collected, catalogue)
    # The onset is that of the symptom that moved most among those of the first rank.
    _, lead, _, earliest, end = found[0]
    start = lead.onset.end if lead.onset else earliest
    sightings: dict[SymptomKind, Sighting] = {}
    for _, observation, signal, _, finish in found:
        kind = signal.symptom
        if finish is not None and finish <= start:
            continue
        if kind is not None and kind not in sightings:
            sightings[kind] = Sighting(
                kind=kind,
                observation=observation,
                symptom=Symptom(
                    id=kind.value,
                    summary=describe(observation),
                    since=observation.onset.end if observation.onset else None,
                    metric=observation.query,
                ),
            )
    return Incident(
        window=Window(start, end or at),
        earliest=lead.onset.start if lead.onset else earliest,
        is_seen=True,
        is_over=end is not None,
        sightings=tuple(sightings.values()),
    )


def _lasting(collected: Collected, query: str) -> float:
    """Seconds that a deviation must last: a rate is smeared by its window, a level or a recorded value is not."""
    smeared = collected.rate_seconds + max(
        _LASTING_RATE, _LASTING_STEPS * collected.resolution_seconds
    )
    if "rate(" in query:
        return smeared
    return min(smeared, max(_LASTING_LEVEL, _LASTING_SCRAPES * collected.resolution_seconds))


def _without_onset(collected: Collected, catalogue: Catalogue) -> Incident:
    """Nothing changed in the window: either all is well, or it has been wrong for longer than the window.

    The latter shows against the same hour of other days, when both are there and one of them was clearly better.
    """
    at = collected.request.at
    start = at - timedelta(seconds=collected.window.seconds * _WITHOUT_SYMPTOM)
    window = Window(start, at)
    sightings: list[Sighting] = []
    for name, reading in collected.now.items():
        signal = collected.signal(name, catalogue)
        if signal is None or signal.symptom is None or not signal.seasonal:
            continue
        for series in reading.series:
            observation = observe(
                signal, series, query=reading.query, source="metrics", window=reading.window,
                incident=window, settle_seconds=collected.rate_seconds, partial=reading.partial,
                beyond=reading.beyond,
            )  # fmt: skip
            usual = usual_range(collected.history.get(name, ()), observation)
            if _stands_apart(observation, usual):
                symptom = Symptom(
                    id=signal.symptom.value,
                    summary=describe_standing(observation, usual or (0.0, 0.0)),
                    metric=observation.query,
                )
                sightings.append(
                    Sighting(kind=signal.symptom, symptom=symptom, observation=observation)
                )
    if not sightings and (young := _new_parts(collected, catalogue)):
        return young
    if not sightings and (silent := _no_traces(collected)):
        return silent
    unique = {sighting.kind: sighting for sighting in reversed(sightings)}
    return Incident(
        window=window,
        earliest=start,
        is_seen=bool(unique),
        is_over=False,
        sightings=tuple(unique[kind] for kind in sorted(unique)),
        is_standing=bool(unique),
    )


def _new_parts(collected: Collected, catalogue: Catalogue) -> Incident | None:
    """New parts of the service, such as a pool that was just added, that do worse than all others."""
    found = find_newcomers(collected, catalogue)
    if not found:
        return None
    sightings: dict[SymptomKind, Sighting] = {}
    for newcomer in found:
        kind = newcomer.observation.signal.symptom
        if kind is not None and kind not in sightings:
            symptom = Symptom(
                id=kind.value,
                summary=describe_beside(newcomer.observation, newcomer.peers),
                since=newcomer.since,
                metric=newcomer.observation.query,
            )
            sightings[kind] = Sighting(kind=kind, symptom=symptom, observation=newcomer.observation)
    return Incident(
        window=Window(found[0].since, collected.request.at),
        earliest=found[0].earliest,
        is_seen=True,
        is_over=False,
        sightings=tuple(sightings.values()),
    )


def _no_traces(collected: Collected) -> Incident | None:
    """Traces that stopped coming while nothing else went wrong, for sites whose collector is not scraped."""
    last = silent_since(
        trace_paths(collected.spans, collected.request.service), collected.request.at
    )
    if last is None:
        return None
    symptom = Symptom(
        id=SymptomKind.TRACES_MISSING.value,
        summary=say("diagnosis.observation.traces_stopped", since=f"{last:%H:%M:%S}Z"),
        since=last,
    )
    return Incident(
        window=Window(last, collected.request.at),
        earliest=last,
        is_seen=True,
        is_over=False,
        sightings=(Sighting(kind=SymptomKind.TRACES_MISSING, symptom=symptom, observation=None),),
    )


def _stands_apart(observation: Observation, usual: tuple[float, float] | None) -> bool:
    if usual is None or observation.during is None:
        return False
    now, (low, high) = observation.during.middle, usual
    if observation.signal.direction is Movement.DOWN:
        return now <= high / _STANDING and high - now >= observation.signal.floor
    return now >= low * _STANDING and now - low >= observation.signal.floor


def shows(observation: Observation) -> bool:
    """Whether the signal moved in the direction that is a symptom of it."""
    moved = observation.moved()
    if observation.signal.direction is Movement.STOPPED:
        return observation.has_stopped() is True
    if observation.signal.direction is Movement.CHANGED:
        return moved in (Movement.UP, Movement.DOWN)
    return moved is observation.signal.direction


def _rank(observation: Observation) -> int:
    """What all callers see comes first, then what one node sees; an idle GPU alone hurts nobody."""
    if observation.signal.symptom in (SymptomKind.GPU_IDLE, SymptomKind.THROUGHPUT):
        return 2
    return 1 if observation.entity.node else 0


def _is_usual(observation: Observation, collected: Collected, name: str) -> bool:
    usual = usual_range(collected.history.get(name, ()), observation)
    if usual is None or observation.during is None:
        return False
    low, high = usual
    value = observation.during.middle
    if observation.signal.direction is Movement.DOWN:
        return value >= low * 0.9
    return value <= high * 1.1


def usual_range(
    readings: tuple[Reading, ...], observation: Observation
) -> tuple[float, float] | None:
    """Least and most of the medians of the same entity on other days."""
    levels: list[float] = []
    for reading in readings:
        for series in reading.series:
            values = sorted(value for _, value in points(series))
            if values and entity_of(series) == observation.entity:
                levels.append(values[len(values) // 2])
    return (min(levels), max(levels)) if levels else None
