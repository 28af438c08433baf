"""Whether a hypothesis may be confirmed as the root cause: a guard in code, not a habit."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.evidence import EvidenceSource
from bot.domain.hypothesis import (
    NOT_ESTABLISHED,
    Contribution,
    Hypothesis,
    HypothesisStatus,
    LayerState,
    LayerVerdict,
)
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.text import Localized
from bot.locales import say
from bot.steps.gates import finished


def why_not(incident: Incident, hypothesis: Hypothesis) -> Localized | None:
    """Why `hypothesis` cannot be confirmed now, and what would change that; None when it can.

    `not_established` may always be accepted once there is a ranking: it claims nothing.
    """
    if hypothesis.cause == NOT_ESTABLISHED:
        return None
    if hypothesis.status is HypothesisStatus.REJECTED:
        return say("steps.refused_rejected", cause=hypothesis.title)
    if not incident.symptoms:
        return say("steps.refused_no_symptom")
    results = finished(incident, hypothesis.cause)
    if results and results[-1].verdict is ExperimentVerdict.CONTRARY:
        return say("steps.refused_contrary", cause=hypothesis.title)
    unexplained = [item for item in incident.symptoms if item.id not in hypothesis.explains]
    if unexplained:
        return say(
            "steps.refused_unexplained", cause=hypothesis.title, symptom=unexplained[0].summary
        )
    evidence = with_evidence(incident, hypothesis).supports
    if not evidence:
        return say("steps.refused_no_evidence", cause=hypothesis.title)
    is_tested = any(item.verdict is ExperimentVerdict.AS_PREDICTED for item in results)
    if not is_tested and all(item.source is EvidenceSource.METRICS for item in evidence):
        return say("steps.refused_co_movement", cause=hypothesis.title)
    if unchecked := unchecked_layers(incident, hypothesis):
        first = unchecked[0]
        return say(
            "guards.refused_layer", cause=hypothesis.title, why=first.why, word=first.layer.value,
            layer=say(f"guards.name.{first.layer.value}"),
        )  # fmt: skip
    return None


def unchecked_layers(incident: Incident, hypothesis: Hypothesis) -> tuple[LayerVerdict, ...]:
    """The layers on a hypothesis's chain that nobody looked at and nobody waived, effect first."""
    known = {item.layer: item for item in incident.layers}
    waived = {item.layer for item in incident.waivers}
    verdicts = [
        known.get(layer)
        or LayerVerdict(
            layer=layer,
            state=LayerState.NOT_CHECKED,
            why=say("diagnosis.layer.not_checked"),
        )
        for layer in hypothesis.layers
        if layer not in waived
    ]
    return tuple(item for item in verdicts if item.state is LayerState.NOT_CHECKED)


def with_evidence(incident: Incident, hypothesis: Hypothesis) -> Hypothesis:
    """The hypothesis with all that speaks for it: the engine's reasons and what its tests showed.

    One that a person put into words also has what people observed.
    """
    supports = list(hypothesis.supports)
    known = {item.ref for item in supports}
    for experiment in finished(incident, hypothesis.cause):
        if experiment.verdict is ExperimentVerdict.AS_PREDICTED:
            summary = experiment.result or experiment.predicted
            refs = experiment.evidence or (experiment.id,)
            supports += [
                _extra(EvidenceSource.PROBE, summary, ref) for ref in refs if ref not in known
            ]
    if hypothesis.cause.startswith("person:"):
        supports += [
            _extra(EvidenceSource.PERSON, item.summary, item.id)
            for item in incident.evidence
            if item.source is EvidenceSource.PERSON and item.id not in known
        ]
    return replace(hypothesis, supports=tuple(supports))


def _extra(source: EvidenceSource, summary: Localized, ref: str) -> Contribution:
    return Contribution(source=source, summary=summary, ref=ref, weight=0.0)
