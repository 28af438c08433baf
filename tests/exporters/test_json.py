"""The JSON export is the published shape, in either language, finished or not."""

from __future__ import annotations

import json
from functools import cache

import pytest
from jsonschema import Draft202012Validator

from bot.domain.text import Locale
from bot.exporter import ExportOptions
from bot.exporters.json import export
from bot.locales import templates_root
from tests.report.sample import sample_case
from tests.report.sample_facts import CAUSE


@cache
def schema() -> Draft202012Validator:
    path = templates_root() / "report" / "postmortem.schema.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


def exported(locale: Locale = Locale.EN, *, is_established: bool = True) -> dict:
    report = sample_case(locale=locale, is_established=is_established).compile()
    return json.loads(export(report, ExportOptions(locale=locale)).content)


@pytest.mark.parametrize("locale", list(Locale))
@pytest.mark.parametrize("is_established", [True, False])
def test_export_fits_the_published_schema(locale, is_established):
    schema().validate(exported(locale, is_established=is_established))


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: value.pop("fix"),
        lambda value: value["incident"].update(status="closed"),
        lambda value: value["timeline"][0].update(at="2026-11-30 08:15"),
        lambda value: value["timeline"][0].update(withheld=True),
        lambda value: value["durations"].update(time_to_resolve_s=-1),
        lambda value: value.update(extra=1),
    ],
    ids=["no-fix", "status", "time", "withheld-with-text", "negative", "extra-key"],
)
def test_schema_refuses_what_the_contract_does_not_allow(damage):
    value = exported()
    damage(value)
    assert not schema().is_valid(value)


def test_timeline_is_gapless_and_ordered():
    timeline = exported()["timeline"]
    assert [(line["at"], line["seq"]) for line in timeline] != []
    assert sorted(line["seq"] for line in timeline) == list(range(1, len(timeline) + 1))


def test_withheld_entry_has_no_text_and_no_history():
    line = next(line for line in exported()["timeline"] if line["withheld"])
    assert (line["text"], line["history"]) == (None, [])


def test_edited_entry_keeps_its_earlier_wording():
    line = next(line for line in exported()["timeline"] if line["history"])
    assert line["text"] == "GPU clocks look normal"
    assert [item["text"] for item in line["history"]] == ["GPU clocks look odd"]


def test_texts_follow_the_locale_and_keys_do_not():
    english, chinese = exported(Locale.EN), exported(Locale.ZH_CN)
    assert english.keys() == chinese.keys()
    assert english["root_cause"]["cause"] == chinese["root_cause"]["cause"] == CAUSE
    assert "allocator lock" in english["root_cause"]["deep_cause"]
    assert "分配器锁" in chinese["root_cause"]["deep_cause"]
    assert chinese["checklist_changes"][0]["reason"] == "INC-7：由 gpu_allocator 定案"


def test_unfounded_incident_names_no_cause():
    value = exported(is_established=False)
    assert value["root_cause"] == {
        "cause": "not_established",
        "trigger": None,
        "deep_cause": None,
        "prevention": None,
        "chain": [],
        "evidence": [],
    }
    assert value["fix"]["verified"] is None


def test_refs_of_hypotheses_are_ids_of_evidence():
    value = exported()
    known = {item["id"] for item in value["evidence"]}
    refs = {
        entry["ref"] for item in value["hypotheses"] for entry in (*item["for"], *item["against"])
    }
    assert refs
    assert refs <= known
