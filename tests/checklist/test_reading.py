"""Checklist files are read strictly, and a fault says where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app import lint_knowledge
from bot.checklist import lint, load_checklists, parse_checklist, shipped_checklists
from bot.errors import ConfigError
from bot.locales import templates_root

GOOD = """id: own
title: {en: Own, zh-CN: 自有}
matches: [Slow]
items:
  - id: first
    step: information
    probe: host_cpu
    text: {en: "CPU?", zh-CN: "CPU？"}
"""


def faults_of(tmp_path: Path, text: str, name: str = "own.yaml") -> list[str]:
    folder = tmp_path / "checklists"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return [str(fault).removeprefix(f"{folder}/") for fault in lint([tmp_path])]


def test_shipped_checklists_have_no_fault_and_one_is_for_any_incident():
    assert lint([shipped_checklists()]) == []
    shipped = load_checklists([shipped_checklists()])
    assert [item.id for item in shipped.values() if not item.matches] == ["inference-general"]
    assert all(item.text.zh != item.text.en for each in shipped.values() for item in each.items)


def test_good_file_is_read(tmp_path):
    assert faults_of(tmp_path, GOOD) == []
    checklist = parse_checklist(GOOD, Path("own.yaml"))
    assert checklist.matches == ("slow",)
    assert (checklist.items[0].first_line, checklist.items[0].last_line) == (5, 8)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("step: information", "step: lunch", "own.yaml:6: step 'lunch' is none of symptom"),
        ("id: own", "id: other", "own.yaml:1: id is 'other', but the file is named 'own'"),
        ("    probe: host_cpu", "    prob: host_cpu", "own.yaml:7: unknown key 'prob'"),
        (', zh-CN: "CPU？"', "", "own.yaml:8: items.text.zh-CN must be a text"),
        (GOOD[GOOD.index("items:") :], "items: 3\n", "own.yaml:4: items must be a list"),
        ("title: {", "title: [{", "own.yaml:3: no YAML"),
    ],
    ids=["step", "id", "key", "language", "list", "yaml"],
)
def test_fault_names_file_and_line(tmp_path, old, new, fault):
    found = faults_of(tmp_path, GOOD.replace(old, new, 1))
    assert any(line.startswith(fault) for line in found), found


def test_items_have_to_be_last(tmp_path):
    head, items = GOOD.split("items:")
    id_line, rest = head.split("\n", 1)
    text = f"{id_line}\nitems:{items}{rest}"
    assert "own.yaml:2: items must be the last key" in faults_of(tmp_path, text)[0]


def test_team_file_of_the_same_name_takes_the_shipped_one_s_place(tmp_path):
    (tmp_path / "inference-latency.yaml").write_text(
        GOOD.replace("id: own", "id: inference-latency"), encoding="utf-8"
    )
    loaded = load_checklists([shipped_checklists(), tmp_path])
    assert [item.id for item in loaded["inference-latency"].items] == ["first"]


def test_faulty_file_stops_the_load(tmp_path):
    (tmp_path / "own.yaml").write_text("id: own\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"own.yaml:1: title is missing"):
        load_checklists([tmp_path])


@pytest.mark.parametrize(
    "place",
    ["sops", "sops/inference.yaml", "checklists", "checklists/inference-latency.yaml", "causes"],
)
def test_lint_of_one_kind_takes_it_for_no_other(place):
    faults, count = lint_knowledge([templates_root() / place])
    assert faults == [] and count > 0
