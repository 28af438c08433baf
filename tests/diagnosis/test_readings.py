"""How a reading is told: a mark and its sentence never disagree, and a moment is no duration."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.cause import LogPlace, LogTest, Movement, SignalTest
from bot.diagnosis.charts import deciding_charts
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.engine import assess
from bot.diagnosis.facts import establish
from bot.diagnosis.judge import Bench, Verdict
from bot.domain.evidence import Evidence, Sample, Series
from bot.domain.hypothesis import Layer, LayerState
from bot.source import LogLine
from tests.diagnosis.worlds import (
    AT,
    CATALOGUE,
    NODE,
    ONSET,
    SERVICE,
    WINDOW,
    probe,
    reading,
    series,
    world,
)

ON_NODE = {"node": NODE}
AS_BEFORE = ("as before", "与之前一致")


def cited(collected: Collected, test: SignalTest) -> Evidence:
    judgement = Bench(establish(collected, CATALOGUE), CATALOGUE, NODE).judge(test)
    assert judgement.verdict is Verdict.TRUE
    (found,) = judgement.evidence
    return found


def with_now(collected: Collected, **found: Reading) -> Collected:
    now = {name.replace("__", "."): one for name, one in found.items()}
    return replace(collected, now={**collected.now, **now})


def held(before: float, during: float, name: str) -> Collected:
    return with_now(
        world(), **{name.replace(".", "__"): reading(name, series(before, during, labels=ON_NODE))}
    )


@pytest.mark.parametrize(
    ("test", "level"),
    [
        (SignalTest(signal="engine.running", movement=Movement.ABOVE, value=1), 21.0),
        (SignalTest(signal="net.retransmits", movement=Movement.ABOVE, value=0.02), 0.03),
        (SignalTest(signal="host.cpu_pressure", movement=Movement.BELOW, value=0.2), 0.05),
    ],
)
def test_level_beyond_a_bound_as_before_is_told_so_and_is_nothing_odd(
    test: SignalTest, level: float
) -> None:
    evidence = cited(held(level, level, test.signal), test)
    assert not evidence.is_abnormal
    assert evidence.summary.en.endswith(AS_BEFORE[0])
    assert evidence.summary.zh.endswith(AS_BEFORE[1])


def test_level_that_came_to_lie_beyond_a_bound_is_odd_and_told_as_a_move() -> None:
    test = SignalTest(signal="engine.running", movement=Movement.ABOVE, value=1)
    evidence = cited(held(4.0, 21.0, test.signal), test)
    assert evidence.is_abnormal
    assert "4 requests → 20.9 requests since 20:15:00Z" in evidence.summary.en


def test_move_by_a_mark_finer_than_the_signals_is_told_as_a_move() -> None:
    test = SignalTest(signal="input.cut_off", movement=Movement.UP, ratio=1.4, delta=0.05)
    evidence = cited(held(0.1, 0.24, test.signal), test)
    assert evidence.is_abnormal
    assert "10 % → 23.8 %" in evidence.summary.en


def climbing(first: float, last: float, seconds: float, step: float) -> Series:
    count = round(seconds / step)
    return Series(
        name="", labels=ON_NODE, unit="", step_seconds=step,
        samples=tuple(
            Sample(at=AT - timedelta(seconds=seconds - at * step), value=first + (last - first) * at / count)
            for at in range(count + 1)
        ),
    )  # fmt: skip


def test_slow_growth_is_told_over_the_hours_in_which_it_shows() -> None:
    name = "process.resident"
    hours = Reading(query="q", window=WINDOW, series=(climbing(140e9, 149e9, 6 * 3_600, 60),))
    collected = with_now(
        world(), process__resident=reading(name, climbing(147e9, 149e9, 5_400, 15))
    )
    test = SignalTest(signal=name, movement=Movement.RISING, delta=2e9)
    evidence = cited(replace(collected, trends={name: hours}), test)
    assert evidence.is_abnormal
    assert "9 GB more over the last hours" in evidence.summary.en
    assert "增长了 9 GB" in evidence.summary.zh


def test_level_with_too_few_samples_before_is_told_with_its_value() -> None:
    young = series(0.99, 0.99, labels=ON_NODE)
    young = replace(young, samples=young.samples[-12:])
    test = SignalTest(signal="input.cut_off", movement=Movement.ABOVE, value=0.7)
    evidence = cited(with_now(world(), input__cut_off=reading("input.cut_off", young)), test)
    assert evidence.is_abnormal
    assert "98.9 %; too few samples before" in evidence.summary.en


def standing() -> Collected:
    """Wrong for longer than the window: nothing moved in it, but other days at this hour were far better."""
    name = "latency.client"
    other = replace(reading(name, series(0.1, 0.1)))
    collected = with_now(
        world(),
        latency__client=reading(name, series(6.3, 6.3)),
        engine__waiting=reading("engine.waiting", series(16.0, 16.0, labels=ON_NODE)),
    )
    return replace(collected, history={name: (other, other)})


def test_what_is_wrong_for_longer_than_the_window_is_never_told_as_before() -> None:
    collected = standing()
    found = assess(collected, CATALOGUE, SERVICE)
    odd = [item for item in found.evidence if item.is_abnormal]
    latency = next(item for item in odd if item.plugin == "latency.client")
    assert latency.summary.en == found.symptoms[0].summary.en
    assert "other days" in latency.summary.en
    test = SignalTest(signal="engine.waiting", movement=Movement.ABOVE, value=3)
    queue = cited(collected, test)
    assert queue.is_abnormal
    assert queue.summary.en.endswith("16 requests all the time")
    assert not [item.summary for item in odd if item.summary.en.endswith(AS_BEFORE[0])]


def test_fall_that_the_signals_own_mark_calls_a_move_is_told_as_one() -> None:
    fallen = with_now(world(), quality__ratio=reading("quality.ratio", series(0.93, 0.87)))
    layers = {item.layer: item for item in assess(fallen, CATALOGUE, SERVICE).layers}
    assert layers[Layer.MODEL].state is LayerState.ABNORMAL
    assert "93 % → 87 %" in layers[Layer.MODEL].why.en


def started(first_hours: float, *, again: bool) -> Series:
    """The start of a process, hours before the moment asked about; with `again`, it was restarted at the onset."""
    first, anew = AT.timestamp() - first_hours * 3_600, ONSET.timestamp()
    count = round(WINDOW.seconds / 15)
    moments = [WINDOW.start + timedelta(seconds=15 * at) for at in range(count + 1)]
    samples = (Sample(at=at, value=anew if again and at >= ONSET else first) for at in moments)
    return Series(name="", labels=ON_NODE, unit="", samples=tuple(samples), step_seconds=15)


@pytest.mark.parametrize("again", [True, False])
def test_restart_moves_the_start_of_the_process_and_is_told_as_moments(again: bool) -> None:
    collected = with_now(world(), process__start=reading("process.start", started(9, again=again)))
    movement = Movement.UP if again else Movement.FLAT
    evidence = cited(collected, SignalTest(signal="process.start", movement=movement))
    assert evidence.is_abnormal is again
    assert "2026-11-30 11:30:00Z" in evidence.summary.en
    assert ("→ 2026-11-30 20:15:00Z" in evidence.summary.en) is again
    assert " s" not in evidence.summary.en.partition(": ")[2].replace(" since", "")


def test_start_of_a_process_is_charted_as_the_time_since_then() -> None:
    collected = with_now(
        world(probes=[probe("model_artifact", "model.changed_after_start")]),
        quality__ratio=reading("quality.ratio", series(0.93, 0.6)),
        process__start=reading("process.start", started(9, again=False)),
    )
    charts = deciding_charts(collected, assess(collected, CATALOGUE, SERVICE), CATALOGUE)
    (panel,) = [one for chart in charts for one in chart.panels if one.query == "q:process.start"]
    values = [sample.value for one in panel.series for sample in one.samples]
    assert (panel.unit, panel.title.en) == ("s", "time since start of the process")
    assert values[-1] == pytest.approx(9 * 3_600)
    assert values[0] == pytest.approx(9 * 3_600 - WINDOW.seconds)
    assert panel.threshold is None


@pytest.mark.parametrize(
    ("labels", "who"),
    [({"service": "a"}, "a"), ({"pod": "a-0"}, "a-0"), ({"node": "n"}, "n"), ({}, SERVICE.name)],
)
def test_lines_are_told_by_whoever_their_stream_names(labels: dict[str, str], who: str) -> None:
    at = round(ONSET.timestamp()) * 10**9
    said = LogLine(at_ns=at, labels=labels, text="CUDA out of memory")
    collected = replace(world({"latency.client": 0.6}), service_lines=(said,))
    test = LogTest(pattern="out of memory", place=LogPlace.SERVICE)
    judgement = Bench(establish(collected, CATALOGUE), CATALOGUE, None).judge(test)
    assert f"1 line(s) of {who}, first" in judgement.evidence[0].summary.en
