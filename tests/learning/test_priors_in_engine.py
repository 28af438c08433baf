"""The team's past is shown as a reason, moves the order of equals, and never outweighs evidence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.diagnosis.engine import assess
from bot.diagnosis.priors import MOST_SHIFT, Priors
from bot.domain.evidence import EvidenceSource
from bot.domain.hypothesis import Diagnosis, Hypothesis
from bot.domain.instant import Window
from tests.diagnosis.worlds import AT, CATALOGUE, CPU, PINNED, SERVICE, world

YEAR = Window(AT - timedelta(days=365), AT)


def of(diagnosis: Diagnosis, cause: str) -> Hypothesis:
    return next(item for item in diagnosis.hypotheses if item.cause == cause)


def past(**confirmed: int) -> Priors:
    return Priors(confirmed=confirmed, total=sum(confirmed.values()), window=YEAR)


def test_without_a_past_the_judgement_is_the_same() -> None:
    collected = world(CPU)
    assert assess(collected, CATALOGUE, SERVICE, priors=None) == assess(
        collected, CATALOGUE, SERVICE
    )


def test_the_past_is_shown_as_a_reason_with_its_evidence() -> None:
    found = assess(world(CPU), CATALOGUE, SERVICE, priors=past(cpu_contention=9, memory_leak=3))
    reason = of(found, "cpu_contention").supports[-1]
    assert reason.source is EvidenceSource.PERSON
    assert reason.weight == MOST_SHIFT
    assert "9 of 12" in reason.summary.en
    assert "12 起事件中，有 9 起" in reason.summary.zh
    cited = [item for item in found.evidence if item.id == reason.ref]
    assert [item.plugin for item in cited] == ["history"]
    against = [
        item.against[-1]
        for item in found.hypotheses
        if item.against and item.against[-1].ref == reason.ref
    ]
    assert against, "a cause that was never confirmed here is held against"
    assert all(-MOST_SHIFT <= item.weight < 0 for item in against)


def test_the_past_raises_a_cause_and_probabilities_still_sum_to_one() -> None:
    collected = world({"latency.client": 0.5, "latency.server": 0.45})
    plain = assess(collected, CATALOGUE, SERVICE)
    taught = assess(collected, CATALOGUE, SERVICE, priors=past(memory_leak=50))
    assert of(taught, "memory_leak").probability > of(plain, "memory_leak").probability
    assert sum(item.probability for item in taught.hypotheses) == pytest.approx(1.0)


@pytest.mark.parametrize("sick", [CPU, PINNED], ids=["cpu", "pinned"])
@pytest.mark.parametrize("favourite", sorted(CATALOGUE.causes))
def test_no_past_overturns_what_the_evidence_says(sick: dict[str, float], favourite: str) -> None:
    collected = world(sick)
    first = assess(collected, CATALOGUE, SERVICE).hypotheses[0].cause
    taught = assess(collected, CATALOGUE, SERVICE, priors=past(**{favourite: 10_000}))
    assert taught.hypotheses[0].cause == first
