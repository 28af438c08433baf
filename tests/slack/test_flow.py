"""From a command to a resolved incident, by the hands of people."""

from __future__ import annotations

from bot.domain.incident import IncidentStatus
from bot.domain.timeline import EntryKind
from tests.slack.conftest import CHANNEL, Stage


async def test_start_posts_one_anchor_and_the_first_step_in_its_thread(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
    assert "1/6" in prompt.all_text
    await stage.calm()
    roots = [m for m in await stage.lead.history(CHANNEL) if m.bot_id and m.only_for is None]
    assert [m.ts for m in roots] == [thread]
    assert (await stage.incident()).thread_ts == thread


async def test_symptom_form_fills_the_gate_and_the_next_button_moves_on(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
    await stage.sre.click(CHANNEL, prompt.ts, "rca.symptom")
    view = await stage.sre.wait_for_view()
    assert view["callback_id"] == "rca_symptom"
    await stage.sre.submit(
        {"text": "P99 is 600 ms, usually 80 ms", "scope": "gpu-1, all tenants", "since": "20m"}
    )

    async def confirmed() -> bool:
        return (await stage.incident()).scope.is_confirmed

    await stage.until(confirmed, "the scope is confirmed")
    symptom = (await stage.incident()).symptoms[-1]
    assert symptom.since is not None
    assert symptom.summary.en == "P99 is 600 ms, usually 80 ms"
    await stage.sre.click(CHANNEL, prompt.ts, "rca.step.next")
    await stage.reply(thread, lambda m: "2/6" in m.all_text)
    assert (await stage.incident()).current_step == "information"


async def test_closed_gate_says_what_is_missing_and_a_reason_passes_it(stage: Stage) -> None:
    thread = await stage.start("it is slow")
    prompt = await stage.reply(thread, lambda m: m.button("rca.step.next") is not None)
    await stage.lead.click(CHANNEL, prompt.ts, "rca.step.next")
    told = await stage.whispered(stage.lead, "still needs")
    assert "figures" in told.all_text
    assert "since when" in told.all_text
    await stage.lead.click(CHANNEL, prompt.ts, "rca.gate.pass")
    await stage.lead.wait_for_view()
    await stage.lead.submit({"reason": "the customer is on the phone"})
    await stage.reply(thread, lambda m: "2/6" in m.all_text)
    gate = await stage.entry(lambda e: e.kind is EntryKind.GATE)
    assert gate.text is not None
    assert gate.text.en == "the customer is on the phone"
    assert len(gate.data["missing"]) == 3


async def test_mention_in_the_thread_runs_the_same_words(stage: Stage) -> None:
    thread = await stage.start()
    await stage.sre.say(CHANNEL, "@rca severity sev1", thread_ts=thread)
    await stage.entry(lambda e: e.kind is EntryKind.SEVERITY)
    await stage.sre.say(CHANNEL, "@rca note OOM on gpu-1 &  <b>", thread_ts=thread)
    note = await stage.entry(lambda e: e.kind is EntryKind.EVIDENCE and e.data.get("person"))
    assert note.text is not None
    assert note.text.en == "OOM on gpu-1 & <b>"
    assert note.permalink is not None
    await stage.calm()
    anchor = next(m for m in await stage.lead.history(CHANNEL) if m.ts == thread)
    assert "sev1" in anchor.all_text


async def test_mitigation_is_open_in_the_first_step(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.mitigate") is not None)
    await stage.sre.click(CHANNEL, prompt.ts, "rca.mitigate")
    await stage.sre.wait_for_view()
    await stage.sre.submit({"text": "rolled back to v41"})
    await stage.reply(thread, lambda m: "rolled back to v41" in m.all_text)
    assert (await stage.incident()).status is IncidentStatus.MITIGATED


async def test_resolve_with_open_gate_needs_a_reason_that_is_kept(stage: Stage) -> None:
    await stage.start()
    await stage.lead.command(CHANNEL, "/rca resolve")
    await stage.whispered(stage.lead, "still needs")
    await stage.lead.command(CHANNEL, "/rca resolve ‘误报 false alarm’")
    await stage.whispered(stage.lead, "is resolved")
    incident = await stage.incident()
    assert incident.status is IncidentStatus.RESOLVED
    assert [e.text.en for e in await stage.entries() if e.kind is EntryKind.GATE and e.text] == [
        "误报 false alarm"
    ]


async def test_start_here_opens_on_the_message_and_keeps_what_was_said_before(stage: Stage) -> None:
    root = await stage.sre.say(CHANNEL, "answers take 600 ms since the evening")
    await stage.sre.say(CHANNEL, "restarting does not help", thread_ts=root)
    assert (await stage.lead.shortcut(CHANNEL, root)).is_good
    await stage.lead.wait_for_view()
    await stage.lead.submit({"text": "P99 600 ms", "severity": "sev2", "service": "translate-api"})
    card = await stage.reply(root, lambda m: "INC-1" in m.all_text)
    await stage.entry(lambda e: e.text is not None and "restarting" in e.text.en)
    await stage.calm()
    incident = await stage.incident()
    assert (incident.thread_ts, incident.card_ts) == (root, card.ts)
    assert not [m for m in await stage.lead.history(CHANNEL) if m.bot_id and m.only_for is None]


async def test_two_open_incidents_in_a_channel_are_told_apart_by_a_choice(stage: Stage) -> None:
    await stage.start()
    await stage.lead.command(CHANNEL, "/rca start second one 5 %")
    await stage.whispered(stage.lead, "INC-2")
    await stage.lead.command(CHANNEL, "/rca severity sev1")
    choice = await stage.whispered(stage.lead, "which one")
    buttons = [b for b in choice.buttons if b.action_id == "rca.choice"]
    second = next(b for b in buttons if b.text.startswith("INC-2"))
    await stage.lead.click(CHANNEL, choice.ts, "rca.choice", second.value)

    async def changed() -> bool:
        return (await stage.incident("INC-2")).severity.value == "sev1"

    await stage.until(changed, "the chosen incident changed")
    assert (await stage.incident()).severity.value == "sev2"


async def test_chinese_deployment_speaks_chinese(redis_url: str, tmp_path) -> None:
    from tests.slack.conftest import staged

    chinese = {"locales": {"U0LEAD": "zh-CN"}, "environment": {"RCA_LOCALE": "zh-CN"}}
    async with staged(redis_url, tmp_path, **chinese) as stage:
        thread = await stage.start("sev2 translate-api 变慢了")
        prompt = await stage.reply(thread, lambda m: "现象确认" in m.all_text)
        assert prompt.button("rca.step.next").text == "下一步"
        await stage.lead.command(CHANNEL, "/rca 状态")
        told = await stage.whispered(stage.lead, "个未关闭的事件")
        assert "INC-1" in told.all_text


async def test_bot_that_is_not_in_the_channel_says_so_and_catches_up_once_invited(
    stage: Stage,
) -> None:
    await stage.lead.command("C0GENERAL", "/rca start sev2 P99 of translate-api is 600 ms")
    told = await stage.lead.wait_for(lambda m: "Invite me" in m.all_text)
    assert "not_in_channel" in told.all_text
    undelivered = await stage.entry(lambda e: e.op == "undelivered")
    assert undelivered.text is not None
    await stage.lead.invite_app("C0GENERAL")
    anchor = await stage.client.wait_for(
        lambda m: m.bot_id == "B0RCABOT" and m.only_for is None and not m.is_reply,
        channel="C0GENERAL",
    )
    assert "INC-1" in anchor.all_text
    await stage.client.wait_for(
        lambda m: m.is_reply and m.button("rca.symptom") is not None, channel="C0GENERAL"
    )
