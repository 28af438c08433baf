"""What an incident changes in the SOP and in the causes: the next incident of every replica goes by it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.app import lint_knowledge
from bot.checklist import Background, propose_for
from bot.checklist.diffs import diff_of
from bot.command import Call
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.checklist import ChecklistChange, ProposalKind, ProposalStatus
from bot.domain.incident import Incident
from bot.domain.text import Locale, Localized
from bot.domain.timeline import Entry, EntryKind
from bot.errors import CommandError
from bot.incidents.responding import Via
from bot.inventory import Inventory
from bot.message import Message
from bot.slack.present import Presenter
from bot.slack.render import Renderer
from bot.sop import Sop, load_sop, parse_sop, shipped_sops
from bot.steps.gates import missing
from bot.steps.prompts import prompts_for
from commands.checklist import checklist
from commands.resolve import resolve
from commands.step import step
from tests.checklist.test_proposing import Causes
from tests.diagnosis.worlds import CATALOGUE
from tests.report.sample import sample_case
from tests.report.sample_facts import OPENED
from tests.web.door import NOW, Door, opened, payload

SHIPPED = load_sop([shipped_sops()])
NAME = "sops/inference"
PATH = f"{NAME}.yaml"
PROMPT = "Look at the pool first: INC-1 lost 30 min here."
ADDED = """        learned_from: INC-1
        matches: [p99]
"""
WHY = Localized("because", "因为")


def via(key: str, by: str = "U0LEAD") -> Via:
    return Via(by=by, at=NOW, key=key)


def ports() -> DiagnosisPorts:
    return DiagnosisPorts(inventory=Inventory(), catalogue=CATALOGUE, clock=lambda: NOW)


@pytest.fixture
async def door(redis_url: str) -> AsyncIterator[Door]:
    async with opened(redis_url, ports()) as made:
        await made.take("alertmanager", payload("pair_first.json"))
        await slow(made, "INC-1")
        yield made


@pytest.fixture
async def replica(redis_url: str, door: Door) -> AsyncIterator[Door]:
    """Another bot of the same deployment, which has looked before anything was accepted."""
    async with opened(redis_url, ports()) as made:
        await made.services.knowledge.refresh()
        yield made


async def slow(door: Door, incident_id: str) -> None:
    await door.services.responding.declare_symptom(
        incident_id, "P99 latency is 600 ms", via("slow"), metric=None, scope=None, since=None
    )


def changed(old: str, new: str) -> tuple[ChecklistChange, Localized]:
    assert SHIPPED.source.count(old) == 1
    diff = diff_of(PATH, SHIPPED.source, SHIPPED.source.replace(old, new))
    return ChecklistChange(n=1, checklist=NAME, diff=diff, kind=ProposalKind.STEP), WHY


def no_report_asked() -> tuple[ChecklistChange, Localized]:
    return changed("symptom_gone, report_compiled, checklist_decided]", "symptom_gone]")


async def called(door: Door, command, text: str, key: str, incident: str = "INC-1") -> object:
    call = Call(
        word=command.name, text=text, user="U0LEAD", at=NOW, key=key, locale=Locale.EN,
        incident=incident, channel="C1", thread_ts="1.1", message_ts=None,
    )  # fmt: skip
    return await command.run(call, door.services)


def learned(sop: Sop) -> list[tuple[str, str | None]]:
    return [(s.id.value, p.learned_from) for s in sop.steps for p in s.prompts if p.learned_from]


def step_as_shown(door: Door, incident: Incident, locale: Locale) -> str:
    known = door.services.knowledge
    presenter = Presenter(Renderer(known, ZoneInfo("UTC")), known, Inventory())
    message = Message(view="step_information", context={"step": "information"})
    return json.dumps(
        [part.blocks for part in presenter.present(message, incident, locale, {}).parts],
        ensure_ascii=False,
    )


def lesson() -> tuple[ChecklistChange, Localized]:
    """What the slow incident of the sample says of the SOP."""
    incident = sample_case().incident
    assert incident.root_cause is not None
    root = replace(incident.root_cause, at=OPENED + timedelta(minutes=40))
    entries = [
        Entry(
            seq=seq, kind=EntryKind.STEP, at=OPENED + timedelta(minutes=at), author="U1",
            source="slack", text=None, data={"op": "entered", "step": name},
        )
        for seq, (name, at) in enumerate([("symptom", 0), ("information", 5), ("hypotheses", 35)])
    ]  # fmt: skip
    about = Background(entries=entries, procedure=SHIPPED.source, procedure_name=NAME)
    found = propose_for(replace(incident, root_cause=root), Causes(), None, about)
    return next(item for item in found if item[0].kind is ProposalKind.STEP)


async def test_step_that_wasted_time_changes_the_sop_of_every_replica(door, replica):
    change, reason = lesson()
    assert change.checklist == NAME and "30 min" in reason.en
    assert "Information" in reason.en and "信息收集" in reason.zh
    await door.services.checklists.propose("INC-1", [(change, reason)], via("p"))
    assert learned(replica.services.sop) == []
    done = await door.services.checklists.accept("INC-1", 1, via("a"))
    assert (done.name, done.version) == (NAME, 1)
    await replica.services.knowledge.refresh()
    assert learned(replica.services.sop) == [("information", "INC-7")]
    assert replica.services.sop.version == 1
    assert len(replica.services.sop.steps[0].prompts) == len(SHIPPED.steps[0].prompts)
    incident = await replica.incident()
    shown = prompts_for(incident, replica.services.sop, "information")
    assert shown[0].learned_from == "INC-7", "what was learned comes first"
    shown_in = {locale: step_as_shown(replica, incident, locale) for locale in Locale}
    assert "learned from INC-7" in shown_in[Locale.EN]
    assert "来自 INC-7 的经验" in shown_in[Locale.ZH_CN]
    other = replace(incident, title="odd", alerts={}, symptoms=())
    assert not any(p.learned_from for p in prompts_for(other, replica.services.sop, "information"))


async def test_next_incident_goes_by_the_accepted_gate_and_its_timeline_says_which_version(
    door, replica
):
    asked = missing(await replica.incident(), replica.services.sop, "review")
    await door.services.checklists.propose("INC-1", [no_report_asked()], via("p"))
    await door.services.checklists.accept("INC-1", 1, via("a"))
    await door.services.checklists.propose("INC-1", [lesson()], via("q"))
    await door.services.checklists.accept("INC-1", 2, via("b"))
    await replica.take("alertmanager", payload("pair_second.json"))
    second = (await replica.ids())[-1]
    await slow(replica, second)
    await called(replica, step, "skip on purpose", "s", second)
    after = await replica.incident(second)
    assert after.procedure is not None
    assert (after.procedure.version, after.procedure.learned) == (2, ("INC-7",))
    said = [text for text in await replica.texts(second) if "SOP inference (version 2)" in text]
    assert len(said) == 1 and "learned from INC-7" in said[0]
    now = missing(after, replica.services.sop, "review")
    assert len(now) == len(asked) - 2
    with pytest.raises(CommandError) as refused:
        await called(replica, resolve, "", "r", second)
    assert "export" not in refused.value.text.en.lower()


async def test_declined_change_leaves_the_sop_as_its_file_has_it(door, replica):
    await door.services.checklists.propose("INC-1", [lesson()], via("p"))
    await door.services.checklists.decline("INC-1", 1, "we know", via("d"))
    await called(replica, step, "skip on purpose", "s")
    assert learned(replica.services.sop) == [] and replica.services.sop.version == 0
    assert (await replica.incident()).procedure is None


async def test_change_that_the_lint_refuses_is_refused_with_its_line(door):
    broken = changed("gate: [ranked]", "gate: [ranked, guessed]")
    await door.services.checklists.propose("INC-1", [broken], via("p"))
    with pytest.raises(CommandError, match="guessed"):
        await door.services.checklists.accept("INC-1", 1, via("a"))
    assert (await door.incident()).checklist_changes[0].status is ProposalStatus.PROPOSED
    await door.services.knowledge.refresh()
    assert door.services.sop.version == 0


async def test_history_names_who_changed_the_sop_and_rollback_is_seen_by_every_replica(
    door, replica
):
    await door.services.checklists.propose("INC-1", [lesson()], via("p"))
    await door.services.checklists.accept("INC-1", 1, via("a"))
    reply = await called(replica, checklist, "history sop", "h")
    shown = reply.message.context  # type: ignore[attr-defined]
    assert [item["incident"] for item in shown["versions"]] == ["INC-1"]
    assert {line["by"] for line in shown["blame"]} == {"U0LEAD"}
    assert "信息收集" in shown["versions"][0]["reason"]["zh-CN"]
    await replica.services.knowledge.refresh()
    assert learned(replica.services.sop)
    await called(door, checklist, "rollback sop 0 nobody reads it", "r")
    await replica.services.knowledge.refresh()
    assert learned(replica.services.sop) == [] and replica.services.sop.version == 2
    assert any("nobody reads it" in text for text in await replica.texts())


async def test_accepted_sop_is_handed_out_as_a_patch_that_git_takes_and_the_lint_passes(
    door, tmp_path: Path
):
    await door.services.checklists.propose("INC-1", [lesson()], via("p"))
    await door.services.checklists.accept("INC-1", 1, via("a"))
    (tmp_path / "sops").mkdir()
    (tmp_path / PATH).write_text(SHIPPED.source, encoding="utf-8")
    patch = await door.services.shelf.patch()
    (tmp_path / "accepted.patch").write_text(patch, encoding="utf-8")
    subprocess.run(["git", "apply", "accepted.patch"], cwd=tmp_path, check=True)
    assert lint_knowledge([tmp_path / "sops"])[0] == []
    assert learned(load_sop([tmp_path / "sops"])) == [("information", "INC-7")]
    assert list(await door.services.shelf.accepted()) == [PATH]
    assert await door.services.shelf.faults() == []


async def test_two_lessons_of_one_step_both_count(door):
    first, _ = lesson()
    second = replace(first, n=2, diff=first.diff.replace("INC-7", "INC-8"))
    await door.services.checklists.propose("INC-1", [(first, WHY), (second, WHY)], via("p"))
    await door.services.checklists.accept("INC-1", 1, via("a"))
    await door.services.checklists.accept("INC-1", 2, via("b"))
    await door.services.knowledge.refresh()
    assert sorted(learned(door.services.sop)) == [
        ("information", "INC-7"),
        ("information", "INC-8"),
    ]


CAUSE = """id: pool_exhausted_inc_1
title: {en: The pool of translate-api is exhausted, zh-CN: 连接池耗尽}
summary: {en: Nobody gives connections back., zh-CN: 连接没有归还。}
layer: application
category: latency
prior: 0.01
symptoms: [latency]
evidence:
  - id: seen_1
    family: probe_1
    when: {finding: proc.lock_contention}
    weight: 1
    text: {en: seen in INC-1, zh-CN: 见于 INC-1}
    basis: observed in INC-1
experiments:
  - probe: process_stacks
    expects: {en: there again, zh-CN: 再次出现}
    would_refute: {en: it is not there, zh-CN: 没有出现}
fixes:
  - text: {en: restart, zh-CN: 重启}
prevention:
  - {en: bound it, zh-CN: 加上限}
checklist:
  - {en: Is the pool empty?, zh-CN: 连接池是否耗尽？}
"""


async def test_new_cause_is_in_the_catalogue_of_every_replica_once_it_is_accepted(door, replica):
    name = "causes/pool_exhausted_inc_1"
    new = ChecklistChange(
        n=1, checklist=name, diff=diff_of(f"{name}.yaml", "", CAUSE), kind=ProposalKind.CAUSE
    )
    broken = replace(new, n=2, diff=new.diff.replace("proc.lock_contention", "proc.nothing"))
    await door.services.checklists.propose("INC-1", [(broken, WHY), (new, WHY)], via("p"))
    with pytest.raises(CommandError, match=r"unknown finding 'proc\.nothing'"):
        await door.services.checklists.accept("INC-1", 1, via("x"))
    before = set(replica.services.catalogue.causes)
    done = await door.services.checklists.accept("INC-1", 2, via("a"))
    assert done.version == 1
    await replica.services.knowledge.refresh()
    assert set(replica.services.catalogue.causes) - before == {"pool_exhausted_inc_1"}
    incident = await replica.incident()
    assert "pool_exhausted_inc_1" in replica.services.ports_of(incident).catalogue.causes
    assert f"+++ b/{name}.yaml" in await door.services.shelf.patch()
    newer = replace(new, n=3, diff=diff_of(f"{name}.yaml", "", CAUSE.replace("0.01", "0.02")))
    await door.services.checklists.propose("INC-1", [(newer, WHY)], via("q"))
    await door.services.checklists.accept("INC-1", 3, via("b"))
    await replica.services.knowledge.refresh()
    assert replica.services.catalogue.causes["pool_exhausted_inc_1"].prior == 0.02
    assert await door.services.shelf.faults() == []
    await called(door, checklist, f"rollback {name} 0 it fits nothing", "r")
    await replica.services.knowledge.refresh()
    assert set(replica.services.catalogue.causes) == before


def test_prompt_of_an_sop_file_is_checked_like_the_rest() -> None:
    prompts = SHIPPED.source.index("    gate: [ranked]")
    text = SHIPPED.source[:prompts]
    text += f'      - en: "{PROMPT}"\n        zh-CN: 先看连接池\n{ADDED}' + SHIPPED.source[prompts:]
    assert learned(parse_sop(text, Path(PATH))) == [("hypotheses", "INC-1")]
    for wrong, fault in (
        (text.replace("learned_from: INC-1", "learned_from: yesterday"), "an incident such as"),
        (text.replace("matches: [p99]", "matches: p99"), "matches must be a list"),
        (text.replace("        zh-CN: 先看连接池\n", ""), "zh-CN must be a text"),
    ):
        with pytest.raises(Exception, match=fault):
            parse_sop(wrong, Path(PATH))
