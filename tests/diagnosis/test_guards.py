"""The guards of the ranking, each where it decides: refuters, independent families, noise, and what people declare."""

from __future__ import annotations

from dataclasses import replace

from bot.cause import Catalogue, Cause, Movement, Refuter, SignalTest
from bot.diagnosis.collect import declared_signals
from bot.diagnosis.collected import Collected
from bot.diagnosis.engine import assess
from bot.diagnosis.facts import establish
from bot.diagnosis.judge import Bench, Verdict
from bot.domain.hypothesis import NOT_ESTABLISHED, Symptom
from bot.domain.text import Localized
from tests.diagnosis.worlds import (
    CATALOGUE,
    NODE,
    PINNED,
    SERVICE,
    line,
    probe,
    reading,
    series,
    world,
)

NAME = "pinned_memory_contention"
SICK = world(PINNED, probes=[probe("pinned_pool", "pinned.contention")])


def with_cause(**changes: object) -> Catalogue:
    cause: Cause = replace(CATALOGUE.causes[NAME], **changes)  # type: ignore[arg-type]
    return replace(CATALOGUE, causes={**CATALOGUE.causes, NAME: cause})


def share(collected: Collected, catalogue: Catalogue, cause: str = NAME) -> float:
    found = assess(collected, catalogue, SERVICE)
    return next(item.probability for item in found.hypotheses if item.cause == cause)


def test_a_live_refuter_caps_what_everything_else_supports() -> None:
    refuter = Refuter(
        id="busy", test=SignalTest(signal="latency.client", movement=Movement.UP),
        text=Localized("slow", "慢"), basis="made up",
    )  # fmt: skip
    assert share(SICK, with_cause(refuters=())) > 0.7
    assert share(SICK, with_cause(refuters=(refuter,))) <= 0.05


def test_too_few_independent_families_keep_a_cause_below_likely() -> None:
    cause = CATALOGUE.causes[NAME]
    one = tuple(replace(rule, family="same") for rule in cause.evidence)
    assert share(SICK, with_cause(evidence=one, families=1)) > 0.7
    assert share(SICK, with_cause(evidence=one, families=2)) <= 0.65


def test_a_step_within_the_noise_of_a_restless_time_is_unknown_not_calm() -> None:
    restless = series(40.0, 60.0)
    samples = tuple(
        replace(sample, value=(sample.value or 0) + 12 * (at // 4 % 5 - 2))
        for at, sample in enumerate(restless.samples)
    )
    facts = establish(
        replace(
            SICK,
            now={
                **SICK.now,
                "load.requests": reading("load.requests", replace(restless, samples=samples)),
            },
        ),
        CATALOGUE,
    )
    calm = SignalTest(signal="load.requests", movement=Movement.NOT_UP, ratio=1.25)
    assert Bench(facts, CATALOGUE, NODE).judge(calm).verdict is Verdict.UNKNOWN
    steady = establish(SICK, CATALOGUE)
    assert Bench(steady, CATALOGUE, NODE).judge(calm).verdict is Verdict.TRUE


def test_what_people_declare_counts_as_seen_but_proves_nothing() -> None:
    lines = [
        line(f"{at} allocation retried: 17.35 GiB is reserved by PyTorch but unallocated")
        for at in range(3)
    ]
    quiet = world(lines=lines)
    declared = replace(
        quiet,
        request=replace(
            quiet.request,
            symptoms=(Symptom(id="alert", summary=Localized.verbatim("pods restart")),),
        ),
    )
    cause = "gpu_memory_fragmentation"
    assert share(declared, CATALOGUE, cause) > 3 * share(quiet, CATALOGUE, cause)
    nothing = replace(declared, service_lines=world().service_lines)
    assert assess(nothing, CATALOGUE, SERVICE).hypotheses[0].cause == NOT_ESTABLISHED


def test_a_declared_symptom_whose_own_metric_is_calm_counts_as_checked_not_as_seen() -> None:
    quiet = world()
    metric = "histogram_quantile(0.99, x)"
    symptom = Symptom(id="S-1", summary=Localized.verbatim("is it slow tonight?"), metric=metric)
    request = replace(quiet.request, symptoms=(symptom,))
    signals = declared_signals(request)

    def measured(before: float, during: float) -> Collected:
        now = {**quiet.now, "declared.S-1": reading("declared.S-1", series(before, during))}
        return replace(quiet, request=request, declared=signals, now=now)

    undoubted = share(quiet, CATALOGUE, NOT_ESTABLISHED)
    only_words = replace(quiet, request=replace(request, symptoms=(replace(symptom, metric=None),)))
    assert share(only_words, CATALOGUE, NOT_ESTABLISHED) < undoubted
    assert share(measured(0.060, 0.061), CATALOGUE, NOT_ESTABLISHED) == undoubted
    assert share(measured(0.060, 0.600), CATALOGUE, NOT_ESTABLISHED) < undoubted


def test_what_traces_and_metrics_tell_of_one_phase_is_one_witness_and_calm_things_are_none() -> (
    None
):
    cause = CATALOGUE.causes[NAME]
    families = {rule.id: rule.family for rule in cause.evidence}
    assert families["trace_copies"] == families["copies_slow"]
    first, second = (replace(rule, absent=0.0) for rule in cause.evidence if "copies" in rule.id)
    first = replace(first, weight=6.0)
    strong = replace(first, id="again", family="other", weight=1.0)
    assert share(SICK, with_cause(evidence=(first, strong), families=2)) > 0.7
    weak = replace(strong, weight=0.4)
    assert share(SICK, with_cause(evidence=(first, weak, second), families=2)) <= 0.65
