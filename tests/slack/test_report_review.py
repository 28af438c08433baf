"""The report is people's: they write it in a form, one of them reviews it, and it is final only when nothing is missing."""

from __future__ import annotations

import json
from typing import Any

from bot.domain.postmortem import JudgementTopic
from bot.domain.text import Locale
from bot.domain.timeline import EntryKind
from bot.exporter import ExportOptions
from bot.exporters import render_report
from bot.incidents.responding import Via
from bot.jobs.reporting import compare_revisions, compile_report
from bot.store.blobs import blob_key
from tests.slack.conftest import CHANNEL, Stage

ANSWERS = {
    "impact": "all tenants | 12 minutes <b>slow</b>",
    "went_well": "the allocator probe",
    "went_badly": "a deploy of the gateway that had nothing to do with it",
    "prevention": "alert on host allocation time",
    "lessons": "预分配 the pool",
}


async def _exported(stage: Stage, thread: str) -> Any:
    await stage.lead.command(CHANNEL, "/rca export INC-1 json")
    return await stage.reply(thread, lambda m: m.button("rca.report.edit") is not None)


async def _write(stage: Stage, ts: str, **answers: str) -> None:
    seq = (await stage.incident()).last_seq
    assert (await stage.sre.click(CHANNEL, ts, "rca.report.edit")).is_good
    await stage.sre.wait_for_view()
    await stage.sre.submit(answers)
    await stage.entry(
        lambda e: e.seq > seq and e.kind is EntryKind.REPORT and e.op == "edited", "the words"
    )


async def _as_json(stage: Stage) -> dict[str, Any]:
    report = await compile_report(stage.bot.services, "INC-1")
    written = render_report(report, ["json"], ExportOptions(locale=Locale.EN))
    content: dict[str, Any] = json.loads(written["json"].content)
    return content


async def _press(stage: Stage, ts: str, action: str) -> None:
    assert (await stage.sre.click(CHANNEL, ts, action)).is_good


async def test_report_becomes_final_once_reviewed_and_written(stage: Stage) -> None:
    thread = await stage.start()
    message = await _exported(stage, thread)
    assert (await _as_json(stage))["incident"]["state"] == "draft"

    await _press(stage, message.ts, "rca.report.review")
    reviewed = await stage.reply(thread, lambda m: m.button("rca.report.final") is not None)
    assert (await _as_json(stage))["incident"]["state"] == "reviewed"
    assert (await stage.incident()).roles["reviewer"] == "U0SRE", "who reviews is the reviewer"

    await _press(stage, reviewed.ts, "rca.report.final")
    refusal = await stage.whispered(stage.sre, "cannot become final")
    for word in ("impact", "what helped", "what misled", "prevention", "lessons"):
        assert word in refusal.all_text
    assert (await stage.incident()).report_state == "reviewed"

    await _write(stage, message.ts, **ANSWERS)
    assert (await stage.incident()).report_state == "draft", "what is edited has to be read again"
    await _press(stage, message.ts, "rca.report.review")
    await stage.entry(lambda e: e.op == "reviewed" and e.seq > 5)
    await stage.calm()
    await _press(stage, reviewed.ts, "rca.report.final")
    await stage.entry(lambda e: e.op == "final")
    value = await _as_json(stage)
    assert value["incident"]["state"] == "final", (
        "a report without an established cause may be final"
    )
    assert value["root_cause"]["cause"] == "not_established"

    assert (await stage.sre.click(CHANNEL, message.ts, "rca.report.edit")).is_good
    await stage.sre.wait_for_view()
    await stage.sre.submit({**ANSWERS, "impact": "none"})
    await stage.whispered(stage.sre, "is final")
    kept = (await compile_report(stage.bot.services, "INC-1")).judgements[0].answer
    assert kept is not None
    assert kept.en == ANSWERS["impact"]


async def test_what_people_wrote_survives_the_next_report_and_revisions_can_be_compared(
    stage: Stage,
) -> None:
    thread = await stage.start()
    message = await _exported(stage, thread)
    await _write(stage, message.ts, impact=ANSWERS["impact"])
    await stage.lead.command(CHANNEL, "/rca export INC-1 md")
    await stage.entry(lambda e: e.kind is EntryKind.REPORT and e.data.get("formats") == ["md"])
    report = await compile_report(stage.bot.services, "INC-1")
    answers = {item.topic: item.answer for item in report.judgements}
    assert answers[JudgementTopic.IMPACT].en == ANSWERS["impact"]
    assert [item.kind.value for item in report.revisions] == ["compiled", "edited", "compiled"]

    found = await compare_revisions(
        stage.bot.services, "INC-1", before=1, after=2, locale=Locale.EN
    )
    assert "+all tenants \\| 12 minutes &lt;b&gt;slow&lt;/b&gt;" in found.text
    same = await compare_revisions(stage.bot.services, "INC-1", before=2, after=3, locale=Locale.EN)
    assert (same.text, same.added, same.removed) == ("", 0, 0)


async def test_form_starts_with_what_stands_and_leaves_alone_what_was_not_touched(
    stage: Stage,
) -> None:
    thread = await stage.start()
    message = await _exported(stage, thread)
    await _write(stage, message.ts, impact="first", lessons="one")
    await _press(stage, message.ts, "rca.report.edit")
    view = await stage.sre.wait_for_view()
    assert "first" in json.dumps(view if isinstance(view, dict) else view.raw)
    await stage.sre.submit({"impact": "second", "lessons": "one"})
    await stage.entry(lambda e: e.op == "edited" and e.text is not None and e.text.en == "second")
    edits = [e for e in await stage.entries() if e.op == "edited"]
    assert [(e.data["topic"], e.text.en if e.text else None) for e in edits] == [
        ("impact", "first"),
        ("lessons", "one"),
        ("impact", "second"),
    ]


async def test_only_the_reviewer_reviews(stage: Stage) -> None:
    thread = await stage.start()
    message = await _exported(stage, thread)
    await stage.lead.command(CHANNEL, "/rca role INC-1 reviewer <@U0LEAD>")
    await stage.entry(lambda e: e.kind is EntryKind.ROLE and e.data["role"] == "reviewer")
    await _press(stage, message.ts, "rca.report.review")
    await stage.whispered(stage.sre, "is the reviewer")
    assert (await stage.incident()).report_state == "draft"


async def test_words_taken_back_are_in_no_stored_report(stage: Stage) -> None:
    thread = await stage.start()
    via = Via(by="U0SRE", at=stage.bot.services.clock(), key="n1", message_ts="99.1")
    await stage.bot.services.responding.note("INC-1", "the customer is on fire", via)
    await stage.lead.command(CHANNEL, "/rca export INC-1 md,json")
    await stage.reply(thread, lambda m: m.button("rca.report.edit") is not None)
    await stage.calm()
    stored = [
        await stage.store.blob(blob_key("INC-1", name)) for name in ("INC-1.md", "INC-1.json")
    ]
    assert all(content and b"on fire" in content for content in stored)
    assert await stage.bot.services.journal.withhold("INC-1", "99.1") == 1
    for name in ("INC-1.md", "INC-1.json"):
        assert await stage.store.blob(blob_key("INC-1", name)) is None
    report = await _as_json(stage)
    assert "on fire" not in json.dumps(report)
