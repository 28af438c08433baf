"""Every saved case is judged again by today's knowledge and still ends in what people confirmed.

Cases are written by `rca-bot export INC-n --format case --out DIR`. Those under `tests/diagnosis/cases/` always run;
`RCA_CASES=DIR` runs the team's own beside them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.learning.case_folder import read_case
from bot.learning.cases import replay

FOLDERS = [Path(__file__).parent / "cases", *map(Path, filter(None, [os.environ.get("RCA_CASES")]))]
CASES = [path for folder in FOLDERS for path in sorted(folder.iterdir()) if path.is_dir()]


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_a_saved_case_still_ends_in_its_confirmed_cause(folder: Path) -> None:
    case = read_case(folder)
    assert case.truth is not None
    found = replay(case, load_causes([shipped_causes()]))
    assert found.hypotheses[0].cause == case.truth.cause
    assert found.hypotheses[0].chain == case.truth.chain
