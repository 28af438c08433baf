"""The checklist in the thread: proposals are reworded, accepted and declined by signed clicks; checks are answered."""

from __future__ import annotations

from pathlib import Path

from bot.checklist import load_checklists, shipped_checklists
from bot.checklist.diffs import diff_of
from bot.checklist.judging import used
from bot.checklist.writing import NewItem, appended, moved
from bot.domain.checklist import (
    ChecklistChange,
    CheckOutcome,
    CheckRun,
    ProposalKind,
    ProposalStatus,
)
from bot.domain.text import Localized
from bot.domain.timeline import EntryKind
from bot.incidents.responding import Via
from bot.jobs import outbox
from bot.message import Message
from tests.slack.conftest import CHANNEL, Stage, staged

NAME = "inference-latency"
PATH = f"checklists/{NAME}.yaml"
LIST = load_checklists([shipped_checklists()])[NAME]
WHY = Localized("INC-1: because <@U0LEAD> & *bold*", "INC-1：因为")


def via(stage: Stage, key: str) -> Via:
    return Via(by="rca-bot", at=stage.bot.services.clock(), key=key)


async def proposed(stage: Stage) -> str:
    """An incident with a check to add, an order to change, and an alert rule; all in its thread."""
    thread = await stage.start()
    item = NewItem(id="memory", probe="host_memory", text=Localized("Memory?", "内存？"))
    diffs = (
        (ProposalKind.CHECK, NAME, diff_of(PATH, LIST.source, appended(LIST, "INC-1", [item]))),
        (
            ProposalKind.STEP,
            NAME,
            diff_of(PATH, LIST.source, moved(LIST, "disk-waits", "cpu-waits")),
        ),
        (
            ProposalKind.ALERT,
            "monitoring/inc-1-x",
            diff_of("monitoring/inc-1-x.rules.yml", "", "groups: []\n"),
        ),
    )
    changes = [
        (ChecklistChange(n=0, checklist=name, diff=diff, kind=kind), WHY)
        for kind, name, diff in diffs
    ]
    await stage.bot.services.checklists.propose("INC-1", changes, via(stage, "p"))
    post = outbox.thread_post(await stage.incident(), Message(view="checklist"))
    await stage.bot.services.outbox.send(post, once="shown")
    return thread


async def press(stage: Stage, thread: str, action_id: str, place: int = 0) -> None:
    shown = await stage.reply(thread, lambda m: m.button(action_id) is not None)
    buttons = [button for button in shown.buttons if button.action_id == action_id]
    button = buttons[place]
    done = await stage.lead.click(
        CHANNEL, shown.ts, action_id, button.value, block_id=button.block_id
    )
    assert done.is_good, done.error


async def test_proposal_is_reworded_in_a_form_and_then_accepted(stage: Stage) -> None:
    thread = await proposed(stage)
    await press(stage, thread, "rca.checklist.edit")
    view = await stage.lead.wait_for_view(lambda v: v.get("callback_id") == "rca_checklist_edit")
    block = next(b for b in view["blocks"] if b["block_id"] == "block")
    text = block["element"]["initial_value"]
    assert "id: memory" in text
    done = await stage.lead.submit({"block": text.replace("id: memory", "id: memory-first")})
    assert done.is_good and not done.errors
    await stage.entry(lambda e: e.kind is EntryKind.CHECKLIST and e.op == "edited")
    await press(stage, thread, "rca.checklist.accept")
    await stage.whispered(stage.lead, f"{NAME} is now at version 1")
    one = await stage.bot.services.shelf.one(NAME)
    assert one.checklist.items[-1].id == "memory-first"
    assert (await stage.incident()).checklist_changes[0].by == "U0LEAD"


async def test_every_proposal_has_its_kind_and_only_what_a_form_holds_is_reworded(
    stage: Stage,
) -> None:
    thread = await proposed(stage)
    shown = await stage.reply(thread, lambda m: "check added" in m.all_text)
    assert "alert rule" in shown.all_text and "<@U0LEAD>" not in shown.text
    of = [button.action_id for button in shown.buttons]
    assert of.count("rca.checklist.accept") == 3
    assert of.count("rca.checklist.edit") == 1
    await press(stage, thread, "rca.checklist.accept", 2)
    await stage.whispered(stage.lead, "rca-bot sop patch")
    assert (await stage.incident()).monitoring_changes[0].status is ProposalStatus.ACCEPTED


async def test_history_says_who_because_of_what_and_rollback_needs_a_reason(stage: Stage) -> None:
    thread = await proposed(stage)
    await press(stage, thread, "rca.checklist.accept")
    await stage.whispered(stage.lead, "is now at version 1")
    await stage.lead.say(CHANNEL, f"@rca checklist history {NAME}", thread_ts=thread)
    told = await stage.whispered(stage.lead, "INC-1 change 1")
    assert "id: memory" in told.all_text
    await stage.lead.say(CHANNEL, f"@rca checklist rollback {NAME} 0", thread_ts=thread)
    await stage.whispered(stage.lead, "needs a reason")
    await stage.lead.say(CHANNEL, f"@rca checklist rollback {NAME} 0 too noisy", thread_ts=thread)
    await stage.whispered(stage.lead, "is back at version 0")


async def test_check_is_answered_in_a_form_and_shows_in_the_list_and_the_step(stage: Stage) -> None:
    thread = await stage.start()
    now = stage.bot.services.clock()
    text = LIST.items[3].text
    run = CheckRun(
        checklist=NAME, item="cpu-waits", version=2, text=text, outcome=CheckOutcome.FOUND,
        summary=Localized.verbatim("gpu-1: 40 % pressure"), by="rca-bot", at=now,
        learned_from="INC-7",
    )  # fmt: skip
    await stage.bot.services.checklists.record_checks(
        "INC-1", [run], via(stage, "c"), used=used(LIST, 2)
    )
    await stage.lead.say(CHANNEL, "@rca checklist show", thread_ts=thread)
    shown = await stage.whispered(stage.lead, "version 2")
    assert "found something: gpu-1: 40 % pressure" in shown.all_text
    assert f"{len(LIST.items)} checks answered" in shown.all_text
    post = outbox.thread_post(await stage.incident(), Message(view="checks"))
    await stage.bot.services.outbox.send(post, once="shown")
    await press(stage, thread, "rca.check.answer")
    await stage.lead.wait_for_view(lambda v: v.get("callback_id") == "rca_check")
    done = await stage.lead.submit(
        {"check": "tail-or-all", "outcome": "found", "text": "only the tail"}
    )
    assert done.is_good and not done.errors
    await stage.entry(lambda e: e.op == "checked" and e.author == "U0LEAD")
    await stage.entry(lambda e: e.text is not None and "tail-or-all: only the tail" in e.text.en)
    step = Message(view="step_symptom", context={"step": "symptom"})
    await stage.bot.services.outbox.send(
        outbox.thread_post(await stage.incident(), step), once="step"
    )
    prompt = await stage.reply(
        thread, lambda m: "Is it the tail only" in m.all_text and "→ found something" in m.all_text
    )
    assert "⬜" in prompt.all_text, "the other questions of the step are still open"


async def test_chinese_incident_shows_its_checklist_in_chinese(
    redis_url: str, tmp_path: Path
) -> None:
    more = {"locales": {"U0LEAD": "zh-CN"}, "environment": {"RCA_LOCALE": "zh-CN"}}
    async with staged(redis_url, tmp_path, **more) as stage:
        thread = await stage.start("sev2 延迟升高 service=translate-api")
        shown = await stage.reply(
            thread, lambda m: "检查单：" in m.all_text and "项：" in m.all_text
        )
        assert "线程是否在等待 CPU" in shown.all_text
        assert "checks answered" not in shown.all_text
