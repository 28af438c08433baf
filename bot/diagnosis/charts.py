"""What the charts of an incident show; drawing them is the report's business."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from bot.cause import EPOCH, Catalogue, SymptomKind
from bot.diagnosis.collect import collect_symptoms
from bot.diagnosis.collected import DECLARED, Collected
from bot.diagnosis.facts import Facts, establish
from bot.diagnosis.observation import Observation
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.diagnosis.symptoms import shows
from bot.diagnosis.wording import evidence_of
from bot.domain.evidence import ChartMark, ChartPanel, ChartSpec, Series
from bot.domain.hypothesis import NOT_ESTABLISHED, Diagnosis
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.errors import EvidenceError, Reason
from bot.locales import say

_LEADING = 3
_LEAST_SHARE = 0.1
_MOST_PANELS = 5
_MOST_SYMPTOMS = 3
_MOST_POINTS = 720
_MOST_SERIES = 12
"""What one chart holds and still can be read on a phone; points are three hours at 15 s. Basis: judgement."""


async def symptom_chart(
    request: DiagnosisRequest, ports: DiagnosisPorts, marks: Sequence[ChartMark] = ()
) -> ChartSpec | None:
    """The symptom at the opening; the usual latency where none is seen yet; None where no metric answers.

    Raises:
        EvidenceError: the metrics source did not answer.
    """
    collected = await collect_symptoms(request, ports)
    facts = establish(collected, ports.catalogue)
    panels = _symptom_panels(facts)
    if not panels:
        return None
    return ChartSpec(
        id="symptom",
        title=say("diagnosis.chart.symptom", service=request.service),
        window=collected.window,
        panels=panels,
        marks=tuple(marks),
        onset=_onset(facts),
        notes=_notes(collected, panels),
    )


async def recovery_chart(
    request: DiagnosisRequest,
    ports: DiagnosisPorts,
    *,
    fixed_at: datetime,
    marks: Sequence[ChartMark] = (),
) -> ChartSpec | None:
    """The symptom before and after the fix on one axis; None where no metric answers.

    Raises:
        EvidenceError: the metrics source did not answer.
    """
    collected = await collect_symptoms(request, ports)
    facts = establish(collected, ports.catalogue)
    panels = _symptom_panels(facts)
    if not panels:
        return None
    fix = ChartMark(at=fixed_at, label=say("diagnosis.chart.fix"), kind="fix")
    return ChartSpec(
        id="recovery",
        title=say("diagnosis.chart.recovery", service=request.service),
        window=collected.window,
        panels=panels,
        marks=(*marks, fix),
        onset=_onset(facts),
        notes=_notes(collected, panels),
    )


async def query_chart(
    query: str,
    request: DiagnosisRequest,
    ports: DiagnosisPorts,
    marks: Sequence[ChartMark] = (),
) -> ChartSpec | None:
    """Any PromQL over the request's window; None when it answers nothing.

    Raises:
        EvidenceError: no metrics source, it did not answer, or the query is not understood.
    """
    if ports.metrics is None:
        raise EvidenceError(
            "metrics: no source is configured; set PROMETHEUS_URL", reason=Reason.UNSUPPORTED
        )
    window = Window.before(request.at, request.window_seconds)
    answer = await ports.metrics.range(
        query,
        window,
        step_seconds=max(1.0, round(window.seconds / _MOST_POINTS)),
        timeout_seconds=request.deadline_seconds,
    )
    if not answer.items:
        return None
    step = answer.items[0].step_seconds
    title = Localized.verbatim(query)
    return ChartSpec(
        id="query",
        title=title,
        window=window,
        panels=(
            ChartPanel(title=title, unit="", series=answer.items[:_MOST_SERIES], query=query, source="metrics"),
        ),
        marks=tuple(marks),
        notes=(
            say("diagnosis.chart.step", seconds=f"{step:g}"),
            *(say("diagnosis.chart.partial", detail=note) for note in answer.partial),
        ),
    )  # fmt: skip


def deciding_charts(
    collected: Collected,
    diagnosis: Diagnosis,
    catalogue: Catalogue,
    marks: Sequence[ChartMark] = (),
) -> tuple[ChartSpec, ...]:
    """One chart for each leading hypothesis: the symptom above its deciding evidence, on one time axis.

    Peers of the odd one out are drawn beside it; suspected changes are marked.
    """
    facts = establish(collected, catalogue)
    evidence = {
        evidence_of(item, abnormal=flag).id: item
        for observations in facts.observations.values()
        for item in observations
        for flag in (True, False)
        if item.series is not None
    }
    charts: list[ChartSpec] = []
    for hypothesis in diagnosis.hypotheses[:_LEADING]:
        if hypothesis.cause == NOT_ESTABLISHED or hypothesis.probability < _LEAST_SHARE:
            continue
        shown: dict[str, ChartPanel] = {panel.query: panel for panel in _symptom_panels(facts)[:1]}
        for reason in sorted(hypothesis.supports, key=lambda item: -item.weight):
            found = evidence.get(reason.ref)
            if found is not None and found.query not in shown and len(shown) < _MOST_PANELS:
                shown[found.query] = _panel(found, _peers(facts, found))
        if len(shown) < 2:
            continue
        trigger = hypothesis.trigger.change if hypothesis.trigger else None
        changes = [
            ChartMark(at=change.at, label=Localized.verbatim(change.summary[:40]), kind="change")
            for change in collected.changes
            if change.id == trigger and change.at >= collected.window.start
        ]
        panels = tuple(shown.values())
        charts.append(
            ChartSpec(
                id=f"hypothesis-{hypothesis.cause}",
                title=say("diagnosis.chart.hypothesis", title=hypothesis.title),
                window=collected.window,
                panels=panels,
                marks=(*marks, *changes),
                onset=_onset(facts),
                notes=_notes(collected, panels),
            )
        )
    return tuple(charts)


def _symptom_panels(facts: Facts) -> tuple[ChartPanel, ...]:
    sighted = [item.observation for item in facts.incident.sightings if item.observation]
    # Mean and tail of the same symptom belong side by side; what single nodes see is left to the evidence.
    sighted += [
        item
        for items in facts.observations.values()
        for item in items
        if item.signal.symptom in facts.incident.kinds and not item.entity.node and shows(item)
    ]
    if not sighted:
        # Nothing deviates (yet): what users feel first, latency, so that people see how calm it is.
        calm = [
            item
            for name, items in facts.observations.items()
            for item in items
            if item.signal.symptom is not None and not name.startswith(DECLARED)
        ]
        sighted = sorted(calm, key=lambda item: item.signal.symptom is not SymptomKind.LATENCY)[:1]
    unique = {item.query: item for item in reversed(sighted)}
    panels = tuple(_panel(item, _peers(facts, item)) for item in reversed(unique.values()))
    return panels[:_MOST_SYMPTOMS]


def _peers(facts: Facts, observation: Observation) -> tuple[Series, ...]:
    own = observation.series
    others = [
        item.series
        for item in facts.observations.get(observation.signal.name, ())
        if item.series is not None and item.series is not own
    ]
    return tuple(others[:5])


def _panel(observation: Observation, peers: tuple[Series, ...]) -> ChartPanel:
    before = observation.before
    own = (observation.series,) if observation.series is not None else ()
    if observation.signal.unit == EPOCH:
        return ChartPanel(
            title=say("diagnosis.chart.age", signal=observation.signal.title),
            unit="s",
            series=tuple(map(_age, (*own, *peers))),
            query=observation.query,
            source=observation.source,
            evidence_id=evidence_of(observation, abnormal=True).id,
        )
    margin = max(before.sigma * 3, abs(before.middle) * 0.05) if before else 0.0
    signal = observation.signal
    threshold = None
    if before is not None:
        step = signal.ratio if signal.ratio >= 1 else 1 / signal.ratio
        middle = before.middle
        up = max(middle * step, middle + signal.floor)
        down = min(middle / step, middle - signal.floor)
        threshold = down if signal.ratio < 1 else up
    return ChartPanel(
        title=signal.title,
        unit=signal.unit,
        series=tuple(replace(one, unit=signal.unit) for one in (*own, *peers)),
        query=observation.query,
        source=observation.source,
        baseline_low=max(before.middle - margin, min(before.least, before.middle))
        if before
        else None,
        baseline_high=before.middle + margin if before else None,
        threshold=threshold,
        evidence_id=evidence_of(observation, abnormal=True).id,
    )


def _age(series: Series) -> Series:
    """How long ago a moment was at each sample: years on an axis would hide the hour that matters."""
    return replace(
        series,
        unit="s",
        samples=tuple(
            replace(sample, value=sample.at.timestamp() - sample.value)
            if sample.value is not None
            else sample
            for sample in series.samples
        ),
    )


def _onset(facts: Facts) -> Window | None:
    if not facts.incident.is_seen:
        return None
    return Window(facts.incident.earliest, facts.incident.window.start)


def _notes(collected: Collected, panels: Sequence[ChartPanel]) -> tuple[Localized, ...]:
    steps = sorted({one.step_seconds for panel in panels for one in panel.series})
    queries = {panel.query for panel in panels}
    partial = sorted(
        {
            note
            for reading in collected.now.values()
            if reading.query in queries
            for note in reading.partial
        }
    )
    return (
        *(say("diagnosis.chart.step", seconds=f"{step:g}") for step in steps[:1]),
        *(say("diagnosis.chart.partial", detail=note) for note in partial),
    )
