"""The spans of one incident as evidence of components: which service behind the alerting one is at fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from bot.diagnosis.awaited import awaited, trace_key
from bot.diagnosis.components.evidence import (
    Aspect,
    ComponentEvidence,
    Gauge,
    RankedComponent,
    Track,
)
from bot.diagnosis.components.graph import DependencyGraph
from bot.diagnosis.components.ranking import rank_components
from bot.domain.instant import Window
from bot.source import Span

STEPS_DURING = 6
"""Steps into which the incident is cut; the time before it is cut into steps as long. Basis: judgement."""

_FEWEST_BEFORE, _FEWEST_DURING = 3, 3
_PEER_TAGS = ("peer.service", "net.peer.name", "server.address", "db.name")
_LEAST = 1.0
"""Log-odds that must speak for a component before it is named. Basis: judgement."""


def faulty_component(
    spans: Sequence[Span],
    service: str,
    depends_on: Iterable[str],
    incident: Window,
    *,
    failing: bool,
) -> RankedComponent | None:
    """The guiltiest component behind `service`, None when the traces name none or the service itself."""
    evidence = spans_as_evidence(
        spans, service, depends_on, incident, symptom=Aspect.FAILURES if failing else Aspect.LATENCY
    )
    if evidence is None:
        return None
    first = next(iter(rank_components(evidence)), None)
    if first is None or first.name == service or first.score < _LEAST:
        return None
    return first


def spans_as_evidence(
    spans: Sequence[Span],
    service: str,
    depends_on: Iterable[str],
    incident: Window,
    *,
    symptom: Aspect,
) -> ComponentEvidence | None:
    """Who calls whom, and how long and how well each answered, in equal steps; None with too few traces.

    A call to something that sends no spans of its own counts with the caller's span, by its peer's name. What nobody
    waits for delays and fails no request, so it does not count.
    """
    step = max(incident.seconds / STEPS_DURING, 1.0)
    start = incident.start.timestamp()
    calls: set[tuple[str, str]] = {(service, name) for name in depends_on}
    steps: dict[str, dict[int, list[tuple[float, bool]]]] = defaultdict(lambda: defaultdict(list))
    waited = awaited(spans)
    owners = {(trace_key(span), span.span_id): span.service for span in waited}
    answered = {(trace_key(span), span.parent) for span in waited if span.parent is not None}
    for span in waited:
        at = int((span.start_us / 1e6 - start) // step)
        if at >= STEPS_DURING:
            continue
        caller = owners.get((trace_key(span), span.parent)) if span.parent else None
        outcome = (span.duration_us / 1e6, _failed(span))
        if caller != span.service:
            if caller is not None:
                calls.add((caller, span.service))
            steps[span.service][at].append(outcome)
        peer = next((span.tags[tag] for tag in _PEER_TAGS if span.tags.get(tag)), None)
        if peer and peer != span.service and (trace_key(span), span.span_id) not in answered:
            calls.add((span.service, peer))
            steps[peer][at].append(outcome)
    first = min((at for by_step in steps.values() for at in by_step), default=0)
    if first > -_FEWEST_BEFORE or sum(at >= 0 for at in steps[service]) < _FEWEST_DURING:
        return None
    gauges = [
        gauge
        for name in sorted(steps)
        for gauge in _gauges(name, steps[name], range(first, 0), range(STEPS_DURING))
    ]
    return ComponentEvidence(
        graph=DependencyGraph.of(calls, steps),
        entry=service,
        symptom=symptom,
        gauges=tuple(gauges),
    )


def _gauges(
    name: str, steps: dict[int, list[tuple[float, bool]]], before: range, during: range
) -> Iterable[Gauge]:
    def track(value: dict[int, float | None]) -> Track:
        return Track(
            usual=tuple(value.get(at) for at in before),
            recent=(),
            during=tuple(value.get(at) for at in during),
        )

    counts: dict[int, float | None] = {
        at: float(len(steps.get(at, ()))) for at in (*before, *during)
    }
    means: dict[int, float | None] = {
        at: sum(seconds for seconds, _ in found) / len(found) for at, found in steps.items()
    }
    failures: dict[int, float | None] = {
        at: sum(failed for _, failed in found) / len(found) for at, found in steps.items()
    }
    for aspect, values in (
        (Aspect.REQUESTS, counts),
        (Aspect.LATENCY, means),
        (Aspect.FAILURES, failures),
    ):
        yield Gauge(component=name, aspect=aspect, statistic="spans", track=track(values))


def _failed(span: Span) -> bool:
    status = span.tags.get("http.status_code") or span.tags.get("http.response.status_code") or ""
    return (
        span.tags.get("error", "").lower() == "true"
        or span.tags.get("otel.status_code", "").upper() == "ERROR"
        or status.startswith("5")
    )
