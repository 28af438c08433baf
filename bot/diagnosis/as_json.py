"""A diagnosis in the shape of `rca-bot diagnose --json`."""

from __future__ import annotations

from typing import Any

from bot.domain.hypothesis import Contribution, Diagnosis, Hypothesis
from bot.domain.instant import to_rfc3339
from bot.domain.text import Locale


def diagnosis_to_json(
    diagnosis: Diagnosis, incident_id: str | None = None, locale: Locale = Locale.EN
) -> dict[str, Any]:
    """The contract's object; probabilities sum to one to the last digit that is printed."""
    shares = _shares([item.probability for item in diagnosis.hypotheses])
    return {
        "incident": incident_id,
        "service": diagnosis.service,
        "at": to_rfc3339(diagnosis.at),
        "symptoms": [
            {
                "id": symptom.id,
                "summary": symptom.summary.in_locale(locale),
                "since": to_rfc3339(symptom.since) if symptom.since else None,
            }
            for symptom in diagnosis.symptoms
        ],
        "hypotheses": [
            _hypothesis(item, rank, share, locale)
            for rank, (item, share) in enumerate(
                zip(diagnosis.hypotheses, shares, strict=True), start=1
            )
        ],
        "layers": [
            {
                "layer": verdict.layer.value,
                "state": verdict.state.value,
                "why": verdict.why.in_locale(locale),
            }
            for verdict in diagnosis.layers
        ],
        "sources": {name: state.value for name, state in diagnosis.sources.items()},
        "blind_spots": [
            {"what": spot.what.in_locale(locale), "why": spot.why.in_locale(locale)}
            for spot in diagnosis.blind_spots
        ],
    }


def _hypothesis(item: Hypothesis, rank: int, share: float, locale: Locale) -> dict[str, Any]:
    trigger = item.trigger
    experiment = item.next_experiment
    return {
        "rank": rank,
        "cause": item.cause,
        "probability": share,
        "node": item.node,
        "component": item.component,
        "chain": list(item.chain),
        "for": [_contribution(reason, locale) for reason in item.supports],
        "against": [_contribution(reason, locale) for reason in item.against],
        "missing": [missing.what.in_locale(locale) for missing in item.missing],
        "trigger": {
            "change": trigger.change if trigger else None,
            "summary": trigger.summary.in_locale(locale) if trigger else None,
        },
        "next_experiment": {
            "probe": experiment.probe,
            "node": experiment.node,
            "expects": experiment.expects.in_locale(locale),
            "would_refute": experiment.would_refute.in_locale(locale),
        }
        if experiment
        else None,
    }


def _contribution(reason: Contribution, locale: Locale) -> dict[str, str]:
    return {
        "source": reason.source.value,
        "summary": reason.summary.in_locale(locale),
        "ref": reason.ref,
    }


def _shares(values: list[float]) -> list[float]:
    """Values rounded to six digits; the first takes what rounding left, so that the sum is one."""
    rounded = [round(value, 6) for value in values]
    if rounded:
        rounded[0] = round(rounded[0] + 1 - sum(rounded), 6)
    return rounded
