"""The words through the whole surface: what they answer, whom they let, what they refuse."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.app import utc_now
from bot.domain.finding import Finding, FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.timeline import EntryKind
from bot.jobs import probing
from bot.settings import PolicySettings
from tests.slack.conftest import CHANNEL, Stage, staged


async def _ask(stage: Stage, line: str, words: str) -> str:
    assert (await stage.lead.command(CHANNEL, f"/rca {line}")).is_good
    return (await stage.whispered(stage.lead, words)).all_text


async def test_words_without_an_incident_answer_or_say_what_to_do(stage: Stage) -> None:
    assert "/rca start" in await _ask(stage, "status", "No incident is open")
    assert "INC-4" in await _ask(stage, "note hello", "No incident is meant")
    await _ask(stage, "status INC-9", "There is no INC-9")
    await _ask(stage, "statsu", "Did you mean “status”")
    await _ask(stage, "", "Words of /rca")
    assert "gpu-2" in await _ask(stage, "nodes", "2 nodes")
    await _ask(stage, "changes since=3d", "last 3 days")
    await _ask(stage, "changes since=x", "no span of time")
    await _ask(stage, "stats", "days: 0")
    await _ask(stage, "search nothing like it", "No incident with")


async def test_probe_line_is_checked_before_anything_runs(stage: Stage) -> None:
    await stage.start()
    await _ask(stage, "probe gpu_stat on gpu-1", "Did you mean “gpu_state”")
    await _ask(stage, "probe gpu on gpu-3", "Did you mean “gpu-")
    await _ask(stage, "probe gpu gpu-1", "Usage: /rca probe")
    # Brackets without end are an argument that nobody takes, and no reason to say nothing.
    await _ask(stage, f"probe host_cpu on gpu-1 depth={'[' * 3000}", "does not take “depth”")
    await _ask(stage, "probe host on all", "6 probes on 2 nodes")
    thread = (await stage.incident()).thread_ts or ""
    table = await stage.reply(thread, lambda m: "Probe answers" in m.all_text)
    assert "RCA_AGENT_KEY" in table.all_text
    probes = [e for e in await stage.entries() if e.kind is EntryKind.PROBE]
    assert {e.data["purpose"] for e in probes} == {"asked"}


async def test_heavy_probe_waits_for_somebody_who_may_approve(
    redis_url: str, tmp_path: Path
) -> None:
    policy = PolicySettings(approve_heavy=("U0LEAD",))
    async with staged(redis_url, tmp_path, policy=policy) as stage:
        await stage.start()
        await stage.sre.command(CHANNEL, "/rca probe h2d_bandwidth on gpu-1 gpu=0")
        asked = await stage.whispered(stage.sre, "needs an approval")
        await stage.sre.click(CHANNEL, asked.ts, "rca.probe.approve")
        await stage.whispered(stage.sre, "may not approve")
        assert not [e for e in await stage.entries() if e.kind is EntryKind.PROBE]
        await stage.lead.command(CHANNEL, "/rca probe h2d_bandwidth on gpu-1 gpu=0")
        mine = await stage.whispered(stage.lead, "needs an approval")
        await stage.lead.click(CHANNEL, mine.ts, "rca.probe.approve")
        await stage.entry(lambda e: e.kind is EntryKind.PROBE)


async def test_heavy_probe_asked_in_the_thread_is_approved_there_by_whoever_may(
    redis_url: str, tmp_path: Path
) -> None:
    policy = PolicySettings(approve_heavy=("U0LEAD",))
    async with staged(redis_url, tmp_path, policy=policy) as stage:
        thread = await stage.start()
        await stage.sre.say(CHANNEL, "@rca probe h2d_bandwidth on gpu-1 gpu=0", thread_ts=thread)
        asked = await stage.reply(thread, lambda m: m.button("rca.probe.approve") is not None)
        await stage.lead.click(CHANNEL, asked.ts, "rca.probe.approve")
        approved = await stage.entry(lambda e: "approval" in e.data and "asked_by" in e.data)
        assert (approved.author, approved.data["asked_by"]) == ("U0LEAD", "U0SRE")
        await stage.entry(lambda e: e.kind is EntryKind.PROBE)


async def test_policy_keeps_a_word_from_those_who_may_not_use_it(
    redis_url: str, tmp_path: Path
) -> None:
    policy = PolicySettings(resolve=("U0LEAD",), confirm_cause=("U0LEAD",))
    async with staged(redis_url, tmp_path, policy=policy) as stage:
        await stage.start()
        await stage.sre.command(CHANNEL, "/rca resolve false alarm")
        await stage.whispered(stage.sre, "may not resolve incidents. These may: @lin.mei.")
        await stage.sre.command(CHANNEL, "/rca help")
        listed = (await stage.whispered(stage.sre, "Words of /rca")).all_text
        assert "/rca status" in listed
        assert "/rca resolve" not in listed

        async def ranked() -> bool:
            return (await stage.incident()).hypothesis("cpu_contention") is not None

        await stage.until(ranked, "the causes are ranked")
        await stage.sre.command(CHANNEL, "/rca hypothesis confirm cpu_contention")
        await stage.whispered(stage.sre, "may not confirm")
        assert (await stage.incident()).is_open
        assert (await stage.incident()).root_cause is None


async def test_cause_is_confirmed_only_with_evidence_and_then_shown(stage: Stage) -> None:
    thread = await stage.start()
    await _ask(stage, "hypothesis add the pool lock", "Added")
    incident = await stage.incident()
    own = next(h for h in incident.hypotheses if h.cause.startswith("person:"))
    place = incident.hypotheses.index(own) + 1
    await _ask(stage, f"hypothesis confirm {place}", "no evidence speaks for it")
    await _ask(stage, "note stacks stand in PinnedPool.acquire", "Noted")
    await stage.lead.command(CHANNEL, f"/rca hypothesis confirm {own.cause}")
    shown = await stage.reply(thread, lambda m: "Root cause confirmed" in m.all_text)
    assert "the pool lock" in shown.all_text
    root = (await stage.incident()).root_cause
    assert root is not None
    assert root.evidence
    await _ask(stage, "hypothesis reject 99 no", "the list has")
    await _ask(stage, "search pool lock", "1 incidents with")


async def test_role_names_the_person_without_paging_them(stage: Stage) -> None:
    thread = await stage.start()
    await _ask(stage, "role lead @alex.park", "Recorded")

    async def shown() -> bool:
        anchors = [m for m in await stage.lead.history(CHANNEL) if m.ts == thread]
        return "Lead: alex.park" in anchors[0].all_text

    await stage.until(shown, "the card names the lead")
    assert not any(
        "<@U0SRE>" in str(m.raw) for m in await stage.client.messages(CHANNEL) if m.bot_id
    )
    await _ask(stage, "role lead nobody", "nobody I can find")


async def test_drill_opens_in_the_training_channel(redis_url: str, tmp_path: Path) -> None:
    async with staged(redis_url, tmp_path, training_channel="C0DRILL") as stage:
        await _ask(stage, "drill cpu_contentoin", "Did you mean “cpu_contention”")
        await _ask(stage, "drill cpu_contention", "Exercise INC-")
        anchor = await stage.client.wait_for(
            lambda m: "[drill]" in m.all_text and not m.is_reply, channel="C0DRILL"
        )
        assert "cpu_contention" not in anchor.all_text
        opened = await stage.incident()
        assert opened.severity.value == "sev4"


async def test_fix_and_action_item_forms_fill_the_review(stage: Stage) -> None:
    thread = await stage.start()
    for reason in "abcde":
        await stage.sre.say(CHANNEL, f"@rca step pass {reason}", thread_ts=thread)
    review = await stage.reply(thread, lambda m: m.button("rca.fix") is not None)
    await stage.sre.click(CHANNEL, review.ts, "rca.fix")
    await stage.sre.wait_for_view(lambda v: v["callback_id"] == "rca_fix")
    await stage.sre.submit({"text": "preallocated pool of 64 buffers"})
    fixed = await stage.reply(
        thread, lambda m: "preallocated pool" in m.all_text and bool(m.buttons)
    )
    assert fixed.button("rca.verify") is not None
    await stage.sre.click(CHANNEL, review.ts, "rca.action_item")
    await stage.sre.wait_for_view(lambda v: v["callback_id"] == "rca_action_item")
    await stage.sre.submit({"text": "alert on pool wait", "owner": "U0DEV", "due": "2026-12-15"})
    await stage.entry(lambda e: e.kind is EntryKind.ACTION and e.op == "added")
    item = (await stage.incident()).action_items[0]
    assert (item.owner, item.due) == ("U0DEV", "2026-12-15")


class _Runner:
    """Two nodes, one of which answers only when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def run(self, node: str, probe: str, *_: object, **__: object) -> ProbeResult:
        if node == "gpu-2":
            await self.go.wait()
        finding = Finding(id="cpu.ok", severity=FindingSeverity.INFO, summary=f"{node} at rest")
        return ProbeResult(
            probe=probe,
            node=node,
            status=ProbeStatus.OK,
            started_at=utc_now(),
            duration_seconds=0.01,
            findings=(finding,),
        )


async def test_probe_answers_appear_as_they_come_in_one_message(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = await stage.start()
    await stage.calm()
    runner = _Runner()

    async def ports(*_: object) -> SimpleNamespace:
        return SimpleNamespace(probes=runner)

    monkeypatch.setattr(probing.Probing, "_ports", ports)
    monkeypatch.setattr(probing, "FIRST_SECONDS", 0.2)
    await stage.sre.command(CHANNEL, "/rca probe host_cpu on all")
    early = await stage.reply(thread, lambda m: "gpu-1 at rest" in m.all_text)
    assert "1 answers are still awaited" in early.all_text
    assert "gpu-2 at rest" not in early.all_text
    runner.go.set()
    whole = await stage.reply(thread, lambda m: "gpu-2 at rest" in m.all_text)
    assert whole.ts == early.ts
    assert "gpu-1 at rest" in whole.all_text
    assert "awaited" not in whole.all_text
    await stage.calm()
    tables = [m for m in await stage.sre.thread(CHANNEL, thread) if "Probe answers" in m.all_text]
    assert len(tables) == 1


async def test_a_heavy_probe_that_lacks_an_argument_asks_nobody_for_an_approval(
    stage: Stage,
) -> None:
    await stage.start()
    await stage.sre.command(CHANNEL, "/rca probe h2d_bandwidth on gpu-1")
    await stage.whispered(stage.sre, "h2d_bandwidth needs gpu=…")
    await stage.sre.command(CHANNEL, "/rca probe h2d_bandwidth on gpu-1 gpu=0 size=1")
    await stage.whispered(stage.sre, "does not take “size”; it takes: bytes, gpu.")


async def test_a_hypothesis_of_ones_own_says_where_it_stands(stage: Stage) -> None:
    await stage.start()

    async def ranked() -> bool:
        return (await stage.incident()).hypothesis("cpu_contention") is not None

    await stage.until(ranked, "the causes are ranked")
    await stage.sre.command(CHANNEL, "/rca hypothesis add the pool is too small")
    seen = await stage.whispered(stage.sre, "Added: the pool is too small. It is number ")
    titles = [item.title.en for item in (await stage.incident()).hypotheses]
    assert f"number {titles.index('the pool is too small') + 1};" in seen.all_text


async def test_help_knows_words_in_chinese_and_says_what_it_does_not_know(stage: Stage) -> None:
    await stage.sre.command(CHANNEL, "/rca help 探针")
    seen = await stage.whispered(stage.sre, "/rca probe NAME")
    assert "/rca status" not in seen.all_text
    await stage.sre.command(CHANNEL, "/rca help prob")
    await stage.whispered(stage.sre, "“prob” is no word of /rca. Did you mean “probe”?")
