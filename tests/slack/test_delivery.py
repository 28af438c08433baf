"""What goes out is there exactly once, whatever Slack, the network and Redis do."""

from __future__ import annotations

import itertools
import re

from slack_sdk.web.async_client import AsyncWebClient

from bot.app import utc_now
from bot.domain.text import Localized
from bot.jobs import outbox
from bot.message import Button, Message
from bot.slack.delivery import Delivery
from bot.slack.present import Part
from bot.slack.web import Web
from bot.store import surface
from bot.store.surface import PostState
from bot.workspace.config import BOT_TOKEN
from tests.slack.conftest import CHANNEL, Stage


async def _say(stage: Stage, once: str, text: str, **more: object) -> str:
    """Queues a notice in INC-1's thread and gives the job's id."""
    message = Message(view="notice", context={"text": Localized.verbatim(text).to_json(), **more})
    job = outbox.thread_post(await stage.incident(), message)
    await stage.bot.services.outbox.send(job, once=once)
    return job.id


async def test_rate_limit_delays_and_loses_nothing(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    await stage.client.inject(
        "error", "chat.postMessage", times=2, error="ratelimited", retry_after_s=1
    )
    await _say(stage, "n1", "after the limit")
    await stage.reply(thread, lambda m: m.all_text == "after the limit")
    calls = await stage.client.traffic("chat.postMessage")
    tried = [c["at"] for c in calls if "after the limit" in str(c)]
    assert len(tried) == 3
    # Not before Slack allows it, and never a word about it into the same channel.
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(tried))
    assert not [m for m in await stage.lead.thread(CHANNEL, thread) if "limit" in m.all_text[:5]]


async def test_answer_that_is_lost_is_looked_for_and_not_sent_again(stage: Stage) -> None:
    """The process died between Slack's answer and the record of it: the message is found by its key."""
    thread = await stage.start()
    await stage.calm()
    job_id = await _say(stage, "n1", "only once")
    first = await stage.reply(thread, lambda m: m.all_text == "only once")
    await stage.calm()
    key = f"{job_id}:0"
    state = await surface.post_state(stage.store, key)
    assert state is not None
    assert state.ts == first.ts
    # Back to the state in which a killed process leaves it, and the same job once more.
    await stage.store.commit(
        surface.post_progress(key, PostState(since=state.since)), doing="forget the answer"
    )
    message = Message(view="notice", context={"text": Localized.verbatim("only once").to_json()})
    job = outbox.thread_post(await stage.incident(), message)
    again = type(job)(kind=job.kind, lane=job.lane, payload=job.payload, id=job_id)
    await stage.bot.services.outbox.send(again, once="n2")
    await stage.calm()
    shown = [m for m in await stage.lead.thread(CHANNEL, thread) if m.all_text == "only once"]
    assert [m.ts for m in shown] == [first.ts]
    state = await surface.post_state(stage.store, key)
    assert state is not None
    assert state.ts == first.ts


async def test_a_second_try_that_finds_no_mark_looks_before_it_sends(stage: Stage) -> None:
    """An anchor is marked while it is sent: the process may have died with the one done and not the other."""
    ts = await stage.start()
    await stage.calm()
    incident = await stage.incident()
    delivery = Delivery(
        Web(AsyncWebClient(token=BOT_TOKEN, base_url=stage.settings.slack_api_url)),
        stage.store,
        utc_now,
    )
    await stage.store.text.delete(f"rca:post:card:{incident.id}")
    part = Part(blocks=(), text="the anchor once more")
    sent = await delivery.send(
        key=f"card:{incident.id}",
        channel=CHANNEL,
        thread_ts=None,
        part=part,
        plain=part,
        possible_since=incident.opened_at,
    )
    assert not sent.is_new
    assert sent.ts == ts
    fresh = await delivery.send(
        key="card:INC-99",
        channel=CHANNEL,
        thread_ts=None,
        part=part,
        plain=part,
        is_first_try=True,
        possible_since=incident.opened_at,
    )
    assert fresh.is_new
    state = await surface.post_state(stage.store, "card:INC-99")
    assert state is not None
    assert state.ts == fresh.ts


async def test_message_that_slack_refuses_is_said_in_plain_text(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    await stage.client.inject("error", "chat.postMessage", times=1, error="invalid_blocks")
    await _say(stage, "n1", "in plain words")
    shown = await stage.reply(thread, lambda m: m.text == "in plain words")
    assert not shown.blocks


async def test_refused_part_of_a_long_message_is_replaced_by_its_own_words(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    await stage.client.inject("error", "chat.postMessage", times=1, error="invalid_blocks")
    lines = "\n".join(f"line {n} " + "x" * 40 for n in range(500))
    job_id = await _say(stage, "n1", lines)
    assert job_id
    await stage.reply(thread, lambda m: "line 499" in m.all_text)
    await stage.calm()
    sent = [m for m in await stage.lead.thread(CHANNEL, thread) if "line " in m.all_text]
    assert not sent[0].blocks
    firsts = [re.findall(r"line (\d+) ", m.all_text)[0] for m in sent]
    # No part says what another one says.
    assert firsts == sorted(set(firsts), key=int)
    assert "line 0 " in sent[0].text


async def test_direct_message_that_slack_refuses_is_said_in_plain_text(stage: Stage) -> None:
    """Where neither the answer's own address nor the channel takes it, the person gets it directly, and whole."""
    await stage.client.inject("error", "chat.postEphemeral", times=1, error="user_not_in_channel")
    await stage.client.inject("error", "chat.postMessage", times=1, error="invalid_blocks")
    text = Localized.verbatim("meant for one").to_json()
    job = outbox.private_post(
        CHANNEL,
        "U0SRE",
        Message(view="error", context={"text": text}),
        thread_ts=None,
        response_url=None,
    )
    await stage.bot.services.outbox.send(job, once="p1")
    told = await stage.sre.wait_for(lambda m: "meant for one" in m.all_text)
    assert told.channel.startswith("D")
    assert not told.blocks


async def test_broken_template_still_says_its_words(stage: Stage) -> None:
    thread = await stage.start()
    message = Message(
        view="no_such_view", context={"text": Localized("still <here>", "还在").to_json()}
    )
    job = outbox.thread_post(await stage.incident(), message)
    await stage.bot.services.outbox.send(job, once="n1")
    shown = await stage.reply(thread, lambda m: "still" in m.text)
    assert "&lt;here&gt;" in shown.text


async def test_long_code_is_split_and_every_line_arrives_in_its_own_fence(stage: Stage) -> None:
    thread = await stage.start()
    lines = [f"line {n} 日志 ``` <x> & y" for n in range(500)]
    diff = "\n".join(lines)
    from bot.slack.split import sections
    from bot.slack.text import code

    pieces = sections(code(diff))
    assert all(len(p) <= 3000 and p.startswith("```") and p.endswith("```") for p in pieces)
    back = "\n".join(p.removeprefix("```\n").removesuffix("\n```") for p in pieces)
    assert back.split("\n") == [
        line.replace("```", "ˋˋˋ").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        for line in lines
    ]
    await _say(stage, "n1", diff)

    async def arrived() -> bool:
        await stage.calm()
        seen = "\n".join(m.all_text for m in await stage.lead.thread(CHANNEL, thread))
        return all(f"line {n} 日志" in seen for n in range(500))

    await stage.until(arrived, "all lines are in the thread")


async def test_card_is_updated_in_place_and_only_when_it_changed(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    before = len(await stage.client.traffic("chat.update"))
    job = outbox.card_job(await stage.incident())
    await stage.bot.services.outbox.send(job, once="c1")
    await stage.calm()
    assert len(await stage.client.traffic("chat.update")) == before
    await stage.lead.command(CHANNEL, "/rca severity sev1")
    await stage.until(lambda: _has(stage, thread, "sev1"), "the card shows the new severity")


async def _has(stage: Stage, ts: str, text: str) -> bool:
    return any(m.ts == ts and text in m.all_text for m in await stage.lead.history(CHANNEL))


async def test_archived_channel_is_left_alone_until_it_is_open_again(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    await stage.client.inject("error", "chat.postMessage", times=1, error="is_archived")
    await _say(stage, "n1", "words for no one")
    entry = await stage.entry(lambda e: e.op == "undelivered")
    assert entry.data["why"] == "is_archived"
    told = await stage.lead.wait_for(lambda m: "is archived" in m.all_text)
    assert told.channel.startswith("D")
    before = len(await stage.client.traffic())
    await _say(stage, "n2", "more words for no one")
    await stage.lead.command("C0DRILL", "/rca note INC-1 kept all the same")
    await stage.entry(lambda e: e.text is not None and e.text.en == "kept all the same")
    await stage.calm()
    calls = (await stage.client.traffic())[before:]
    assert [c for c in calls if "more words" in str(c["request"])] == []
    notice = {"type": "message", "channel": CHANNEL, "user": "U0LEAD", "text": "un/archived"}
    open_again = {**notice, "subtype": "channel_unarchive", "ts": "1796070000.000801"}
    await stage.deliver(stage.event(open_again, "EvOpen"))
    await stage.reply(thread, lambda m: m.button("rca.step.next") is not None)
    await _say(stage, "n3", "heard again")
    await stage.reply(thread, lambda m: m.all_text == "heard again")
    shut = {**notice, "subtype": "channel_archive", "ts": "1796070000.000802"}
    await stage.deliver(stage.event(shut, "EvShut"))
    await stage.calm()
    await _say(stage, "n4", "into the void")
    await stage.calm()
    assert "into the void" not in str(await stage.client.traffic("chat.postMessage"))


async def test_hostile_words_are_inert_everywhere(stage: Stage) -> None:
    evil = "sev2 *b* <!channel> <@U0LEAD> @here <http://evil.example|click> {{ 7*7 }} `x` 5 %"
    thread = await stage.start(evil)
    await stage.calm()
    for message in await stage.client.messages(CHANNEL):
        if not message.bot_id:
            continue
        raw = str(message.raw)
        for token in ("<!channel>", "<@U0LEAD>", "<http://evil.example", "<!here>"):
            assert token not in raw
    anchor = next(m for m in await stage.lead.history(CHANNEL) if m.ts == thread)
    assert "{{ 7*7 }}" in anchor.all_text


async def test_old_or_foreign_button_says_that_it_is_out_of_date(stage: Stage) -> None:
    thread = await stage.start()
    button = Button(action_id="rca.gone", label=Localized.verbatim("old"), payload={"x": 1})
    message = Message(
        view="notice",
        context={"text": Localized.verbatim("an old message").to_json()},
        buttons=(button,),
    )
    job = outbox.thread_post(await stage.incident(), message)
    await stage.bot.services.outbox.send(job, once="n1")
    shown = await stage.reply(thread, lambda m: "an old message" in m.all_text)
    assert (await stage.lead.click(CHANNEL, shown.ts, "rca.gone")).is_good
    await stage.whispered(stage.lead, "out of date")


async def test_files_are_shared_in_the_thread_once(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    await stage.store.put_blob("rca:inc:INC-1:blob:c1.png", b"\x89PNG fake")
    title = Localized("P99", "P99 延迟")
    message = Message(
        view="chart",
        context={"title": title.to_json(), "alt": title.to_json()},
        files=("rca:inc:INC-1:blob:c1.png",),
    )
    job = outbox.thread_post(await stage.incident(), message)
    await stage.client.inject("error", "files.completeUploadExternal", times=1)
    await stage.bot.services.outbox.send(job, once="n1")
    shared = await stage.reply(thread, lambda m: bool(m.files))
    assert shared.files[0]["name"] == "c1.png"
    assert "P99" in shared.text
    await stage.calm()
    with_files = [m for m in await stage.lead.thread(CHANNEL, thread) if m.files]
    assert len(with_files) == 1
    assert len(await stage.client.traffic("files.getUploadURLExternal")) == 1
