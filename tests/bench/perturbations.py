"""Ways in which another site, another day or a weaker fault would have recorded the same incident.

Each takes what was collected of one incident and gives it back as somebody else would have seen it. None knows which
incident it is or what its cause was; the moment when the trouble began is the engine's own reading of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from statistics import fmean, median
from typing import Any

from bot.diagnosis.collected import Collected, Reading
from bot.domain.change import Change, ChangeKind
from bot.domain.evidence import Sample, Series, SourceState
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.instant import Window
from bot.source import LogLine, Span

Perturbation = Callable[[Collected, "Window", random.Random], Collected]
"""(what was collected, from when to when it went wrong, randomness) to what another would have collected."""

_COUNTED = frozenset({"1/s", "requests", "tasks", "lines", "bytes/s"})
_NEVER_SCALED = frozenset(
    {"process.start", "gpu.xid", "targets.up", "host.oom_kills", "engine.loads"}
)
_MOMENTS = 1e9
"""Values in seconds above this are moments and no durations."""


def rebuilt(thing: Any, text: Callable[[str], str], moment: Callable[[datetime], datetime]) -> Any:
    """The same value with every text and every moment in it replaced."""
    if isinstance(thing, str):
        return text(thing) if type(thing) is str else thing
    if isinstance(thing, datetime):
        return moment(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(
            thing,
            **{
                item.name: rebuilt(getattr(thing, item.name), text, moment)
                for item in fields(thing)
            },
        )
    if isinstance(thing, Mapping):
        return {
            rebuilt(key, text, moment): rebuilt(value, text, moment) for key, value in thing.items()
        }
    if isinstance(thing, tuple):
        return tuple(rebuilt(item, text, moment) for item in thing)
    return thing


def names_of(collected: Collected) -> list[str]:
    """Names of services, nodes, programs and devices that the answers speak of, longest first."""
    keys = (
        "app",
        "service",
        "container",
        "pod",
        "peer",
        "node",
        "Hostname",
        "device",
        "unit",
        "model_name",
    )
    found = {collected.request.service, *collected.nodes}
    for reading in collected.now.values():
        for series in reading.series:
            found.update(series.labels[key] for key in keys if series.labels.get(key))
    for line in (*collected.service_lines, *collected.node_lines):
        found.update(line.labels[key] for key in keys if line.labels.get(key))
    found.update(str(change.service) for change in collected.changes if change.service)
    found.update(span.service for span in collected.spans)
    kept = {
        name
        for name in found
        if len(name) > 3 and name not in ("gateway", "systemd-journal", "tmpfs")
    }
    return sorted(kept, key=lambda name: (-len(name), name))


def new_names(collected: Collected, noise: random.Random) -> Callable[[str], str]:
    """A consistent renaming of everything that has a name of its own."""
    old = names_of(collected)
    new = {name: f"q{noise.randrange(16**5):05x}-{at}" for at, name in enumerate(old)}
    pattern = re.compile("|".join(re.escape(name) for name in old))
    return lambda text: pattern.sub(lambda match: new[match[0]], text)


def renamed(collected: Collected, _: Window, noise: random.Random) -> Collected:
    rename = new_names(collected, noise)
    keep = {**collected.now, **collected.history, **collected.trends, **collected.states}

    def text(old: str) -> str:
        return old if old in keep else rename(old)

    return rebuilt(collected, text, lambda at: at)


def another_day(collected: Collected, _: Window, noise: random.Random) -> Collected:
    by = timedelta(seconds=noise.randrange(3 * 86_400, 40 * 86_400))
    shifted: Collected = rebuilt(collected, lambda text: text, lambda at: at + by)
    nanoseconds, microseconds = round(by.total_seconds()) * 10**9, round(by.total_seconds()) * 10**6

    def later(lines: tuple[LogLine, ...]) -> tuple[LogLine, ...]:
        return tuple(replace(line, at_ns=line.at_ns + nanoseconds) for line in lines)

    return replace(
        shifted,
        service_lines=later(shifted.service_lines), node_lines=later(shifted.node_lines), old_lines=later(shifted.old_lines),
        spans=tuple(replace(span, start_us=span.start_us + microseconds) for span in shifted.spans),
    )  # fmt: skip


def valued(
    collected: Collected, change: Callable[[str, Reading, Series, float, datetime], float]
) -> Collected:
    """Every value of every series through `change(signal, reading, series, value, at)`."""

    def one(name: str, reading: Reading) -> Reading:
        return replace(
            reading,
            series=tuple(
                replace(
                    series,
                    samples=tuple(
                        replace(item, value=change(name, reading, series, item.value, item.at))
                        if item.value is not None
                        else item
                        for item in series.samples
                    ),
                )
                for series in reading.series
            ),
        )

    return replace(
        collected,
        now={name: one(name, item) for name, item in collected.now.items()},
        history={
            name: tuple(one(name, part) for part in item)
            for name, item in collected.history.items()
        },
        trends={name: one(name, item) for name, item in collected.trends.items()},
    )


def jittered(share: float) -> Perturbation:
    def apply(collected: Collected, _: Window, noise: random.Random) -> Collected:
        return valued(
            collected,
            lambda name, reading, series, value, at: (
                value if name in _NEVER_SCALED else value * (1 + noise.uniform(-share, share))
            ),
        )

    return apply


def busier(factor: float, units: Mapping[str, str]) -> Perturbation:
    """A site with `factor` times the traffic: everything that is counted, and nothing that is timed."""
    return lambda collected, _, __: valued(
        collected,
        lambda name, reading, series, value, at: (
            value * factor if units.get(name) in _COUNTED and name not in _NEVER_SCALED else value
        ),
    )


def slower(factor: float, units: Mapping[str, str]) -> Perturbation:
    """A model that takes `factor` times as long."""

    def apply(collected: Collected, _: Window, __: random.Random) -> Collected:
        scaled = valued(
            collected,
            lambda name, reading, series, value, at: (
                value * factor
                if units.get(name) == "s" and name not in _NEVER_SCALED and value < _MOMENTS
                else value
            ),
        )
        spans = tuple(
            replace(span, duration_us=round(span.duration_us * factor)) for span in scaled.spans
        )
        return replace(scaled, spans=spans)

    return apply


def stronger(factor: float) -> Perturbation:
    """The same trouble with `factor` times the distance from what was usual before it began."""

    def apply(collected: Collected, incident: Window, _: random.Random) -> Collected:
        usual: dict[int, float] = {}

        def change(
            name: str, reading: Reading, series: Series, value: float, at: datetime
        ) -> float:
            if name in _NEVER_SCALED or not series.samples:
                return value
            if id(series) not in usual:
                before = [
                    s.value for s in series.samples if s.value is not None and s.at < incident.start
                ]
                usual[id(series)] = median(before) if before else value
            if at < incident.start:
                return value
            return max(0.0, usual[id(series)] + factor * (value - usual[id(series)]))

        scaled = valued(replace(collected, history={}), change)
        return replace(scaled, history=collected.history)

    return apply


def coarser(factor: int) -> Perturbation:
    """A scrape every `factor` intervals: rates are smeared as much more."""

    def apply(collected: Collected, _: Window, __: random.Random) -> Collected:
        def thin(reading: Reading) -> Reading:
            is_rate = "rate(" in reading.query
            return replace(
                reading, series=tuple(_thinned(one, factor, is_rate) for one in reading.series)
            )

        return replace(
            collected,
            resolution_seconds=collected.resolution_seconds * factor, rate_seconds=collected.rate_seconds * factor,
            now={
                name: item if name.startswith("logs.") else thin(item)
                for name, item in collected.now.items()
            },
        )  # fmt: skip

    return apply


def _thinned(series: Series, factor: int, is_rate: bool) -> Series:
    samples: list[Sample] = []
    window = 4 * factor if is_rate else 1
    for at in range(0, len(series.samples), factor):
        known = [
            s.value for s in series.samples[max(0, at - window + 1) : at + 1] if s.value is not None
        ]
        samples.append(replace(series.samples[at], value=fmean(known) if known else None))
    return replace(series, samples=tuple(samples), step_seconds=series.step_seconds * factor)


def fewer_signals(share: float) -> Perturbation:
    """A site that does not keep `share` of the metrics; the load and the symptoms stay, or nobody would have called."""

    def apply(collected: Collected, _: Window, noise: random.Random) -> Collected:
        gone = {
            name
            for name in sorted(collected.now)
            if noise.random() < share
            and not name.startswith(("latency.client", "errors.", "load.requests", "quality."))
        }
        return replace(
            collected,
            now={name: item for name, item in collected.now.items() if name not in gone},
            history={name: item for name, item in collected.history.items() if name not in gone},
            trends={name: item for name, item in collected.trends.items() if name not in gone},
        )

    return apply


def without(state: str, **emptied: Any) -> Perturbation:
    return lambda collected, _, __: replace(
        collected, states={**collected.states, state: SourceState.UNREACHABLE}, **emptied
    )


def without_logs(collected: Collected, _: Window, __: random.Random) -> Collected:
    now = {name: one for name, one in collected.now.items() if not name.startswith("logs.")}
    states = {**collected.states, "logs": SourceState.UNREACHABLE}
    return replace(collected, states=states, service_lines=(), node_lines=(), old_lines=(), now=now)


def one_agent_silent(collected: Collected, _: Window, noise: random.Random) -> Collected:
    if not collected.nodes:
        return collected
    silent = noise.choice(sorted(collected.nodes))
    return replace(
        collected,
        probes=tuple(
            replace(one, status=ProbeStatus.TIMEOUT, findings=(), error="not answered in time")
            if one.node == silent
            else one
            for one in collected.probes
        ),
    )


def fewer_probes(share: float) -> Perturbation:
    def apply(collected: Collected, _: Window, noise: random.Random) -> Collected:
        return replace(
            collected,
            probes=tuple(
                replace(one, status=ProbeStatus.DENIED, findings=(), error="not allowed here")
                if noise.random() < share
                else one
                for one in collected.probes
            ),
        )

    return apply


def other_words(collected: Collected, _: Window, __: random.Random) -> Collected:
    """Probes that say what they found and nothing more: no name, no figure in the sentence."""

    def plain(finding: Finding) -> Finding:
        return replace(finding, summary=finding.id.replace(".", " ").replace("_", " "))

    return replace(
        collected,
        probes=tuple(
            replace(one, findings=tuple(map(plain, one.findings))) for one in collected.probes
        ),
    )


def silent_lines(collected: Collected, _: Window, __: random.Random) -> Collected:
    """As many lines at the same times, and none with a word that any cause waits for."""

    def plain(lines: tuple[LogLine, ...]) -> tuple[LogLine, ...]:
        return tuple(replace(line, text=f"event {at % 7}") for at, line in enumerate(lines))

    return replace(
        collected,
        service_lines=plain(collected.service_lines), node_lines=plain(collected.node_lines), old_lines=(),
    )  # fmt: skip


_SYNONYMS = (
    ("timed out", "gave no answer in time"), ("timeout", "deadline passed"), ("failed", "was unsuccessful"),
    ("slow", "sluggish"), ("waited", "had to wait"), ("exhausted", "used up"), ("exited", "terminated"),
    ("refused", "rejected"), ("reset", "torn down"), ("stuck", "not advancing"), ("truncated", "cut short"),
)  # fmt: skip


def reworded(collected: Collected, _: Window, __: random.Random) -> Collected:
    """The same lines in another program's words."""

    def other(lines: tuple[LogLine, ...]) -> tuple[LogLine, ...]:
        return tuple(replace(line, text=_in_other_words(line.text)) for line in lines)

    return replace(
        collected,
        service_lines=other(collected.service_lines), node_lines=other(collected.node_lines), old_lines=other(collected.old_lines),
    )  # fmt: skip


def _in_other_words(text: str) -> str:
    for old, new in _SYNONYMS:
        text = re.sub(rf"\b{old}\b", new, text, flags=re.IGNORECASE)
    return text


def decoy_deploys(collected: Collected, incident: Window, _: random.Random) -> Collected:
    """A release of another service and a harmless one of its own, both minutes before it began."""
    made = (
        Change(
            id="decoy-1", kind=ChangeKind.DEPLOY, service="storefront-web", summary="release 418: new footer",
            at=incident.start - timedelta(minutes=4),
        ),
        Change(
            id="decoy-2", kind=ChangeKind.DEPLOY, service=collected.request.service, summary="rebuild, same sources",
            at=incident.start - timedelta(minutes=7),
        ),
    )  # fmt: skip
    changes = sorted((*collected.changes, *made), key=lambda change: (change.at, change.id))
    return replace(collected, changes=tuple(changes))


def bystanders(collected: Collected, incident: Window, noise: random.Random) -> Collected:
    """Unrelated trouble: a disk of somebody else, a hot card, a small foreign process, and series without a story."""
    if not collected.nodes:
        return collected
    node = max(collected.nodes)
    now = dict(collected.now)
    for name, usual, odd in (
        ("disk.latency", 0.003, 0.09),
        ("gpu.temperature", 52.0, 66.0),
        ("disk.written", 4e6, 9e7),
    ):
        if name not in now or not now[name].series:
            continue
        model = now[name].series[0]
        began = incident.start - timedelta(minutes=11)
        samples = tuple(
            replace(
                item, value=(odd if item.at >= began else usual) * (1 + noise.uniform(-0.05, 0.05))
            )
            for item in model.samples
        )
        labels = (
            {"node": node, "device": "md9"}
            if name.startswith("disk")
            else {"Hostname": node, "gpu": "7"}
        )
        now[name] = replace(
            now[name], series=(*now[name].series, replace(model, labels=labels, samples=samples))
        )
    extra = (
        ("host_cpu", Finding(id="cpu.neighbour", severity=FindingSeverity.WARNING, summary="a report job uses 3 of 48 cores")),
        ("gpu_processes", Finding(id="gpu.foreign_process", severity=FindingSeverity.WARNING, value=240, unit="MiB", threshold=200,
                                  summary="a metrics tool holds 240 MiB on GPU 7")),
    )  # fmt: skip
    probes = tuple(_beside(one, node, dict(extra)) for one in collected.probes)
    return replace(collected, now=now, probes=probes)


def _beside(result: ProbeResult, node: str, extra: Mapping[str, Finding]) -> ProbeResult:
    found = extra.get(result.probe)
    if found is None or result.node != node or result.status is not ProbeStatus.OK:
        return result
    return replace(result, findings=(*result.findings, found))


def skewed_spans(collected: Collected, _: Window, noise: random.Random) -> Collected:
    """Hosts whose clocks disagree by up to half a second."""
    skew: dict[str, int] = {}

    def moved(span: Span) -> Span:
        by = skew.setdefault(span.service, noise.randrange(-500_000, 500_000))
        return replace(span, start_us=span.start_us + by)

    return replace(collected, spans=tuple(moved(span) for span in collected.spans))
