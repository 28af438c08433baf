"""What is no number is above no threshold and below none: for the engine's rules and for a checklist's bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.checklist import parse_checklist, shipped_checklists
from bot.checklist.judging import judge_values
from bot.diagnosis.collected import Collected
from bot.diagnosis.engine import assess
from bot.domain.checklist import CheckOutcome
from tests.diagnosis.worlds import CALM, CATALOGUE, ONSET, SERVICE, world

NO_NUMBERS = (math.nan, math.inf, -math.inf)


def since_onset(collected: Collected, name: str, values: Sequence[float | None]) -> Collected:
    """The world in which one signal has these values in turn since the onset."""
    reading = collected.now[name]
    (found,) = reading.series
    samples = tuple(
        replace(sample, value=values[at % len(values)]) if sample.at >= ONSET else sample
        for at, sample in enumerate(found.samples)
    )
    told = replace(reading, series=(replace(found, samples=samples),))
    return replace(collected, now={**collected.now, name: told})


@pytest.mark.parametrize("name", CALM)
def test_no_rule_takes_what_is_no_number_for_more_than_a_gap(name: str) -> None:
    sick = world({"latency.client": 0.9, "latency.server": 0.9})
    gap = assess(since_onset(sick, name, [None]), CATALOGUE, SERVICE)
    assert assess(since_onset(sick, name, NO_NUMBERS), CATALOGUE, SERVICE) == gap


@pytest.mark.parametrize("bound", ["above", "below"])
def test_no_check_is_answered_by_what_is_no_number(bound: str) -> None:
    text = (
        "id: own\ntitle: {en: Own, zh-CN: 自有}\nmatches: [latency]\nitems:\n"
        f"  - {{id: a, step: information, query: up, {bound}: 1, text: {{en: Up?, zh-CN: 在线？}}}}\n"
    )
    (item,) = parse_checklist(text, shipped_checklists() / "own.yaml").items
    assert judge_values(item, NO_NUMBERS)[0] is CheckOutcome.UNKNOWN
    assert judge_values(item, [math.nan, 1.0, math.inf, -math.inf])[0] is CheckOutcome.CLEAN
    worse = 2.0 if bound == "above" else 0.0
    assert judge_values(item, [math.nan, worse])[0] is CheckOutcome.FOUND
