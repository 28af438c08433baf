"""Each of these cases needs one guard: with it the answer is right, without it another or surer than it may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.domain.hypothesis import Diagnosis
from bot.learning.case_folder import read_case
from bot.learning.cases import replay
from tests.bench.diagnosis import ABLATIONS
from tests.bench.guards import GUARDS

CASES = Path(__file__).parent / "cases"
CATALOGUE = load_causes([shipped_causes()])


def said(answer: Diagnosis) -> tuple[str, tuple[str, ...], bool]:
    first = answer.hypotheses[0]
    return first.cause, first.chain, first.probability >= 0.7


@pytest.mark.parametrize(
    ("name", "guard", "without"),
    [
        (
            "order",
            "order in time ignored",
            ("disk_io_saturation", ("data_loading_blocked", "disk_io_saturation"), False),
        ),
        (
            "company",
            "moves need no company",
            ("disk_io_saturation", ("data_loading_blocked", "disk_io_saturation"), False),
        ),
        ("families", "families not asked", ("dependency_failure", ("dependency_failure",), True)),
    ],
)
def test_without_its_guard_the_case_is_answered_differently(
    name: str, guard: str, without: tuple[str, tuple[str, ...], bool]
) -> None:
    case = read_case(CASES / f"GUARD-{name}.case")
    assert case.truth is not None
    shipped = said(replay(case, CATALOGUE))
    assert shipped[:2] == (case.truth.cause, case.truth.chain)
    if guard in GUARDS:
        with GUARDS[guard]():
            assert said(replay(case, CATALOGUE)) == without
    else:
        assert said(replay(case, ABLATIONS[guard][1](CATALOGUE))) == without
    assert shipped != without
