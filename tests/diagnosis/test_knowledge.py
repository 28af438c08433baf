"""Knowledge files: faults have file and line, a team's own cause wins, the shipped ones are clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.diagnosis.knowledge import lint, load_causes, shipped_causes
from bot.errors import ConfigError

GOOD = (shipped_causes() / "gpu_clock_throttling.yaml").read_text(encoding="utf-8")


def test_shipped_knowledge_has_no_fault() -> None:
    assert lint([]) == []


def test_team_cause_of_the_same_id_wins(tmp_path: Path) -> None:
    own = tmp_path / "gpu_clock_throttling.yaml"
    own.write_text(GOOD.replace("prior: 0.04", "prior: 0.2"), encoding="utf-8")
    catalogue = load_causes([shipped_causes(), tmp_path])
    assert catalogue.causes["gpu_clock_throttling"].prior == 0.2
    assert "lock_contention" in catalogue.causes


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("prior: 0.04", "prior: 4", "prior must be between 0 and 1"),
        ("layer: gpu", "layer: gpux", "layer 'gpux' must be one of"),
        ("weight: 3.0", "weight: heavy", "weight must be a number"),
        (
            "signal: gpu.clock, is: down, ratio: 0.9}",
            "signal: gpu.clok, is: down}",
            "unknown signal",
        ),
        ("finding: gpu.throttle_thermal", "finding: gpu.thermal", "unknown finding"),
        ("zh-CN: GPU 降频", "fr: bridage", "unknown key 'fr'"),
        ("category: latency", "category: latency\ncategory: model", "given twice"),
        ("probe: gpu_state", "probe: gpu_stat", "unknown probe"),
    ],
)
def test_fault_names_file_and_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    own = tmp_path / "gpu_clock_throttling.yaml"
    text = GOOD.replace(old, new, 1)
    own.write_text(text, encoding="utf-8")
    faults = [str(fault) for fault in lint([own])]
    assert faults, new
    assert any(said in fault for fault in faults), faults
    expected = text[: text.index(new.split("\n")[0])].count("\n") + 1
    lines = {int(fault.split(":")[1]) for fault in faults if fault.startswith(str(own))}
    assert min(abs(line - expected) for line in lines) <= 2


def test_broken_yaml_is_one_line_with_its_place(tmp_path: Path) -> None:
    own = tmp_path / "broken.yaml"
    own.write_text("id: broken\ntitle: {en: [\n", encoding="utf-8")
    (fault,) = lint([own])
    assert str(fault).startswith(f"{own}:")
    assert "\n" not in str(fault)
    with pytest.raises(ConfigError):
        load_causes([shipped_causes(), tmp_path])


def test_file_name_must_be_the_id(tmp_path: Path) -> None:
    own = tmp_path / "other_name.yaml"
    own.write_text(GOOD, encoding="utf-8")
    assert any("file's name" in str(fault) for fault in lint([own]))
