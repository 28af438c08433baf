"""PetShop's files as evidence of components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.diagnosis.components.evidence import Aspect, ComponentEvidence, Gauge, Track
from bot.diagnosis.components.graph import DependencyGraph
from tests.bench.rca_files import read_json, table, values

_MEASURES = {
    "latency_Average": (Aspect.LATENCY, "mean"),
    "availability_Average": (Aspect.FAILURES, "mean"),
    "requests_Sum": (Aspect.REQUESTS, "sum"),
}


def evidence_of(bench: Path, folder: Path, incident: dict[str, Any]) -> ComponentEvidence:
    """Availability in percent becomes the share that fails."""
    graph = read_json(folder / "graph.json")
    now = table(folder / "metrics.csv.gz", ("service", "metric"))
    usual = table(bench.parent / incident["baseline_file"], ("service", "metric"))
    window, alert = incident["incident_window"], incident["alert"]
    step = window["step_s"]
    times = range(window["start"], window["end"] + 1, step)
    # A row holds the step that ends with the next one: the first row of the incident is the one the alert falls into.
    recent = [time for time in times if time + step <= alert["timestamp"]]
    during = [time for time in times if time + step > alert["timestamp"]]
    gauges = []
    for name in graph["nodes"]:
        for metric, (aspect, statistic) in _MEASURES.items():
            past = usual.get((name, metric), {})
            clock = sorted(usual.get((name, "requests_Sum"), past))
            series = now.get((name, metric), {})
            track = Track(
                usual=values(past, clock),
                recent=values(series, recent),
                during=values(series, during),
            )
            gauges.append(
                Gauge(
                    component=name, aspect=aspect, statistic=statistic,
                    track=_failing(track) if aspect is Aspect.FAILURES else track,
                )
            )  # fmt: skip
    return ComponentEvidence(
        graph=DependencyGraph.of([(a, b) for a, b in graph["edges"]], graph["nodes"]),
        candidates=tuple(incident["candidates"]),
        entry=alert["service"],
        symptom=_MEASURES[alert["metric"]][0],
        gauges=tuple(gauges),
    )


def _failing(track: Track) -> Track:
    def share(found: tuple[float | None, ...]) -> tuple[float | None, ...]:
        return tuple(None if value is None else 1 - value / 100 for value in found)

    return Track(usual=share(track.usual), recent=share(track.recent), during=share(track.during))
