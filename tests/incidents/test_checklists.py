"""Decisions about checklists against a real Redis: durable once, seen by every replica, one winner of two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.checklist import load_checklists, parse_checklist, shipped_checklists
from bot.checklist.diffs import diff_of
from bot.checklist.writing import NewItem, appended, moved
from bot.domain.checklist import (
    ChecklistChange,
    CheckOutcome,
    CheckRun,
    ProposalKind,
    ProposalStatus,
)
from bot.domain.text import Localized
from bot.errors import CommandError
from bot.incidents.responding import Via
from tests.web.door import NOW, Door, opened, payload

NAME = "inference-latency"
PATH = f"checklists/{NAME}.yaml"
LIST = load_checklists([shipped_checklists()])[NAME]


def via(key: str, by: str = "U0LEAD") -> Via:
    return Via(by=by, at=NOW, key=key)


def change(item_id: str, n: int = 1, text: str | None = None) -> tuple[ChecklistChange, Localized]:
    item = NewItem(id=item_id, probe="host_memory", text=Localized("Memory?", "内存？"))
    after = text or appended(LIST, "INC-1", [item])
    diff = diff_of(PATH, LIST.source, after)
    reason = Localized("because", "因为")
    return ChecklistChange(n=n, checklist=NAME, diff=diff, reason="because"), reason


@pytest.fixture
async def door(redis_url: str) -> AsyncIterator[Door]:
    async with opened(redis_url) as made:
        await made.take("alertmanager", payload("pair_first.json"))
        yield made


@pytest.fixture
async def replica(redis_url: str, door: Door) -> AsyncIterator[Door]:
    """Another bot of the same deployment."""
    async with opened(redis_url) as made:
        yield made


async def ids(door: Door) -> list[str]:
    return [item.id for item in (await door.services.shelf.one(NAME)).checklist.items]


async def test_accepted_change_is_there_for_every_replica_at_once(door, replica):
    assert await ids(replica) == [item.id for item in LIST.items]
    await door.services.checklists.propose("INC-1", [change("memory")], via("p"))
    done = await door.services.checklists.accept("INC-1", 1, via("a"))
    assert (done.name, done.version) == (NAME, 1)
    assert (await ids(replica))[-1] == "memory"
    incident = await replica.incident()
    assert incident.checklist_changes[0].status is ProposalStatus.ACCEPTED
    assert incident.checklist_changes[0].by == "U0LEAD"


async def test_two_accept_the_same_change_and_the_second_is_told_by_whom(door, replica):
    await door.services.checklists.propose("INC-1", [change("memory")], via("p"))
    answers = await asyncio.gather(
        door.services.checklists.accept("INC-1", 1, via("a", "U0LEAD")),
        replica.services.checklists.accept("INC-1", 1, via("b", "U0SRE")),
        return_exceptions=True,
    )
    told = [item for item in answers if isinstance(item, CommandError)]
    assert len(told) == 1, answers
    winner = (await door.incident()).checklist_changes[0].by
    assert f"<@{winner}>" in told[0].text.en and "accepted" in told[0].text.en
    assert "采纳" in told[0].text.zh
    made = (await door.services.shelf.one(NAME)).edition
    assert made.number == 1 and made.versions[0].by == winner


async def test_two_changes_of_one_list_at_once_both_count_and_leave_one_history(door, replica):
    both = [change("memory"), change("swap", 2)]
    await door.services.checklists.propose("INC-1", both, via("p"))
    await asyncio.gather(
        door.services.checklists.accept("INC-1", 1, via("a")),
        replica.services.checklists.accept("INC-1", 2, via("b")),
    )
    assert set(await ids(door)) >= {"memory", "swap"}
    made = (await replica.services.shelf.one(NAME)).edition
    assert [item.number for item in made.versions] == [1, 2] and made.left_out == ()


async def test_repeat_of_the_same_step_accepts_once(door):
    await door.services.checklists.propose("INC-1", [change("memory")], via("p"))
    first = await door.services.checklists.accept("INC-1", 1, via("a"))
    again = await door.services.checklists.accept("INC-1", 1, via("a"))
    assert again.name == first.name
    assert (await door.services.shelf.one(NAME)).edition.number == 1
    texts = await door.texts()
    assert texts.count("Checklist change 1 accepted") == 1


async def test_declined_change_leaves_the_list_as_it_is_and_cannot_be_accepted_behind_ones_back(
    door,
):
    await door.services.checklists.propose("INC-1", [change("memory")], via("p"))
    await door.services.checklists.decline("INC-1", 1, "too noisy", via("d"))
    with pytest.raises(CommandError, match="declined already"):
        await door.services.checklists.accept("INC-1", 1, via("a"))
    assert "memory" not in await ids(door)
    assert (await door.incident()).checklist_changes[0].reason == "too noisy"


async def test_rollback_is_a_version_of_its_own_with_its_reason_in_the_timeline(door):
    await door.services.checklists.propose("INC-1", [change("memory")], via("p"))
    await door.services.checklists.accept("INC-1", 1, via("a"))
    await door.services.checklists.roll_back("INC-1", NAME, 0, "it cries wolf", via("r"))
    assert "memory" not in await ids(door)
    made = (await door.services.shelf.one(NAME)).edition
    assert made.number == 2 and made.patch == ""
    assert any("it cries wolf" in text for text in await door.texts())
    assert "it cries wolf" not in str([item.to_json() for item in made.versions])
    with pytest.raises(CommandError, match="no version 9"):
        await door.services.checklists.roll_back("INC-1", NAME, 9, "x", via("r2"))


async def test_change_that_would_break_the_list_is_refused_and_nothing_is_stored(door):
    broken = change(
        "x", text=LIST.source + '  - id: y\n    step: lunch\n    text: {en: "?", zh-CN: "？"}\n'
    )
    await door.services.checklists.propose("INC-1", [broken], via("p"))
    with pytest.raises(CommandError, match="step 'lunch'"):
        await door.services.checklists.accept("INC-1", 1, via("a"))
    assert (await door.services.shelf.one(NAME)).edition.number == 0
    assert (await door.incident()).checklist_changes[0].status is ProposalStatus.PROPOSED


async def test_person_rewords_a_proposal_before_it_counts(door):
    await door.services.checklists.propose("INC-1", [change("memory")], via("p"))
    reworded = change("memory-first")[0].diff
    await door.services.checklists.edit("INC-1", 1, reworded, via("e"))
    incident = await door.incident()
    assert incident.checklist_changes[0].is_edited
    await door.services.checklists.accept("INC-1", 1, via("a"))
    assert (await ids(door))[-1] == "memory-first"
    with pytest.raises(CommandError, match="accepted already"):
        await door.services.checklists.edit("INC-1", 1, reworded, via("e2"))


async def test_nothing_to_propose_is_an_answer_that_the_gate_takes(door):
    assert not (await door.incident()).is_checklist_reviewed
    await door.services.checklists.propose("INC-1", [], via("p"))
    assert (await door.incident()).is_checklist_reviewed
    await door.services.checklists.propose("INC-1", [], via("p2"))


async def test_what_checks_came_to_is_counted_once_an_incident(door):
    def run(outcome: CheckOutcome, by: str) -> CheckRun:
        text = Localized("?", "？")
        return CheckRun(
            checklist=NAME, item="cpu-waits", version=0, text=text, outcome=outcome, summary=text,
            by=by, at=NOW,
        )  # fmt: skip

    record = door.services.checklists.record_checks
    await record("INC-1", [run(CheckOutcome.CLEAN, "rca-bot")], via("c"))
    await record("INC-1", [run(CheckOutcome.CLEAN, "rca-bot")], via("c"))
    await record("INC-1", [run(CheckOutcome.FOUND, "U0SRE")], via("answer"))
    usage = (await door.services.shelf.usage(NAME))["cpu-waits"]
    assert (usage.incidents, usage.found) == (1, 1)
    assert [item.by for item in (await door.incident()).checks] == ["U0SRE"]


async def test_accepted_files_and_the_patch_hold_what_was_accepted(door, tmp_path: Path):
    rule = diff_of("monitoring/inc-1-x.rules.yml", "", "groups: []\n")
    alert = ChecklistChange(n=2, checklist="monitoring/inc-1-x", diff=rule, kind=ProposalKind.ALERT)
    why = Localized("why", "为何")
    await door.services.checklists.propose("INC-1", [change("memory"), (alert, why)], via("p"))
    incident = await door.incident()
    assert [item.n for item in incident.monitoring_changes] == [2]
    await door.services.checklists.accept("INC-1", 1, via("a"))
    done = await door.services.checklists.accept("INC-1", 2, via("b"))
    assert done.version is None
    files = await door.services.shelf.accepted()
    assert list(files) == [PATH, "monitoring/inc-1-x.rules.yml"]
    assert parse_checklist(files[PATH].decode(), Path(PATH)).items[-1].id == "memory"
    patch = await door.services.shelf.patch()
    assert patch.count("+++ b/") == 2 and "+groups: []" in patch
    assert await door.services.shelf.faults() == []


async def test_accepted_monitoring_files_can_be_taken_back_and_their_history_says_so(door, replica):
    name, path = "monitoring/inc-1-x", "monitoring/inc-1-x.rules.yml"
    why = Localized("why", "为何")
    proposed = [
        (
            ChecklistChange(
                n=n, checklist=name, diff=diff_of(path, "", text), kind=ProposalKind.ALERT
            ),
            why,
        )
        for n, text in enumerate(("groups: []\n", "groups: [1]\n"), 1)
    ]
    await door.services.checklists.propose("INC-1", proposed, via("p"))
    await door.services.checklists.accept("INC-1", 1, via("a"))
    await door.services.checklists.accept("INC-1", 2, via("b"))
    assert await replica.services.shelf.accepted() == {path: b"groups: [1]\n"}
    done = await door.services.checklists.roll_back("INC-1", name, 1, "fires at night", via("r"))
    assert (done.name, done.version) == (name, 3)
    assert await replica.services.shelf.accepted() == {path: b"groups: []\n"}
    await door.services.checklists.roll_back("INC-1", name, 0, "of no use", via("r2"))
    assert await replica.services.shelf.accepted() == {}
    assert await replica.services.shelf.patch() == ""
    made = await replica.services.shelf.edition_of(name)
    assert [(item.op.value, item.to) for item in made.versions][2:] == [
        ("rolled_back", 1),
        ("rolled_back", 0),
    ]
    assert any("of no use" in text for text in await door.texts())
    with pytest.raises(CommandError, match="no checklist"):
        await door.services.checklists.roll_back("INC-1", "monitoring/none", 0, "x", via("r3"))


async def test_lines_of_accepted_monitoring_files_are_told_by_who_brought_them(door):
    name = "monitoring/inc-1-x"
    rule = diff_of("monitoring/inc-1-x.rules.yml", "", "groups: []\n")
    check = diff_of("monitoring/inc-1-x.test.yml", "", "tests: []\n")
    alert = ChecklistChange(n=1, checklist=name, diff=rule + check, kind=ProposalKind.ALERT)
    await door.services.checklists.propose("INC-1", [(alert, Localized("w", "w"))], via("p"))
    await door.services.checklists.accept("INC-1", 1, via("a", "U0SRE"))
    made = await door.services.shelf.edition_of(name)
    assert {line.version.by for line in made.lines if line.version} == {"U0SRE"}
    assert {"groups: []", "tests: []"} <= {line.text for line in made.lines}
    assert (made.number, made.patch) == (1, rule + check)


async def test_proposals_of_one_incident_can_be_accepted_in_any_order(door):
    last, first = LIST.items[-1].id, LIST.items[0].id
    order = change("", text=moved(LIST, last, first))
    await door.services.checklists.propose("INC-1", [change("memory"), order], via("p"))
    await door.services.checklists.accept("INC-1", 2, via("a"))
    await door.services.checklists.accept("INC-1", 1, via("b"))
    names = await ids(door)
    assert names[0] == last and "memory" in names
    assert (await door.services.shelf.one(NAME)).edition.left_out == ()
