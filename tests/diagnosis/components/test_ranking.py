"""Which component of a graph is at fault, through the public door; names are made up and change nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bot.diagnosis.components.evidence import (
    Aspect,
    Call,
    CallSide,
    ComponentEvidence,
    EventCount,
    EventKind,
    Gauge,
    SpanRole,
    SpanTime,
    Track,
)
from bot.diagnosis.components.graph import DependencyGraph
from bot.diagnosis.components.ranking import rank_components

GRAPH = DependencyGraph.of(
    [("front", "cart"), ("front", "search"), ("cart", "store"), ("search", "store"), ("front", "batch")]
)  # fmt: skip


def track(before: float, *during: float, wobble: float = 0.02, count: int = 30) -> Track:
    """A level that wobbles, and what came after."""
    noise = random.Random(3)
    return Track(
        usual=tuple(before * (1 + wobble * noise.uniform(-1, 1)) for _ in range(count)),
        recent=(before, before),
        during=during,
    )


def served(
    name: str, requests: float, usual: float, *during: float, **kwargs: float
) -> list[Gauge]:
    """Requests and latency of a component."""
    return [
        Gauge(
            component=name, aspect=Aspect.REQUESTS, statistic="sum",
            track=track(requests, *([requests] * len(during)), wobble=0.0),
        ),
        Gauge(component=name, aspect=Aspect.LATENCY, statistic="mean", track=track(usual, *during, **kwargs)),
    ]  # fmt: skip


def slow_store() -> ComponentEvidence:
    """The store takes longer, so do both that call it; a noisy job beside them moves on its own."""
    return ComponentEvidence(
        graph=GRAPH, entry="front", symptom=Aspect.LATENCY,
        gauges=(
            *served("front", 100, 0.2, 0.4, 0.5, 0.4),
            *served("cart", 100, 0.1, 0.29, 0.39, 0.3),
            *served("search", 20, 0.1, 0.13, 0.14, 0.13),
            *served("store", 200, 0.02, 0.12, 0.17, 0.12),
            *served("batch", 10, 30.0, 45.0, 20.0, 50.0, wobble=0.6),
        ),
    )  # fmt: skip


def first(evidence: ComponentEvidence) -> str:
    return rank_components(evidence)[0].name


def test_lost_time_leads_to_the_deepest_that_lost_it() -> None:
    ranked = [item.name for item in rank_components(slow_store())]
    assert ranked[:2] == ["store", "cart"]


def test_noise_of_a_bystander_explains_nothing() -> None:
    names = [item.name for item in rank_components(slow_store())]
    assert names.index("batch") > names.index("front")


def test_a_callee_that_is_slow_only_for_its_caller_is_the_walks_end() -> None:
    evidence = slow_store()
    gauges = [one for one in evidence.gauges if one.component != "store"]
    quiet = replace(evidence, gauges=(*gauges, *served("store", 200, 0.02, 0.02, 0.02, 0.02)))
    assert first(quiet) == "cart"


def test_failing_calls_to_something_never_called_before_are_the_callers_doing() -> None:
    def failing(name: str, requests: float, *during: float) -> list[Gauge]:
        usual = Track(usual=(0.0,) * 20, recent=(0.0, 0.0), during=during)
        asked = Track(usual=(requests,) * 20, recent=(requests,) * 2, during=(100.0,) * len(during))
        return [
            Gauge(component=name, aspect=Aspect.REQUESTS, statistic="sum", track=asked),
            Gauge(component=name, aspect=Aspect.FAILURES, statistic="mean", track=usual),
        ]

    evidence = ComponentEvidence(
        graph=DependencyGraph.of([("front", "cart"), ("cart", "wrong-table")]),
        entry="front", symptom=Aspect.FAILURES,
        gauges=(
            *failing("front", 100, 0.3, 0.4), *failing("cart", 100, 0.3, 0.4),
            *failing("wrong-table", 0, 0.3, 0.4),
        ),
    )  # fmt: skip
    assert first(evidence) == "cart"
    known = replace(
        evidence,
        gauges=(*evidence.gauges[:4], *failing("wrong-table", 100, 0.3, 0.4)),
    )
    assert first(known) == "wrong-table"


def test_a_processor_that_only_follows_its_requests_is_not_accused() -> None:
    def loaded(requests: float) -> ComponentEvidence:
        return ComponentEvidence(
            graph=GRAPH,
            gauges=(
                Gauge(component="cart", aspect=Aspect.CPU, statistic="rate", track=track(10, 12, 80, 85)),
                Gauge(
                    component="cart", aspect=Aspect.REQUESTS, statistic="rate",
                    track=track(100, 110, requests, requests),
                ),
            ),
        )  # fmt: skip

    by_load = {item.name: item.score for item in rank_components(loaded(820))}["cart"]
    alone = {item.name: item.score for item in rank_components(loaded(100))}["cart"]
    assert alone > 1.5
    assert by_load < 0.3


def test_waiting_that_the_callee_does_not_account_for_accuses_the_way_to_it() -> None:
    def call(caller: str, callee: str, side: CallSide, *during: float) -> Call:
        return Call(caller=caller, callee=callee, side=side, track=track(0.004, *during))

    calls = (
        call("cart", "store", CallSide.CALLER, 0.004, 0.4, 0.4),
        call("cart", "store", CallSide.CALLEE, 0.004, 0.004, 0.004),
        call("search", "store", CallSide.CALLER, 0.004, 0.4, 0.4),
        call("front", "cart", CallSide.CALLER, 0.004, 0.4, 0.4),
        call("front", "cart", CallSide.CALLEE, 0.004, 0.4, 0.4),
    )
    assert first(ComponentEvidence(graph=GRAPH, calls=calls)) == "store"


def line(component: str, event: str, usual: int, *during: int, error: bool = False) -> EventCount:
    return EventCount(
        component=component,
        kind=EventKind.LINE,
        event=event,
        is_error=error,
        usual=usual,
        during=during,
    )


def test_a_step_that_no_longer_follows_the_others_accuses_its_component() -> None:
    events = (
        line("cart", "received", 20, 20, 18, 22), line("cart", "priced", 20, 20, 18, 22),
        line("cart", "stored", 20, 20, 0, 0),
        # Nobody calls it any more: all its lines are gone, and that is no fault of its own.
        line("store", "read", 20, 10, 0, 0), line("store", "sent", 20, 10, 0, 0),
        line("front", "page failed", 0, 0, 9, 9, error=True),
    )  # fmt: skip
    ranked = rank_components(ComponentEvidence(graph=GRAPH, events=events))
    assert ranked[0].name == "cart"
    assert {item.name: item.score for item in ranked}["store"] == 0


def test_a_rare_line_that_stays_away_says_nothing() -> None:
    events = (
        line("cart", "a", 2, 2, 1, 1),
        line("cart", "b", 2, 2, 1, 1),
        line("cart", "c", 2, 0, 0, 0),
    )
    assert rank_components(ComponentEvidence(graph=GRAPH, events=events))[0].score == 0


def test_waiting_between_spans_accuses_what_all_waiters_call() -> None:
    def span(who: str, caller: str | None, role: SpanRole, usual: float, during: float) -> SpanTime:
        return SpanTime(
            component=who, caller=caller, operation="call", role=role,
            usual=(20.0, 20 * usual), during=((20.0, 20 * usual), (20.0, 20 * during)),
        )  # fmt: skip

    spans = (
        span("cart", None, SpanRole.CLIENT, 0.01, 2.0), span("store", "cart", SpanRole.SERVER, 0.005, 0.005),
        span("search", None, SpanRole.CLIENT, 0.01, 2.0), span("store", "search", SpanRole.SERVER, 0.005, 0.005),
        span("front", None, SpanRole.CLIENT, 0.05, 4.1), span("cart", "front", SpanRole.SERVER, 0.04, 4.05),
        span("search", "front", SpanRole.SERVER, 0.0, 0.0),
    )  # fmt: skip
    assert first(ComponentEvidence(graph=GRAPH, spans=spans)) == "store"


def test_equal_scores_put_the_deeper_component_first() -> None:
    ranked = rank_components(ComponentEvidence(graph=GRAPH, entry="front"))
    assert [item.name for item in ranked] == ["store", "batch", "cart", "search", "front"]


@pytest.mark.parametrize("seed", range(5))
def test_other_names_and_another_order_change_nothing(seed: int) -> None:
    chance = random.Random(seed)
    evidence = slow_store()
    names = list(GRAPH.nodes)
    other = dict(zip(names, chance.sample([f"n{at}" for at in range(99)], len(names)), strict=True))
    gauges = [replace(one, component=other[one.component]) for one in evidence.gauges]
    chance.shuffle(gauges)
    calls = [(other[a], other[b]) for a, below in GRAPH.callees.items() for b in below]
    renamed = ComponentEvidence(
        graph=DependencyGraph.of(calls),
        entry=other["front"],
        symptom=Aspect.LATENCY,
        gauges=tuple(gauges),
    )
    wanted = [(other[item.name], item.score) for item in rank_components(evidence) if item.score]
    assert [(item.name, item.score) for item in rank_components(renamed) if item.score] == wanted


def test_without_counted_requests_the_loss_of_one_stands_for_all() -> None:
    evidence = slow_store()
    uncounted = tuple(one for one in evidence.gauges if one.aspect is not Aspect.REQUESTS)
    assert first(replace(evidence, gauges=uncounted)) == "store"


def test_where_nobody_says_who_noticed_the_walk_begins_at_the_outermost_that_lost_most() -> None:
    assert first(replace(slow_store(), entry=None)) == "store"


def test_lateness_that_was_followed_down_the_graph_accuses_nobody_a_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = rank_components(slow_store())
    assert {reason.kind for item in plain for reason in item.reasons} == {"lost"}
    # However much a late answer may weigh elsewhere, here it has been used already.
    monkeypatch.setattr("bot.diagnosis.components.gauges._LATENCY", 50.0)
    assert first(slow_store()) == "store"
