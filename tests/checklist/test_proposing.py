"""What an incident teaches becomes a diff that can be applied, and is not proposed again once it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.checklist import (
    Checklist,
    apply_change,
    fitting,
    load_checklists,
    parse_checklist,
    propose_for,
    shipped_checklists,
)
from bot.domain.evidence import SourceState
from bot.domain.text import Locale, Localized
from bot.errors import CommandError
from tests.report.sample import sample_case
from tests.report.sample_facts import CAUSE

LINE = Localized("Is pinned memory allocated per request?", "锁页内存是否按请求分配？")

TITLE = Localized("Pinned-memory contention", "锁页内存争用")


@dataclass(frozen=True)
class Cause:
    title: Localized = TITLE
    checklist: Sequence[Localized] = (LINE,)


@dataclass(frozen=True)
class Causes:
    causes: Mapping[str, Cause] = field(default_factory=lambda: {CAUSE: Cause()})


def shipped() -> dict[str, Checklist]:
    return load_checklists([shipped_checklists()])


def after(text: str, diffs: Sequence[str], name: str = "inference-latency") -> Checklist:
    for diff in diffs:
        text = apply_change(text, diff)
    return parse_checklist(text, Path(f"{name}.yaml"))


def test_latency_incident_gets_the_latency_list_in_both_languages():
    incident = sample_case().incident
    assert fitting(incident, shipped()).id == "inference-latency"
    chinese = replace(
        incident,
        title="翻译接口",
        alerts={},
        symptoms=(
            replace(
                incident.symptoms[0], summary=Localized.verbatim("显存持续增长后崩溃"), metric=None
            ),
        ),
    )
    assert fitting(chinese, shipped()).id == "inference-stability"


def test_incident_that_no_list_is_for_gets_the_general_one():
    incident = replace(sample_case().incident, title="odd", alerts={}, symptoms=())
    assert fitting(incident, shipped()).id == "inference-general"


def test_confirmed_cause_adds_its_lines_and_the_deciding_probe():
    (change, reason), *rest = propose_for(sample_case().incident, Causes())
    checklist = after(shipped()["inference-latency"].source, [change.diff])
    added = checklist.items[-2:]
    assert [item.probe for item in added] == ["gpu_allocator", None]
    assert added[1].text == LINE
    assert all(item.learned_from == "INC-7" for item in added)
    assert reason.en.startswith("INC-7: the cause was: Pinned-memory contention")
    assert reason.zh.startswith("INC-7：原因是锁页内存争用")
    assert change.n == 2, "the incident has one change already"
    assert rest == []


def test_reason_is_in_the_language_of_the_incident():
    incident = sample_case(locale=Locale.ZH_CN).incident
    change, reason = propose_for(incident, Causes())[0]
    assert change.reason == reason.zh


def test_unfounded_incident_proposes_no_check_of_a_cause():
    assert propose_for(sample_case(is_established=False).incident, Causes()) == ()


def test_source_that_was_unreachable_becomes_a_check_even_without_a_cause():
    incident = sample_case(is_established=False).incident
    blind = replace(incident, sources={**incident.sources, "traces": SourceState.UNREACHABLE})
    ((change, reason),) = propose_for(blind, Causes())
    checklist = after(shipped()["inference-latency"].source, [change.diff])
    assert checklist.items[-1].id == "source-traces"
    assert "链路追踪" in reason.zh


def test_deciding_probe_moves_before_the_checks_that_found_nothing():
    incident = sample_case().incident
    learned = after(
        shipped()["inference-latency"].source, [propose_for(incident, Causes())[0][0].diff]
    )
    ((change, reason),) = propose_for(incident, Causes(), {learned.id: learned})
    moved = after(learned.source, [change.diff])
    order = [item.probe for item in moved.items]
    assert order.index("gpu_allocator") < order.index("host_cpu")
    assert sorted(item.id for item in moved.items) == sorted(item.id for item in learned.items)
    assert "gpu_allocator" in reason.en


def test_what_is_learned_is_not_proposed_again():
    incident = sample_case().incident
    checklist = shipped()["inference-latency"]
    for _ in range(3):
        proposals = propose_for(incident, Causes(), {checklist.id: checklist})
        checklist = after(checklist.source, [change.diff for change, _ in proposals])
    assert propose_for(incident, Causes(), {checklist.id: checklist}) == ()


def test_proposals_of_one_incident_can_be_accepted_in_any_order():
    incident = sample_case().incident
    blind = replace(incident, sources={**incident.sources, "logs": SourceState.UNREACHABLE})
    diffs = [change.diff for change, _ in propose_for(blind, Causes())]
    assert len(diffs) == 2
    source = shipped()["inference-latency"].source
    one, other = after(source, diffs), after(source, diffs[::-1])
    assert {item.id for item in one.items} == {item.id for item in other.items}
    assert len(one.items) == 13


def test_change_whose_place_is_gone_is_refused():
    (change, _), *_ = propose_for(sample_case().incident, Causes())
    with pytest.raises(CommandError, match="propose it anew"):
        apply_change("id: x\nitems:\n  - id: y\n", change.diff)


def test_same_incident_gives_the_same_proposals():
    assert propose_for(sample_case().incident, Causes()) == propose_for(
        sample_case().incident, Causes()
    )
