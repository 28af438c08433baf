"""What must hold for any evidence: removal, order and irrelevance."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.diagnosis.collected import Collected
from bot.diagnosis.engine import assess
from bot.diagnosis.facts import establish
from bot.diagnosis.weigh import REFUTED, Weighed, weigh
from bot.domain.hypothesis import Symptom
from bot.domain.text import Localized
from tests.diagnosis.test_engine import CASES
from tests.diagnosis.worlds import CATALOGUE, SERVICE, reading, series, without

_QUIET = settings(max_examples=25, deadline=None, derandomize=True)
_CAUSES = sorted(CASES)


def weighed(collected: Collected, cause: str) -> Weighed:
    return weigh(CATALOGUE.causes[cause], establish(collected, CATALOGUE), CATALOGUE)


def plugins(item: Weighed, *, positive: bool) -> set[str]:
    moves = [move for move in item.moves if (move.weight > 0) is positive]
    cited = {one.plugin for move in moves for one in move.judgement.evidence}
    if not positive:
        cited |= {one.plugin for _, judgement in item.refuted_by for one in judgement.evidence}
    return cited


@_QUIET
@given(world=st.sampled_from(_CAUSES), cause=st.sampled_from(_CAUSES), seed=st.integers(0, 99))
def test_removing_what_only_supports_never_raises_a_cause(
    world: str, cause: str, seed: int
) -> None:
    collected = CASES[world]
    before = weighed(collected, cause)
    # Symptom series set the window of the comparison itself, so they are no single piece of evidence.
    candidates = sorted(
        name
        for name in plugins(before, positive=True) - plugins(before, positive=False)
        if name in collected.now and CATALOGUE.signals[name].symptom is None
    )
    if not candidates:
        return
    gone = random.Random(seed).choice(candidates)
    assert weighed(without(collected, gone), cause).log_odds <= before.log_odds + 1e-9


@_QUIET
@given(world=st.sampled_from(_CAUSES), cause=st.sampled_from(_CAUSES), seed=st.integers(0, 99))
def test_removing_what_only_refutes_never_lowers_a_cause(world: str, cause: str, seed: int) -> None:
    collected = CASES[world]
    before = weighed(collected, cause)
    candidates = sorted(
        name
        for name in plugins(before, positive=False) - plugins(before, positive=True)
        if name in collected.now and CATALOGUE.signals[name].symptom is None
    )
    if not candidates:
        return
    gone = random.Random(seed).choice(candidates)
    after = weighed(without(collected, gone), cause)
    assert after.log_odds >= before.log_odds - 1e-9


@_QUIET
@given(world=st.sampled_from(_CAUSES), seed=st.integers(0, 99))
def test_order_of_the_answers_changes_nothing(world: str, seed: int) -> None:
    collected = CASES[world]
    shuffle = random.Random(seed)

    names = shuffle.sample(sorted(collected.now), len(collected.now))
    other = replace(
        collected,
        now={name: collected.now[name] for name in names},
        probes=tuple(shuffle.sample(collected.probes, len(collected.probes))),
    )
    one, two = (assess(item, CATALOGUE, SERVICE) for item in (collected, other))
    assert one.hypotheses == two.hypotheses
    assert one.layers == two.layers


@_QUIET
@given(
    world=st.sampled_from(_CAUSES),
    level=st.floats(1, 1e6),
    factor=st.floats(0.01, 100),
)
def test_series_that_no_cause_asks_for_changes_no_rank(
    world: str, level: float, factor: float
) -> None:
    collected = CASES[world]
    odd = reading("somebody.elses", series(level, level * factor))
    other = replace(collected, now={**collected.now, "somebody.elses": odd})
    one, two = (assess(item, CATALOGUE, SERVICE) for item in (collected, other))
    assert [(item.cause, item.probability) for item in one.hypotheses] == [
        (item.cause, item.probability) for item in two.hypotheses
    ]


@_QUIET
@given(
    world=st.sampled_from(_CAUSES),
    words=st.one_of(st.text(max_size=200), st.sampled_from(["P99 延迟超过目标，GPU 显存不足", "disk I/O is slow"])),
)  # fmt: skip
def test_words_of_an_alert_in_any_language_change_no_rank(world: str, words: str) -> None:
    def told(text: str) -> Collected:
        symptom = Symptom(id="alert", summary=Localized.verbatim(text))
        collected = CASES[world]
        return replace(collected, request=replace(collected.request, symptoms=(symptom,)))

    one, two = (assess(told(text), CATALOGUE, SERVICE) for text in ("latency above 2 s", words))
    assert one.hypotheses == two.hypotheses
    assert one.layers == two.layers


def test_live_refuter_caps_a_cause_whatever_speaks_for_it() -> None:
    collected = CASES["gpu_clock_throttling"]
    usual = reading("gpu.clock", series(1_700, 1_700, labels={"Hostname": "node-1", "gpu": "0"}))
    collected = replace(collected, now={**collected.now, "gpu.clock": usual})
    item = weighed(collected, "gpu_clock_throttling")
    assert item.is_refuted
    assert item.log_odds <= REFUTED
    shares = {
        found.cause: found.probability for found in assess(collected, CATALOGUE, SERVICE).hypotheses
    }
    assert shares["gpu_clock_throttling"] <= 0.05


def test_one_witness_alone_never_makes_a_cause_likely() -> None:
    collected = CASES["gpu_clock_throttling"]
    only = {name: collected.now[name] for name in ("latency.client", "gpu.clock")}
    alone = replace(collected, now=only, probes=(), service_lines=(), node_lines=())
    first = assess(alone, CATALOGUE, SERVICE).hypotheses[0]
    assert first.probability <= 0.7
