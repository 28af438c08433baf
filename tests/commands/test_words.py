"""The table of words: complete, bilingual, agreeing with the agent's probes, and guarded by one policy."""

from __future__ import annotations

import re

import pytest

import commands
from bot.command import Command, Permission, allowed
from bot.registry import collect
from bot.settings import PolicySettings
from commands import _line
from commands._probe_names import FAMILIES, PROBES, args_of, of_family
from commands._words import CHINESE

WORDS = collect(commands, Command)
CONTRACT = [
    "start",
    "status",
    "step",
    "note",
    "symptom",
    "mitigate",
    "probe",
    "chart",
    "hypothesis",
    "changes",
    "role",
    "severity",
    "nodes",
    "export",
    "resolve",
    "checklist",
    "search",
    "stats",
    "drill",
    "help",
]


def test_every_word_of_the_contract_is_there_and_no_other() -> None:
    assert sorted(WORDS) == sorted(CONTRACT)


def test_every_word_says_what_it_does_in_both_languages() -> None:
    for word in WORDS.values():
        assert word.usage.startswith(word.name)
        assert word.summary.en != word.summary.zh
        assert re.search("[\u4e00-\u9fff]", word.summary.zh)
    assert set(CHINESE.values()) <= set(WORDS)


def test_probe_table_is_what_the_agent_carries() -> None:
    import bot.probes
    from bot.argument import ArgumentKind
    from bot.probe import Probe

    carried = collect(bot.probes, Probe)
    for name, probe in carried.items():
        assert PROBES[name].cost == probe.cost.value, name
        needs = any(a.kind is ArgumentKind.SERVICE and a.is_required for a in probe.arguments)
        assert PROBES[name].needs_service == needs, name
        assert set(PROBES[name].takes) == {a.name for a in probe.arguments}, name
        lacking = {
            a.name for a in probe.arguments if a.is_required and a.kind is not ArgumentKind.SERVICE
        }
        assert set(PROBES[name].needs) == lacking, name
    assert set(PROBES) == set(carried)


def test_a_family_tells_each_probe_only_what_it_takes() -> None:
    told = args_of(of_family("gpu"), {"service": "ranker", "gpus": [0], "window_s": 5})
    assert told["gpu_state"] == {"gpus": [0]}
    assert told["gpu_allocator"] == {"service": "ranker", "window_s": 5}
    assert args_of(("host_memory",), {"bogus": 1}) == {"host_memory": {"bogus": 1}}


def test_families_hold_cheap_probes_only() -> None:
    for family in FAMILIES:
        names = of_family(family)
        assert names
        assert {PROBES[name].cost for name in names} == {"cheap"}


@pytest.mark.parametrize(
    ("typed", "meant"), [("statsu", "status"), ("hypotesis", "hypothesis"), ("xyzzy", None)]
)
def test_typo_finds_the_nearest_word(typed: str, meant: str | None) -> None:
    assert _line.nearest(typed, WORDS) == meant


@pytest.mark.parametrize("permission", Permission)
def test_policy_lists_decide_and_a_star_means_everybody(permission: Permission) -> None:
    name = permission.value
    closed = PolicySettings.model_validate({name: ["U0LEAD"]})
    assert allowed(closed, "U0LEAD", permission)
    assert not allowed(closed, "U0SRE", permission)
    assert allowed(PolicySettings(), "U0SRE", permission)
    assert allowed(PolicySettings.model_validate({name: []}), "U0SRE", None)
