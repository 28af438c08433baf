"""Asks every source at once, under one deadline; what does not answer becomes a gap with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from bot.cause import Movement, Signal, SymptomKind
from bot.diagnosis.collect_events import collect_events
from bot.diagnosis.collect_logs import collect_logs
from bot.diagnosis.collect_metrics import Progress, find_resolution, read_metrics
from bot.diagnosis.collected import DECLARED, Collected
from bot.diagnosis.plan import is_heavy, probes_for, signals_needed
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.diagnosis.time_lost import first_layer, in_order
from bot.diagnosis.wording import gap_of
from bot.domain.evidence import NOT_CONFIGURED, EvidenceSource, Gap, SourceState
from bot.domain.finding import ProbeStatus
from bot.domain.hypothesis import Layer
from bot.domain.instant import Window
from bot.errors import BotError, EvidenceError, Reason

T = TypeVar("T")

_TRACE_SLICES = 12
_TRACES_PER_SLICE = 12
"""Traces are sampled evenly over the window: so many slices, and so many of each.

Basis: judgement; enough for the middle and the tail of every operation.
"""

_PROBE_SECONDS = 6.0
"""What a probe may take of the eight seconds of a collection; the longest moderate one samples for four."""

_WINDOW_SHARE = 0.3
"""Share of the deadline that logs and traces wait to learn how far back there is anything to read."""

_FIRST_LOOK_SHARE = 0.12
"""Share of the deadline that probes wait for metrics and traces to tell where the time is lost; a second of eight."""


async def collect(request: DiagnosisRequest, ports: DiagnosisPorts) -> Collected:
    """Reads all sources; never raises for one that is down, late or empty."""
    service = ports.service(request.service)
    nodes = service.nodes
    progress = Progress(window=Window.before(request.at, 1.5 * request.window_seconds))
    found_window = asyncio.Event()
    told = {"metrics": asyncio.Event(), "traces": asyncio.Event()}
    seconds = request.deadline_seconds
    declared = declared_signals(request)

    async def metrics() -> None:
        try:
            if ports.metrics is not None:
                await find_resolution(ports.metrics, request, ports, progress)
        finally:
            found_window.set()
        if ports.metrics is not None:
            asked = (*signals_needed(ports.catalogue), *declared.values())
            await read_metrics(ports.metrics, request, ports, progress, asked)

    async def logs() -> None:
        await _wait([found_window], _WINDOW_SHARE * seconds)
        if ports.logs is not None:
            await collect_logs(
                ports.logs, service, nodes, ports.catalogue, progress.window, progress.logs,
                pods_only=progress.pods_only and not service.selectors, timeout_seconds=seconds,
            )  # fmt: skip
            progress.answered.add("logs")

    async def traces() -> None:
        await _wait([found_window], _WINDOW_SHARE * seconds)
        await _traces(request, ports, progress)

    async def events() -> None:
        await collect_events(request, ports, progress)

    async def probes() -> None:
        await _wait(told.values(), _FIRST_LOOK_SHARE * seconds)
        so_far = _finished(request, nodes, progress, set(), set())
        await _probes(request, ports, nodes, progress, first_layer(so_far, ports.catalogue))

    jobs = {
        "metrics": (EvidenceSource.METRICS, metrics, ports.metrics),
        "logs": (EvidenceSource.LOGS, logs, ports.logs),
        "traces": (EvidenceSource.TRACES, traces, ports.traces),
        "events": (EvidenceSource.EVENTS, events, ports.changes),
        "probes": (EvidenceSource.PROBE, probes, ports.probes),
    }
    down: set[str] = set()

    async def one(name: str) -> None:
        source, job, port = jobs[name]
        try:
            await _within(name, source, job, port, seconds, progress, down)
        finally:
            if name in told:
                told[name].set()

    await asyncio.gather(*(one(name) for name in jobs))
    progress.gaps.extend(progress.logs.gaps)
    if progress.logs.is_down:
        down.add("logs")
    absent = set(jobs) - _configured(ports)
    return replace(_finished(request, nodes, progress, down, absent), declared=declared)


async def collect_symptoms(request: DiagnosisRequest, ports: DiagnosisPorts) -> Collected:
    """Reads only what shows symptoms: for a chart, or to see whether one is gone.

    Raises:
        EvidenceError: the metrics source did not answer.
    """
    progress = Progress(window=Window.before(request.at, 1.5 * request.window_seconds))
    declared = declared_signals(request)
    source = ports.metrics
    if source is None:
        raise EvidenceError(
            "metrics: no source is configured; set PROMETHEUS_URL", reason=Reason.UNSUPPORTED
        )
    shown = [item for item in ports.catalogue.signals.values() if item.symptom is not None]
    try:
        async with asyncio.timeout(request.deadline_seconds):
            await find_resolution(source, request, ports, progress)
            await read_metrics(source, request, ports, progress, [*shown, *declared.values()])
    except TimeoutError as error:
        raise EvidenceError(
            f"metrics: not finished within {request.deadline_seconds:g} s; ask for a shorter window",
            reason=Reason.TIMEOUT,
        ) from error
    nodes = ports.service(request.service).nodes
    return replace(_finished(request, nodes, progress, set(), set()), declared=declared)


def declared_signals(request: DiagnosisRequest) -> dict[str, Signal]:
    """The metrics that people named as symptoms, as signals that may move either way."""
    return {
        f"{DECLARED}{symptom.id}": Signal(
            name=f"{DECLARED}{symptom.id}",
            title=symptom.summary,
            layer=Layer.APPLICATION,
            unit="",
            queries=(symptom.metric,),
            ratio=1.3,
            symptom=SymptomKind.LATENCY,
            direction=Movement.CHANGED,
        )
        for symptom in request.symptoms
        if symptom.metric
    }


async def _wait(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Waits for what other sources tell, `seconds` at most: one that hangs must not take the others along."""
    try:
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
    except TimeoutError:
        return


async def _within(
    name: str,
    source: EvidenceSource,
    job: Callable[[], Awaitable[None]],
    port: object,
    seconds: float,
    progress: Progress,
    down: set[str],
) -> None:
    if port is None:
        progress.gaps.append(
            Gap(
                source=source, plugin=name, query="", reason=NOT_CONFIGURED, detail="not configured",
            )
        )  # fmt: skip
        if name != "metrics":
            return
    try:
        async with asyncio.timeout(seconds):
            await job()
    except TimeoutError:
        progress.gaps.append(
            Gap(
                source=source, plugin=name, query="", reason=Reason.TIMEOUT.value,
                detail=f"not finished within {seconds:g} s; what had arrived is used",
            )
        )  # fmt: skip
        if name not in progress.answered:
            down.add(name)
    except BotError as error:
        progress.gaps.append(
            Gap(source=source, plugin=name, query="", reason=error.reason.value, detail=str(error))
        )
        down.add(name)


async def _traces(request: DiagnosisRequest, ports: DiagnosisPorts, progress: Progress) -> None:
    source = ports.traces
    if source is None:
        return
    # Slices, since a server gives the newest traces first and those before the onset would never come.
    start, length = progress.window.start, progress.window.seconds / _TRACE_SLICES
    windows = [
        Window(start + timedelta(seconds=at * length), start + timedelta(seconds=(at + 1) * length))
        for at in range(_TRACE_SLICES)
    ]
    answers = await asyncio.gather(
        *(
            source.spans(
                request.service, window, limit=_TRACES_PER_SLICE,
                timeout_seconds=request.deadline_seconds,
            )
            for window in windows
        )
    )  # fmt: skip
    seen: set[tuple[str, str]] = set()
    for answer in answers:
        progress.gaps.extend(
            Gap(
                source=EvidenceSource.TRACES, plugin="traces", query=answer.query,
                reason=Reason.NOT_FOUND.value, detail=note,
            )
            for note in answer.partial
        )  # fmt: skip
        for span in answer.items:
            if (span.trace_id, span.span_id) not in seen:
                seen.add((span.trace_id, span.span_id))
                progress.spans.append(span)
    progress.answered.add("traces")


async def _probes(
    request: DiagnosisRequest,
    ports: DiagnosisPorts,
    nodes: tuple[str, ...],
    progress: Progress,
    first: Layer | None,
) -> None:
    """Runs every affordable probe on every node; those of the layer `first` are begun before any other."""
    runner = ports.probes
    if runner is None:
        return
    heavy = request.allow_heavy and request.approver is not None

    async def one(node: str, probe: str, args: dict[str, object]) -> None:
        result = await runner.run(
            node,
            probe,
            args,
            subject=request.subject,
            timeout_seconds=min(_PROBE_SECONDS, request.deadline_seconds),
            approved_by=request.approver if is_heavy(probe) else None,
        )
        progress.probes.append(result)

    affordable = dict(probes_for(ports.catalogue, request.service, heavy=heavy))
    await asyncio.gather(
        *(
            one(node, probe, dict(affordable[probe]))
            for probe in in_order(affordable, first, ports.catalogue)
            for node in nodes
        )
    )
    progress.answered.add("probes")


def _configured(ports: DiagnosisPorts) -> set[str]:
    doors = {
        "metrics": ports.metrics, "logs": ports.logs, "traces": ports.traces,
        "events": ports.changes, "probes": ports.probes,
    }  # fmt: skip
    return {name for name, door in doors.items() if door is not None}


def _finished(
    request: DiagnosisRequest,
    nodes: tuple[str, ...],
    progress: Progress,
    down: set[str],
    absent: set[str],
) -> Collected:
    looked = [result for result in progress.probes if result.status is ProbeStatus.OK]
    found = {
        "metrics": bool(progress.now),
        "logs": bool(progress.logs.service_lines or progress.logs.node_lines),
        "traces": bool(progress.spans),
        "events": bool(progress.changes),
        "probes": bool(looked),
    }
    unreachable = down | absent
    if (
        progress.probes
        and not looked
        and all(
            result.status in (ProbeStatus.ERROR, ProbeStatus.TIMEOUT) for result in progress.probes
        )
    ):
        unreachable.add("probes")
    states = {
        name: SourceState.OK
        if found[name]
        else SourceState.UNREACHABLE
        if name in unreachable
        else SourceState.EMPTY
        for name in found
    }
    gaps = [
        *progress.gaps,
        *(
            Gap(
                source=EvidenceSource.PROBE, plugin=result.probe, query=result.probe,
                reason=gap_of(result), detail=result.error or result.status.value,
                node=result.node,
            )
            for result in progress.probes
            if result.status is not ProbeStatus.OK
        ),
    ]  # fmt: skip
    return Collected(
        request=request,
        nodes=nodes,
        window=progress.window,
        resolution_seconds=progress.resolution,
        rate_seconds=progress.rate,
        now=dict(sorted({**progress.now, **progress.logs.volumes}.items())),
        history={name: tuple(found) for name, found in sorted(progress.history.items())},
        trends=dict(sorted(progress.trends.items())),
        service_lines=tuple(progress.logs.service_lines),
        node_lines=tuple(progress.logs.node_lines),
        old_lines=tuple(progress.logs.old_lines),
        log_window=progress.logs.window,
        spans=tuple(
            sorted(progress.spans, key=lambda span: (span.start_us, span.trace_id, span.span_id))
        ),
        changes=tuple(progress.changes),
        probes=tuple(sorted(progress.probes, key=lambda result: (result.node, result.probe))),
        states=states,
        gaps=tuple(
            sorted(gaps, key=lambda gap: (gap.source.value, gap.plugin, gap.node or "", gap.query))
        ),
    )
