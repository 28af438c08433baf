"""What counts as something seen where no metric of callers moved and nobody declared anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bot.diagnosis.collected import Collected
from bot.diagnosis.engine import assess
from bot.diagnosis.facts import establish
from bot.domain.change import ChangeKind
from bot.domain.evidence import Series
from bot.domain.hypothesis import NOT_ESTABLISHED, Diagnosis
from bot.source import LogLine
from tests.diagnosis.worlds import (
    AT,
    CATALOGUE,
    NODE,
    ONSET,
    SERVICE,
    WINDOW,
    change,
    line,
    reading,
    series,
    world,
)

LOST = (
    "CUDA out of memory. Tried to allocate 3.10 GiB. 19.80 GiB is allocated by PyTorch, and 17.35 GiB is"
    " reserved by PyTorch but unallocated."
)


def fragmented(*lines: LogLine) -> Collected:
    """Reserved memory that nobody uses grows, and callers' metrics show nothing."""
    on_node = {"node": NODE}
    calm = world(lines=lines)
    return replace(
        calm,
        now={
            **calm.now,
            "allocator.unused": reading("u", series(3e9, 17e9, labels=on_node)),
            "allocator.unused_share": reading("s", series(0.1, 0.45, labels=on_node)),
        },
        probes=(),
    )


def judged(collected: Collected) -> Diagnosis:
    return assess(collected, CATALOGUE, SERVICE)


def test_work_that_the_service_lost_by_its_own_log_is_something_seen() -> None:
    found = judged(fragmented(line(LOST)))
    assert found.hypotheses[0].cause == "gpu_memory_fragmentation"
    assert [item.id for item in found.symptoms] == ["errors"]
    assert "17.35 GiB" in found.symptoms[0].summary.en
    assert found.symptoms[0].since == ONSET + timedelta(seconds=30)
    assert "errors" in found.hypotheses[0].explains


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((), id="nothing"),
        pytest.param((line("ERROR fetch failed, retrying"),), id="a handled error"),
        pytest.param(
            tuple(line(LOST, WINDOW.start + timedelta(minutes=4 * at)) for at in range(1, 22)),
            id="as often as ever",
        ),
    ],
)
def test_what_was_handled_or_was_always_there_is_nothing_seen(lines: tuple[LogLine, ...]) -> None:
    found = judged(fragmented(*lines))
    assert found.symptoms == ()
    assert found.hypotheses[0].cause == NOT_ESTABLISHED


def pool(name: str, before: float, during: float, since: datetime | None = None) -> Series:
    found = series(before, during, labels={"pool": name}, onset=ONSET)
    return replace(
        found, samples=tuple(item for item in found.samples if since is None or item.at >= since)
    )


def pools(*found: Series, name: str = "input.cut_off") -> Collected:
    calm = world(
        lines=[line("bfloat16 is not supported on compute capability 7.0; casting to float16")],
        changes=[change("c1", "pool with V100 added", ONSET, ChangeKind.DEPLOY)],
    )
    return replace(calm, now={**calm.now, name: reading(name, *found)})


def test_a_new_pool_is_measured_by_the_others_and_shows_the_symptom() -> None:
    collected = pools(pool("old", 0.05, 0.05), pool("new", 0.99, 0.99, since=ONSET))
    found = judged(collected)
    assert found.hypotheses[0].cause == "numeric_overflow"
    (symptom,) = found.symptoms
    assert symptom.id == "quality"
    assert "(new): 99 % since it began; all others 5 % to 5 %" in symptom.summary.en
    assert "(new)" in symptom.summary.zh
    assert "其余均为" in symptom.summary.zh
    assert symptom.since == ONSET
    assert establish(collected, CATALOGUE).incident.window.start == ONSET


def test_a_new_pool_that_began_well_is_sick_from_where_it_left_the_others() -> None:
    new = pool("new", 0.04, 0.99, since=ONSET - timedelta(seconds=45))
    found = establish(pools(pool("old", 0.05, 0.05), new), CATALOGUE).incident
    assert found.window.start == ONSET
    assert found.earliest == ONSET - timedelta(seconds=15)


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([pool("old", 0.05, 0.05)], id="as good as the others"),
        pytest.param([], id="no others"),
        pytest.param([pool("b", 0.9, 0.9), pool("a", 0.05, 0.05)], id="one of the others is no better"),
    ],
)  # fmt: skip
def test_a_new_pool_alone_is_no_symptom(others: Sequence[Series]) -> None:
    level = 0.99 if len(others) != 1 else 0.06
    found = establish(pools(*others, pool("new", level, level, since=ONSET)), CATALOGUE).incident
    assert not found.is_seen


def test_a_pool_that_was_always_another_is_no_newcomer() -> None:
    found = establish(pools(pool("old", 0.05, 0.05), pool("odd", 0.99, 0.99)), CATALOGUE).incident
    assert not found.is_seen


def test_a_pool_that_fell_silent_measures_nobody() -> None:
    gone = pool("gone", 0.05, 0.05)
    gone = replace(gone, samples=gone.samples[: len(gone.samples) // 3])
    found = establish(pools(gone, pool("new", 0.99, 0.99, since=ONSET)), CATALOGUE).incident
    assert not found.is_seen


def test_a_fall_of_what_should_be_high_is_measured_the_other_way_round() -> None:
    old, new = pool("old", 0.93, 0.93), pool("new", 0.4, 0.4, since=ONSET)
    low = establish(pools(old, new, name="quality.ratio"), CATALOGUE).incident
    assert low.is_seen
    high = pool("new", 0.99, 0.99, since=ONSET)
    assert not establish(pools(old, high, name="quality.ratio"), CATALOGUE).incident.is_seen


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("logits finite=False nan_ratio=1.0 first_bad_layer=27", True),
        ('{"nan_count": 12}', True),
        ("is_finite: false", True),
        ("loss is NaN", True),
        ("logits finite=True nan_ratio=0.0", False),
        ("nan_count=0", False),
        ("nanny service ready", False),
    ],
)
def test_numbers_that_are_none_are_read_from_the_figures_of_a_line(text: str, counts: bool) -> None:
    sick = replace(pools(pool("old", 0.05, 0.05), pool("new", 0.99, 0.99, since=ONSET)), changes=())
    sick = replace(sick, service_lines=(line(text, AT - timedelta(minutes=3)),))
    first = next(item for item in judged(sick).hypotheses if item.cause == "numeric_overflow")
    assert any("no numbers" in reason.summary.en for reason in first.supports) is counts
