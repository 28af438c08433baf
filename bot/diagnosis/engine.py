"""The public door: one request in, one diagnosis out."""

from __future__ import annotations

from dataclasses import replace

from bot.cause import Catalogue, SymptomKind
from bot.diagnosis.blind_spots import find_blind_spots
from bot.diagnosis.collect import collect
from bot.diagnosis.collected import Collected
from bot.diagnosis.components.evidence import RankedComponent
from bot.diagnosis.components.incident import faulty_component
from bot.diagnosis.experiments import next_experiments
from bot.diagnosis.facts import Facts, establish
from bot.diagnosis.guards import guard_notes
from bot.diagnosis.layers import judge_layers
from bot.diagnosis.lost_work import lost_work, symptom_of
from bot.diagnosis.priors import Priors, contribution_of
from bot.diagnosis.rank import Ranked, rank
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.diagnosis.silences import find_silences
from bot.diagnosis.triggers import trigger_of
from bot.diagnosis.weigh import Weighed
from bot.domain.evidence import Evidence, EvidenceSource
from bot.domain.hypothesis import (
    NOT_ESTABLISHED,
    Contribution,
    Diagnosis,
    Hypothesis,
    Layer,
    Missing,
    NextExperiment,
    Symptom,
)
from bot.domain.text import Localized
from bot.inventory import Service
from bot.locales import say

_MOST_MISSING = 8
"""What nobody could look at, at most so many a candidate; the weightiest first."""

_KIND_NAMES = frozenset(kind.value for kind in SymptomKind)


async def diagnose(request: DiagnosisRequest, ports: DiagnosisPorts) -> Diagnosis:
    """Collects from all sources under one deadline and ranks the causes; sources that are down never raise."""
    collected = await collect(request, ports)
    return assess(collected, ports.catalogue, ports.service(request.service))


def assess(
    collected: Collected, catalogue: Catalogue, service: Service, *, priors: Priors | None = None
) -> Diagnosis:
    """The judgement alone: pure, and the same for the same answers in any order.

    priors: what the team's own confirmed causes add, within bounds; each shift is shown as a contribution.
    """
    facts = establish(collected, catalogue)
    ranked = rank(facts, catalogue, priors)
    heavy = collected.request.allow_heavy and collected.request.approver is not None
    experiments = next_experiments(ranked, facts, service, heavy=heavy)
    evidence: dict[str, Evidence] = {}
    symptoms = _symptoms(collected, facts)
    if (lost := lost_work(facts, catalogue)) is not None:
        symptoms = (*symptoms, symptom_of(lost))
        evidence[lost.id] = lost
    behind = faulty_component(
        collected.spans,
        service.name,
        service.depends_on,
        facts.incident.window,
        failing=facts.incident.kinds <= {SymptomKind.ERRORS, SymptomKind.INSTABILITY}
        and bool(facts.incident.kinds),
    )
    hypotheses = tuple(
        replace(
            _hypothesis(
                item, facts, service, symptoms, experiments.get(item.cause), evidence, behind
            ),
            layers=_layers_of(item, catalogue),
        )
        for item in ranked
    )
    if priors is not None:
        weighed = {item.cause: item.weighed for item in ranked if item.weighed is not None}
        hypotheses = tuple(
            _with_past(item, weighed.get(item.cause), catalogue, priors, evidence)
            for item in hypotheses
        )
    for sighting in facts.incident.sightings:
        if (cited := sighting.evidence) is not None:
            evidence.setdefault(cited.id, cited)
    return Diagnosis(
        service=collected.request.service,
        at=collected.request.at,
        window=collected.window,
        symptoms=symptoms,
        hypotheses=hypotheses,
        layers=judge_layers(facts, catalogue, collected),
        sources=collected.states,
        blind_spots=(
            *find_blind_spots(collected, facts),
            *find_silences(collected, facts, service),
        ),
        evidence=tuple(evidence[key] for key in sorted(evidence)),
        gaps=collected.gaps,
        guards=guard_notes(ranked, hypotheses, facts, catalogue, collected),
    )


def _symptoms(collected: Collected, facts: Facts) -> tuple[Symptom, ...]:
    """What people declared first, then what the engine saw and nobody declared."""
    declared = collected.request.symptoms
    names = {symptom.id for symptom in declared}
    return (
        *declared,
        *(s.symptom for s in facts.incident.sightings if s.symptom.id not in names),
    )


def _hypothesis(
    item: Ranked,
    facts: Facts,
    service: Service,
    symptoms: tuple[Symptom, ...],
    experiment: NextExperiment | None,
    evidence: dict[str, Evidence],
    behind: RankedComponent | None,
) -> Hypothesis:
    weighed = item.weighed
    if weighed is None:
        return Hypothesis(
            cause=NOT_ESTABLISHED,
            title=say("diagnosis.not_established.title"),
            probability=item.probability,
            chain=(NOT_ESTABLISHED,),
            next_experiment=experiment,
            trigger=None,
        )
    cause = weighed.cause
    kinds = {kind.value for kind in cause.symptoms}
    return Hypothesis(
        cause=cause.id,
        title=cause.title,
        probability=item.probability,
        node=weighed.node,
        component=_component(weighed, behind) or service.name,
        chain=item.chain.links,
        supports=_contributions(weighed, evidence, positive=True),
        against=_contributions(weighed, evidence, positive=False),
        missing=tuple(
            Missing(what=rule.text, why=say("diagnosis.missing.unseen"))
            for rule in sorted(weighed.unseen, key=lambda rule: -rule.weight)[:_MOST_MISSING]
        ),
        trigger=trigger_of(cause, facts, service, weighed.node),
        next_experiment=experiment,
        explains=tuple(
            symptom.id
            for symptom in symptoms
            if symptom.id in kinds or symptom.id not in _KIND_NAMES
        ),
    )


def _layers_of(item: Ranked, catalogue: Catalogue) -> tuple[Layer, ...]:
    """The layers that must have been looked at before the cause may be confirmed: those of its chain, each once."""
    links = [catalogue.causes[name] for name in item.chain.links if name in catalogue.causes]
    return tuple(dict.fromkeys(link.layer for link in links))


def _with_past(
    hypothesis: Hypothesis,
    weighed: Weighed | None,
    catalogue: Catalogue,
    priors: Priors,
    evidence: dict[str, Evidence],
) -> Hypothesis:
    """The hypothesis with what the team's own past added to it, last among its reasons."""
    found = contribution_of(weighed, catalogue.causes, priors) if weighed is not None else None
    if found is None:
        return hypothesis
    contribution, cited = found
    evidence.setdefault(cited.id, cited)
    if contribution.weight > 0:
        return replace(hypothesis, supports=(*hypothesis.supports, contribution))
    return replace(hypothesis, against=(*hypothesis.against, contribution))


def _component(weighed: Weighed, behind: RankedComponent | None) -> str | None:
    """The component that a cause outside the service points at: the deepest in the traces, else the slow peer."""
    if weighed.cause.layer is not Layer.DEPENDENCY:
        return None
    if behind is not None:
        return behind.name
    for move in weighed.moves:
        for cited in move.judgement.evidence:
            if move.weight > 0 and cited.plugin.startswith(("peer.", "trace.peer")):
                return cited.component
    return None


def _contributions(
    weighed: Weighed, evidence: dict[str, Evidence], *, positive: bool
) -> tuple[Contribution, ...]:
    found: list[Contribution] = []
    for move in sorted(weighed.moves, key=lambda move: (-abs(move.weight), move.rule.id)):
        if (move.weight > 0) is not positive:
            continue
        cited = move.judgement.evidence
        for one in cited:
            evidence.setdefault(one.id, one)
        found.append(_contribution(move.rule.text, cited, move.weight))
    if not positive:
        for refuter, judgement in weighed.refuted_by:
            for one in judgement.evidence:
                evidence.setdefault(one.id, one)
            found.append(_contribution(refuter.text, judgement.evidence, -6.0))
    return tuple(found)


def _contribution(text: Localized, cited: tuple[Evidence, ...], weight: float) -> Contribution:
    if not cited:
        return Contribution(source=EvidenceSource.LOGS, summary=text, ref="", weight=weight)
    first = cited[0]
    return Contribution(
        source=first.source,
        summary=say("diagnosis.contribution", claim=text, detail=first.summary),
        ref=first.id,
        weight=weight,
    )
