"""Layer by layer: abnormal, clean or not checked, and why."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cause import Catalogue, Movement
from bot.diagnosis.collected import Collected
from bot.diagnosis.facts import Facts
from bot.diagnosis.observation import Observation
from bot.diagnosis.wording import describe, gap_of, shared_gap
from bot.domain.evidence import NOT_CONFIGURED, EvidenceSource, SourceState
from bot.domain.finding import ProbeStatus
from bot.domain.hypothesis import Layer, LayerState, LayerVerdict
from bot.domain.text import Localized
from bot.locales import say

_FINDING_FIRST = 1e3
"""A finding is named before any movement of a series: it was read on the node itself. Basis: judgement."""

_MOST_GAPS = 3


def judge_layers(
    facts: Facts, catalogue: Catalogue, collected: Collected
) -> tuple[LayerVerdict, ...]:
    """One verdict for each layer, outermost first; one that was not checked says what could not be had."""
    return tuple(_judge(layer, facts, catalogue, collected) for layer in Layer)


def _judge(layer: Layer, facts: Facts, catalogue: Catalogue, collected: Collected) -> LayerVerdict:
    odd: list[tuple[float, Localized]] = []
    calm = 0
    for observations in facts.observations.values():
        for item in observations:
            if item.signal.layer is not layer:
                continue
            moved = item.moved()
            if moved is None:
                continue
            if moved is Movement.FLAT or item.is_usual() or not _is_bad(item, moved):
                calm += 1
            else:
                odd.append((abs(item.deviation), describe(item)))
    for (node, _), result in sorted(facts.results.items()):
        for finding in result.findings:
            known = catalogue.findings.get(finding.id)
            if known is None or known.layer is not layer:
                continue
            if not known.clean:
                said = say(
                    "diagnosis.finding.found", title=known.title, node=node, said=finding.summary
                )
                odd.append((_FINDING_FIRST, said))
            elif not facts.is_stale:
                calm += 1
    if odd:
        _, why = max(odd, key=lambda entry: (entry[0], entry[1].en))
        return LayerVerdict(layer=layer, state=LayerState.ABNORMAL, why=why)
    gaps = _probe_gaps(layer, catalogue, collected)
    if calm:
        why = say("diagnosis.layer.clean", count=calm)
        if gaps:
            why = say("guards.layer.clean_but", clean=why, gaps=joined(gaps[:_MOST_GAPS]))
        return LayerVerdict(layer=layer, state=LayerState.CLEAN, why=why)
    reasons = [*_metric_gaps(layer, facts, catalogue, collected), *gaps[:_MOST_GAPS]]
    return LayerVerdict(
        layer=layer,
        state=LayerState.NOT_CHECKED,
        why=joined(reasons) if reasons else say("diagnosis.layer.not_checked"),
    )


def _metric_gaps(
    layer: Layer, facts: Facts, catalogue: Catalogue, collected: Collected
) -> list[Localized]:
    """Why no series speaks for a layer."""
    wanted = [
        signal.name
        for signal in catalogue.signals.values()
        if signal.layer is layer and signal.queries
    ]
    if not wanted:
        return []
    state = collected.states.get("metrics")
    if state is None:
        return [say("guards.layer.metrics_not_asked")]
    if state is SourceState.UNREACHABLE:
        gap = next((g for g in collected.gaps if g.source is EvidenceSource.METRICS), None)
        if gap is not None and gap.reason == NOT_CONFIGURED:
            return [say("guards.layer.metrics_not_asked")]
        return [say("guards.layer.metrics_down", detail=gap.detail if gap else "–")]
    if any(facts.observations.get(name) for name in wanted):
        return [say("guards.layer.too_few")]
    return [say("guards.layer.no_series", count=len(wanted))]


def _probe_gaps(layer: Layer, catalogue: Catalogue, collected: Collected) -> list[Localized]:
    """Which probes of a layer could not look, and which nobody ran."""
    names = sorted({item.probe for item in catalogue.findings.values() if item.layer is layer})
    if not names:
        return []
    if collected.states.get("probes") is not SourceState.OK:
        if gap := shared_gap(collected.probes):
            return [say("guards.layer.no_probe", why=say(f"diagnosis.unread.{gap}"))]
        return [say("guards.layer.no_agent")]
    failed = sorted(
        (result.probe, result.node, gap_of(result))
        for result in collected.probes
        if result.probe in names and result.status is not ProbeStatus.OK
    )
    asked = {result.probe for result in collected.probes}
    reasons = [
        say("guards.layer.failed", probe=probe, node=node, why=say(f"diagnosis.unread.{gap}"))
        for probe, node, gap in failed
    ]
    if idle := [name for name in names if name not in asked]:
        reasons.append(say("guards.layer.not_run", probes=", ".join(idle)))
    return reasons


def joined(parts: Sequence[Localized]) -> Localized:
    """Several sentences as one list, each language with its own semicolon."""
    found = parts[0]
    for part in parts[1:]:
        found = say("guards.joined", first=found, second=part)
    return found


def _is_bad(item: Observation, moved: Movement) -> bool:
    """Whether a movement is one that hurts: a clock that falls, a latency that rises; less pressure is no fault."""
    return moved is (Movement.DOWN if item.signal.ratio < 1 else Movement.UP)
