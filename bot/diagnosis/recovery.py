"""Whether the symptom is gone: still there, back at its usual level, or not to be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.cause import Movement, SymptomKind
from bot.diagnosis.collect import collect_symptoms
from bot.diagnosis.collected import Collected
from bot.diagnosis.observation import Observation, observe
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.diagnosis.symptoms import find_incident, shows
from bot.diagnosis.wording import evidence_of, quantity
from bot.domain.evidence import Evidence
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.errors import EvidenceError
from bot.locales import say

_BACK = 0.3
"""Share of the way from usual to worst within which a level counts as back. Basis: judgement."""

_MOST_CITED = 5


class SymptomState(StrEnum):
    """The three answers; unknown is never cleared."""

    FOUND = "found"
    CLEARED = "cleared"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomCheck:
    """The answer with its sentence and what it rests on."""

    state: SymptomState
    summary: Localized
    evidence: tuple[Evidence, ...] = ()


async def check_symptom(
    request: DiagnosisRequest,
    since: datetime,
    ports: DiagnosisPorts,
    *,
    onset: datetime | None = None,
) -> SymptomCheck:
    """Compares the time since a fix with the time before the onset; never raises for a source that is down.

    onset: when the symptom began; found from the series itself when it is not given.
    """
    try:
        collected = await collect_symptoms(request, ports)
    except EvidenceError as error:
        return _unknown(Localized.verbatim(str(error)))
    return judge_recovery(collected, ports, since, onset=onset)


def judge_recovery(
    collected: Collected, ports: DiagnosisPorts, since: datetime, *, onset: datetime | None
) -> SymptomCheck:
    """The judgement alone: pure."""
    incident = find_incident(collected, ports.catalogue)
    began = onset or (incident.window.start if incident.is_seen else None)
    if began is None or began >= since:
        began = min(since, incident.window.start)
    still: list[Observation] = []
    cleared: list[tuple[Observation, Observation]] = []
    few = False
    for name, reading in collected.now.items():
        signal = collected.signal(name, ports.catalogue)
        if signal is None or signal.symptom is None:
            continue
        for series in reading.series:
            sick, now = (
                observe(
                    signal, series, query=reading.query, source="metrics", window=reading.window,
                    incident=window, settle_seconds=collected.rate_seconds, partial=reading.partial,
                )
                for window in (Window(began, since), Window(since, collected.request.at))
            )  # fmt: skip
            now = _against(now, sick)
            if not shows(sick) and not shows(now):
                continue
            if now.during is None or now.before is None:
                few = True
            elif _is_back(sick, now):
                cleared.append((sick, now))
            else:
                still.append(now)
    if still:
        return _check(SymptomState.FOUND, [max(still, key=lambda item: abs(item.deviation))])
    if few or (collected.request.at - since) < timedelta(seconds=2 * collected.rate_seconds):
        return _unknown(say("diagnosis.symptom_check.too_few"))
    if cleared:
        # What users feel is told first, and of that what was worst; the others are cited beside it.
        cleared.sort(key=lambda pair: (_rank(pair[0]), -abs(pair[0].deviation)))
        return _check(SymptomState.CLEARED, [now for _, now in cleared[:_MOST_CITED]])
    return _unknown(say("diagnosis.symptom_check.no_metric"))


def _rank(item: Observation) -> int:
    kinds = list(SymptomKind)
    return kinds.index(item.signal.symptom) if item.signal.symptom else len(kinds)


def _against(now: Observation, sick: Observation) -> Observation:
    """The time since the fix, measured against the time before the onset instead of the incident itself."""
    return Observation(
        signal=now.signal,
        entity=now.entity,
        query=now.query,
        source=now.source,
        window=now.window,
        samples=now.samples,
        before=sick.before,
        during=now.during,
        onset=None,
        series=now.series,
    )


def _is_back(sick: Observation, now: Observation) -> bool:
    if not shows(now):
        return True
    if now.moved() is Movement.FLAT:
        return True
    return sick.delta != 0 and abs(now.delta) <= _BACK * abs(sick.delta)


def _check(state: SymptomState, items: Sequence[Observation]) -> SymptomCheck:
    item = items[0]
    unit = item.signal.unit
    return SymptomCheck(
        state=state,
        summary=say(
            f"diagnosis.symptom_check.{state.value}",
            signal=item.signal.title,
            now=quantity(item.during.middle, unit) if item.during else "-",
            usual=quantity(item.before.middle, unit) if item.before else "-",
        ),
        evidence=tuple(evidence_of(one, abnormal=state is SymptomState.FOUND) for one in items),
    )


def _unknown(why: Localized) -> SymptomCheck:
    return SymptomCheck(
        state=SymptomState.UNKNOWN, summary=say("diagnosis.symptom_check.unknown", why=why)
    )
