"""What another site, another day or a neighbour's trouble must not change; each guard where it decides."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bot.cause import FindingTest, Movement
from bot.diagnosis.blind_spots import find_blind_spots
from bot.diagnosis.collect_metrics import share_beyond
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.engine import assess
from bot.diagnosis.facts import Facts, establish
from bot.diagnosis.judge import Bench, Verdict
from bot.diagnosis.observation import Observation
from bot.diagnosis.plan import Scope
from bot.diagnosis.trace_gaps import clock_skews, orphans
from bot.diagnosis.wording import describe
from bot.domain.evidence import Sample, Series, SourceState
from bot.domain.hypothesis import Hypothesis
from bot.inventory import Service
from bot.source import Span
from tests.diagnosis.worlds import (
    AT,
    CATALOGUE,
    LOADER,
    NODE,
    ONSET,
    SERVICE,
    SURGE,
    WINDOW,
    probe,
    reading,
    series,
    without,
    world,
)

WAITING = {**LOADER, "host.io_pressure": 0.3, "host.blocked": 8.0}


def first(collected: Collected) -> Hypothesis:
    return assess(collected, CATALOGUE, SERVICE).hypotheses[0]


def seen(collected: Collected, name: str) -> Observation:
    return establish(collected, CATALOGUE).observations[name][0]


def with_reading(collected: Collected, name: str, found: Reading) -> Collected:
    return replace(collected, now={**collected.now, name: found})


def test_a_neighbours_disk_that_was_slow_long_before_explains_no_wait() -> None:
    calm = series(0.003, 0.003, labels={"node": NODE, "device": "sda"})
    other = {"node": NODE, "device": "md9"}
    earlier = series(0.003, 0.15, labels=other, onset=ONSET - timedelta(minutes=12))
    together = series(0.003, 0.15, labels=other)
    base = world(WAITING, probes=[probe("process_threads", "proc.blocked_io")])
    bystander = with_reading(base, "disk.latency", reading("disk.latency", calm, earlier))
    culprit = with_reading(base, "disk.latency", reading("disk.latency", calm, together))
    assert first(bystander).chain == ("data_loading_blocked",)
    assert first(culprit).chain == ("data_loading_blocked", "disk_io_saturation")


def test_logs_that_grow_after_the_disk_was_slow_are_no_root() -> None:
    blocked = [probe("process_threads", "proc.blocked_io"), probe("host_disk", "disk.latency_high")]
    late = {"logs.shipped": ONSET + timedelta(minutes=5)}
    assert first(world(SURGE, probes=blocked)).chain[-1] == "log_write_surge"
    assert first(world(SURGE, probes=blocked, onsets=late)).chain[-1] == "disk_io_saturation"


def test_a_chain_whose_next_link_nobody_could_see_is_not_called_likely() -> None:
    blocked = [probe("process_threads", "proc.blocked_io"), probe("host_disk", "disk.latency_high")]
    calm_logs = world({**SURGE, "logs.shipped": 60.0}, probes=blocked)
    unseen = without(calm_logs, "logs.shipped")
    for name in ("logs.bytes", "logs.bytes_others"):
        calm_logs = with_reading(calm_logs, name, reading(name, series(900.0, 900.0)))
    unseen = replace(
        unseen,
        states={**unseen.states, "logs": SourceState.UNREACHABLE},
        service_lines=(), node_lines=(),
        probes=tuple(result for result in unseen.probes if result.probe != "log_health"),
    )  # fmt: skip
    assert first(calm_logs).cause == first(unseen).cause == "disk_io_saturation"
    assert first(calm_logs).probability > 0.7 > first(unseen).probability


def test_one_clean_replica_excludes_nothing_of_one_that_nobody_looked_at() -> None:
    def verdict(*results: str, strict: bool) -> Verdict:
        both = replace(world(), nodes=(NODE, "node-2"))
        golden = [
            probe("golden_set", finding, node=node)
            for node, finding in zip((NODE, "node-2"), results, strict=False)
        ]
        facts = establish(replace(both, probes=tuple(golden)), CATALOGUE)
        test = FindingTest(finding="model.golden_ok")
        return Bench(facts, CATALOGUE, None, strict=strict).judge(test).verdict

    assert verdict("model.golden_ok", strict=True) is Verdict.UNKNOWN
    assert verdict("model.golden_ok", strict=False) is Verdict.TRUE
    assert verdict("model.golden_ok", "model.golden_ok", strict=True) is Verdict.TRUE
    assert verdict("model.golden_ok", "model.nan_output", strict=False) is Verdict.FALSE


def counted(per_minute: Sequence[int], onset: datetime) -> Reading:
    """Lines a minute: what is given, over and over, until the onset; a store leaves empty minutes out."""
    minutes = [
        WINDOW.start + timedelta(minutes=at) for at in range(1, round(WINDOW.seconds / 60) + 1)
    ]
    samples = tuple(
        Sample(at=at, value=float(per_minute[n % len(per_minute)]))
        for n, at in enumerate(minutes)
        if at < onset and per_minute[n % len(per_minute)]
    )
    one = Series(name="", labels={}, unit="", samples=samples, step_seconds=60)
    return reading("logs.lines", one)


def test_few_lines_a_minute_that_stop_for_long_have_stopped() -> None:
    long_ago = with_reading(world(), "logs.lines", counted([1, 2, 1], ONSET))
    assert "logs_missing" in {str(kind) for kind in establish(long_ago, CATALOGUE).incident.kinds}
    just_now = with_reading(world(), "logs.lines", counted([1, 2, 1], AT - timedelta(minutes=6)))
    assert not establish(just_now, CATALOGUE).incident.is_seen


def noisy(before: float, during: float, share: float) -> Series:
    noise = random.Random(4)
    plain = series(before, during)
    return replace(
        plain,
        samples=tuple(
            replace(item, value=(item.value or 0) * (1 + noise.uniform(-share, share)))
            for item in plain.samples
        ),
    )


def test_a_noisy_gauge_is_judged_like_a_rate_over_several_scrapes() -> None:
    fallen = with_reading(
        world(), "quality.ratio", reading("quality.ratio", noisy(0.93, 0.76, 0.1))
    )
    level = with_reading(world(), "quality.ratio", reading("quality.ratio", noisy(0.93, 0.93, 0.1)))
    assert seen(fallen, "quality.ratio").moved() is Movement.DOWN
    assert seen(level, "quality.ratio").moved() is Movement.FLAT


def test_what_moved_before_the_symptom_is_compared_with_the_time_before_that() -> None:
    early = ONSET - timedelta(minutes=25)
    collected = world(
        {"latency.client": 0.6, "input.length": 14_000.0}, onsets={"input.length": early}
    )
    length = seen(collected, "input.length")
    assert length.moved() is Movement.UP
    assert length.before is not None
    assert length.before.middle < 4_100


def spans(until: datetime) -> tuple[Span, ...]:
    found = []
    at, n = WINDOW.start, 0
    while at < until:
        found.append(
            Span(
                trace_id=f"{n:032x}", span_id="1", parent=None, service=SERVICE.name, operation="serve",
                start_us=round(at.timestamp() * 1e6), duration_us=50_000, tags={},
            )
        )  # fmt: skip
        at, n = at + timedelta(minutes=2), n + 1
    return tuple(found)


def test_traces_that_stop_while_all_else_is_well_are_the_symptom() -> None:
    gone = replace(
        world(probes=[probe("trace_health", "trace.exporter_failing")]),
        spans=spans(AT - timedelta(minutes=40)),
    )
    assert first(gone).cause == "missing_traces"
    assert assess(gone, CATALOGUE, SERVICE).symptoms[0].id == "traces_missing"
    flowing = replace(gone, spans=spans(AT))
    assert first(flowing).cause == "not_established"


def bucket(bound: str, value: float) -> Series:
    return Series(
        name="",
        labels={"le": bound},
        unit="",
        samples=(Sample(at=AT, value=value),),
        step_seconds=0,
    )


def test_a_quantile_at_the_largest_bucket_is_told_as_at_least() -> None:
    counts = [bucket("0.5", 0.4), bucket("10.0", 6.9), bucket("+Inf", 10.0)]
    assert share_beyond(counts) == (10.0, pytest.approx(0.31))
    assert share_beyond([bucket("10.0", 0.0), bucket("+Inf", 0.0)]) is None
    capped = replace(
        reading("latency.tail", series(0.4, 10.0)), query="histogram_quantile(0.99, x)",
        beyond=(9.9, 0.31),
    )  # fmt: skip
    told = describe(seen(with_reading(world(), "latency.tail", capped), "latency.tail"))
    assert "at least 9.9 s" in told.en
    assert "31 %" in told.en
    assert "至少" in told.zh


def test_a_quantile_of_nothing_is_told_as_no_requests() -> None:
    nothing = replace(
        series(0, 0), samples=tuple(replace(item, value=None) for item in series(0, 0).samples)
    )
    idle = replace(reading("latency.tail", nothing), query="histogram_quantile(0.99, x)", dropped=9)
    collected = with_reading(world(), "latency.tail", idle)
    assert "no requests" in describe(seen(collected, "latency.tail")).en
    facts: Facts = establish(collected, CATALOGUE)
    told = [spot.why.en for spot in find_blind_spots(collected, facts)]
    assert any("no denominator" in why for why in told)


def test_clocks_that_disagree_and_lost_parents_are_told() -> None:
    def span(name: str, parent: str | None, service: str, start: int, **more: object) -> Span:
        return Span(
            trace_id=str(more.pop("trace", "ab" * 16)), span_id=name, parent=parent, service=service,
            operation=name, start_us=start, duration_us=100, tags={}, **more,  # type: ignore[arg-type]
        )  # fmt: skip

    found = (
        span("root", None, "front", 1_000_000),
        span("work", "root", "back", 640_000, trace="ab" * 8),
        span("after", "root", "back", 90_000, follows=True),
        span("lost", None, "front", 1_000_100, parent_missing=True),
    )
    assert clock_skews(found) == {("front", "back"): 0.36}
    assert orphans(found) == 1
    collected = replace(world(), spans=found)
    told = " ".join(
        spot.why.en for spot in find_blind_spots(collected, establish(collected, CATALOGUE))
    )
    assert "360 ms" in told
    assert "parent" in told


def test_a_model_server_that_names_only_its_model_is_asked_by_it() -> None:
    scope = Scope(service=Service(name="score-trt"), nodes=(), rate_seconds=60)
    (asked,) = scope.by_model("rate(nv_inference_count{$service}[$w])")
    assert asked == 'rate(nv_inference_count{model=~"score-trt|score|trt"}[60s])'
    assert not scope.by_model("rate(http_requests_total{$service}[$w])")
    named = Scope(service=replace(scope.service, selectors={"app": "x"}), nodes=(), rate_seconds=60)
    assert not named.by_model("rate(nv_inference_count{$service}[$w])")
