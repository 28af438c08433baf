"""Faults of kinds that no recorded case shows, laid over recorded but healthy time.

`python -m tests.bench.variants CASES [CACHE]`. The base is a recorded case with its own trouble taken out (`healed`);
what a fault does to the signals is taken from what is known of its mechanism, never from what the rules ask for.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from bot.cause import Catalogue
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.engine import assess
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.symptoms import find_incident
from bot.diagnosis.tracing import phase_of
from bot.domain.change import Change
from bot.domain.evidence import Sample, Series
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.hypothesis import Diagnosis
from bot.source import LogLine, Span
from tests.bench.diagnosis import Recorded, figures, record
from tests.bench.healed import healed
from tests.bench.variant_table import Effect, Variant, variants

MINUTES = 22
"""Minutes that a fault has lasted when the question is asked."""


def engine_of(collected: Collected) -> str:
    queries = " ".join(reading.query for reading in collected.now.values())
    return "vllm" if "vllm:" in queries else "triton" if "nv_inference" in queries else "generic"


def laid_over(
    base: Collected, variant: Variant, noise: random.Random, catalogue: Catalogue
) -> Collected:
    """The base with the fault's marks from `MINUTES` before the end on."""
    began = base.request.at - timedelta(minutes=MINUTES)
    sick = _best_seen(base)
    effects = {effect.signal: effect for effect in variant.effects}
    now = dict(base.now)
    for name in ("engine.preemptions", "gpu.xid", "load.refused", "errors.timeouts"):
        # Signals that a healthy base may not have kept, but that a site with this fault has.
        if name in effects and name not in now and "load.requests" in now:
            model = now["load.requests"]
            flat = tuple(
                replace(one, samples=tuple(replace(s, value=0.0) for s in one.samples))
                for one in model.series[:1]
            )
            flat = tuple(replace(one, labels={"node": sick}) for one in flat)
            now[name] = replace(model, series=flat)
    now = {
        name: _changed(reading, effects.get(name), began, sick, noise)
        for name, reading in now.items()
    }
    history = dict(base.history)
    if variant.rhythm:
        for name, effect in effects.items():
            if name in history:
                history[name] = tuple(
                    _changed(part, replace(effect, everywhere=True), part.window.start, sick, noise)
                    for part in history[name]
                )
    probes = tuple(_found(result, variant, sick) for result in base.probes)
    lines = [
        (
            where,
            LogLine(
                at_ns=round((began.timestamp() + 20 + at * 40) * 1e9),
                labels=_labels(where, base, sick),
                text=text,
            ),
        )
        for at, (where, text) in enumerate(variant.lines)
    ]
    changes = list(base.changes)
    if variant.change is not None:
        kind, whose, text = variant.change
        service = {"@": base.request.service, "@node": None}.get(whose, whose)
        summary = f"{text} ({sick})" if whose == "@node" else text
        changes.append(
            Change(
                id="made-1",
                kind=kind,
                service=service,
                summary=summary,
                at=began - timedelta(minutes=2),
            )
        )
    spans = (
        _longer(base, effects, began)
        if effects.get("traces.count") is None
        else tuple(span for span in base.spans if span.start_us < began.timestamp() * 1e6)
    )
    service_lines = base.service_lines
    if "logs.lines" in effects:
        service_lines = tuple(
            line for line in service_lines if line.at_ns < began.timestamp() * 1e9
        )
    return replace(
        base, now=now, history=history, probes=probes, spans=spans,
        changes=tuple(sorted(changes, key=lambda change: (change.at, change.id))),
        service_lines=(*service_lines, *(line for where, line in lines if where == "service")),
        node_lines=(*base.node_lines, *(line for where, line in lines if where == "node")),
    )  # fmt: skip


_IN_TRACES = {
    "frontend": "phase.frontend",
    "queue": "phase.queue",
    "h2d": "phase.h2d",
    "compute": "phase.compute",
}


def _longer(base: Collected, effects: Mapping[str, Effect], began: datetime) -> tuple[Span, ...]:
    """The spans since the onset, longer where the fault loses time, and their parents with them."""
    start = began.timestamp() * 1e6
    extra: dict[str, int] = defaultdict(int)
    known = {span.span_id: span for span in base.spans}
    for span in base.spans:
        by = _factor(span, base.request.service, effects)
        if span.start_us < start or by == 1.0:
            continue
        more = round(span.duration_us * (by - 1))
        at: Span | None = span
        while at is not None:
            extra[at.span_id] += more
            at = known.get(at.parent or "")
    return tuple(
        replace(span, duration_us=max(1, span.duration_us + extra[span.span_id]))
        for span in base.spans
    )


def _factor(span: Span, service: str, effects: Mapping[str, Effect]) -> float:
    if span.tags.get("peer.service"):
        effect = effects.get("peer.latency")
    elif span.service == service:
        effect = effects.get(_IN_TRACES.get(phase_of(span.operation), ""))
    else:
        # The caller's own span: what is lost on the way there.
        effect = (
            effects.get("latency.client")
            if "net.retransmits" in effects and span.parent is None
            else None
        )
    return effect.by if effect is not None else 1.0


def _best_seen(base: Collected) -> str:
    """The node that most series speak of: at many sites only one exporter of several is kept."""
    seen = dict.fromkeys(sorted(base.nodes), 0)
    for reading in base.now.values():
        for series in reading.series:
            node = series.labels.get("node") or series.labels.get("Hostname") or ""
            if node in seen:
                seen[node] += 1
    return max(seen, key=lambda node: (seen[node], node), default="")


def _labels(where: str, base: Collected, sick: str) -> dict[str, str]:
    if where == "node":
        return {"job": "systemd-journal", "node": sick}
    return {"app": base.request.service, "level": "warning", "node": sick}


def _changed(
    reading: Reading, effect: Effect | None, began: datetime, sick: str, noise: random.Random
) -> Reading:
    if effect is None:
        return reading
    series, done = [], False
    for one in reading.series:
        node = one.labels.get("node") or one.labels.get("Hostname") or ""
        mine = effect.everywhere or not node or node == sick
        # Where there are several parts (disks, GPUs, peers) one of them is the sick one.
        single = any(key in one.labels for key in ("device", "gpu", "peer"))
        if not mine or (single and done and not effect.everywhere):
            series.append(one)
            continue
        done = True
        series.append(_with(one, effect, began + timedelta(seconds=effect.after), noise))
    return replace(reading, series=tuple(series))


def _with(series: Series, effect: Effect, began: datetime, noise: random.Random) -> Series:
    def value(sample: Sample) -> float | None:
        if sample.value is None or sample.at < began:
            return sample.value
        base = effect.level if effect.level is not None else sample.value * effect.by + effect.plus
        return (
            base * (1 + noise.uniform(-0.03, 0.03))
            if base != sample.value and effect.signal != "gpu.xid"
            else base
        )

    return replace(
        series, samples=tuple(replace(sample, value=value(sample)) for sample in series.samples)
    )


def _found(result: ProbeResult, variant: Variant, sick: str) -> ProbeResult:
    said = variant.findings.get(result.probe) or variant.findings.get("*")
    if said is None or (result.node != sick and "*" not in variant.findings):
        return result
    if not said[0]:
        return replace(result, status=ProbeStatus.DENIED, findings=(), error="not allowed here")
    finding = Finding(id=said[0], severity=FindingSeverity.CRITICAL, summary=said[1])
    return replace(result, status=ProbeStatus.OK, findings=(finding,), error=None)


async def run() -> list[str]:
    """For `make bench`: needs `CASES`, as the bases are recorded."""
    cases = os.environ.get("CASES")
    if not cases:
        return ["needs recorded cases: CASES=DIR"]
    with tempfile.TemporaryDirectory() as cache:
        return await report(Path(cases), Path(cache), verbose=False)


async def report(cases: Path, cache: Path, *, verbose: bool) -> list[str]:
    """Every variant over every base of its engine."""
    catalogue = load_causes([shipped_causes()])
    recorded = [
        await record(folder, cases, cache)
        for folder in sorted(cases.glob("*/"))
        if (folder / "case.json").exists()
    ]
    bases = [
        replace(
            one,
            collected=healed(
                one.collected, find_incident(one.collected, catalogue).window, catalogue
            ),
        )
        for one in recorded
        if one.collected.now.get("load.requests") and one.collected.now["load.requests"].series
    ]
    bases = [one for one in bases if not find_incident(one.collected, catalogue).is_seen]
    made: list[Recorded] = []
    for variant in variants():
        for base in bases:
            first = variant.effects[0].signal
            if engine_of(base.collected) != variant.engine:
                continue
            if first == "quality.ratio" and first not in base.collected.now:
                # Nobody who does not measure quality sees it fall.
                continue
            noise = random.Random(f"{variant.name} {base.id}")
            collected = laid_over(base.collected, variant, noise, catalogue)
            name = variant.chain[-1]
            made.append(
                replace(base, id=f"{variant.name} / {base.id}", collected=collected, cause=name,
                        acceptable=frozenset({name}), chain=variant.chain)
            )  # fmt: skip
    answers = {one.id: assess(one.collected, catalogue, one.service) for one in made}
    lines = [
        "generated variants    AC@1   AC@3   chains exact  abstention P/R  wrong at 0.7",
        f"{f'all {len(made)} over {len(bases)} bases':<20} {figures(made, answers)}",
    ]
    for variant in variants():
        own = [one for one in made if one.id.startswith(f"{variant.name} / ")]
        lines.append(f"  {variant.name:<36} {_line(own, answers, verbose)}")
    return lines


def _line(own: Sequence[Recorded], answers: Mapping[str, Diagnosis], verbose: bool) -> str:
    right = [one for one in own if answers[one.id].hypotheses[0].cause in one.acceptable]
    wrong = [one for one in own if one not in right]
    text = f"{len(right)} of {len(own)}"
    if verbose and wrong:
        text += "; else " + ", ".join(
            f"{one.id.rsplit(' ', 1)[-1][-3:]} {answers[one.id].hypotheses[0].cause} {answers[one.id].hypotheses[0].probability:.2f}"
            for one in wrong[:8]
        )
    return text


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "-v"]
    if not words:
        sys.exit("usage: python -m tests.bench.variants [-v] CASES [CACHE]")
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(words[1]) if len(words) > 1 else Path(scratch)
        for line in asyncio.run(report(Path(words[0]), kept, verbose="-v" in sys.argv)):
            sys.stdout.write(line + "\n")
