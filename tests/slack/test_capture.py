"""What is said in the thread is in the record: once, with its own time, edited and withheld as its author wants."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bot.domain.action_item import ActionStatus
from bot.domain.hypothesis import HypothesisStatus
from bot.domain.timeline import EntryKind
from bot.workspace.config import SCOPES
from tests.slack.conftest import CHANNEL, Stage, staged
from tests.slack.test_receiver import post


async def test_message_edit_and_delete_follow_the_author(stage: Stage) -> None:
    thread = await stage.start()
    ts = await stage.sre.say(CHANNEL, "gpu-1 shows Xid 78", thread_ts=thread)
    secret = await stage.sre.say(CHANNEL, "my password is hunter2", thread_ts=thread)
    await stage.entry(lambda e: e.data.get("ts") == secret)
    await stage.sre.edit(CHANNEL, ts, "gpu-1 shows Xid 79")
    await stage.sre.delete(CHANNEL, secret)
    gone = await stage.entry(lambda e: e.data.get("ts") == secret and e.is_withheld)
    edited = await stage.entry(lambda e: e.data.get("ts") == ts and bool(e.history))
    assert edited.text is not None
    assert edited.text.en == "gpu-1 shows Xid 79"
    assert [r.text.en for r in edited.history] == ["gpu-1 shows Xid 78"]
    assert edited.seq < gone.seq
    assert f"{edited.at.timestamp():.6f}" == ts
    await stage.calm()
    dump = json.dumps([e.body_json() for e in await stage.entries()], ensure_ascii=False)
    values = [str(await stage.store.text.hgetall("rca:inc:INC-1:texts"))]
    assert "hunter2" not in dump + values[0]


async def test_deletion_that_overtakes_its_message_still_withholds_it(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    base = {"type": "message", "channel": CHANNEL, "channel_type": "channel"}
    ts = "1772586960.000100"
    deleted = {**base, "subtype": "message_deleted", "deleted_ts": ts, "ts": "1772586970.000300"}
    late = {**base, "user": "U0SRE", "text": "hunter2", "ts": ts, "thread_ts": thread}
    assert (await stage.deliver(stage.event(deleted, "EvD"))).status_code == 200
    assert (await stage.deliver(stage.event(late, "EvM"))).status_code == 200
    await stage.entry(lambda e: e.data.get("ts") == ts and e.is_withheld)


async def test_deletion_that_overtakes_a_note_by_mention_withholds_the_evidence(
    stage: Stage,
) -> None:
    thread = await stage.start()
    await stage.calm()
    base = {"channel": CHANNEL, "channel_type": "channel"}
    ts = "1772586960.000100"
    deleted = {"type": "message", "subtype": "message_deleted", "deleted_ts": ts, **base}
    words = "<@U0RCABOT> note token abc123 leaked"
    late = {"type": "app_mention", "user": "U0SRE", "text": words, "ts": ts, **base}
    await stage.deliver(stage.event({**deleted, "ts": "1772586970.000300"}, "EvD"))
    await stage.deliver(stage.event({**late, "thread_ts": thread}, "EvM"))
    await stage.entry(lambda e: bool(e.data.get("person")) and e.is_withheld)


async def test_mitigation_whose_words_are_deleted_while_it_captures_is_withheld(
    stage: Stage,
) -> None:
    thread = await stage.start()
    await stage.calm()
    base = {"channel": CHANNEL, "channel_type": "channel"}
    ts = "1772586960.000100"
    words = "<@U0RCABOT> mitigate restart with token abc123"
    said = {"type": "app_mention", "user": "U0SRE", "text": words, "ts": ts, **base}
    deleted = {"type": "message", "subtype": "message_deleted", "deleted_ts": ts, **base}
    await stage.deliver(stage.event({**deleted, "ts": "1772586970.000300"}, "EvD"))
    await stage.deliver(stage.event({**said, "thread_ts": thread}, "EvM"))
    await stage.entry(lambda e: e.kind is EntryKind.MITIGATION and e.is_withheld)


async def test_reaction_on_a_message_that_is_gone_makes_nothing_of_no_words(stage: Stage) -> None:
    thread = await stage.start()
    ts = await stage.sre.say(CHANNEL, "the pool lock", thread_ts=thread)
    await stage.entry(lambda e: e.data.get("ts") == ts)
    await stage.sre.delete(CHANNEL, ts)
    await stage.entry(lambda e: e.data.get("ts") == ts and e.is_withheld)
    item = {"type": "message", "channel": CHANNEL, "ts": ts}
    late = {"type": "reaction_added", "user": "U0SRE", "reaction": "bulb", "item": item}
    await stage.deliver(stage.event({**late, "event_ts": "1772586970.000300"}, "EvR"))
    await stage.calm()
    assert EntryKind.REACTION not in [e.kind for e in await stage.entries()]


async def test_deleting_a_note_by_mention_withholds_the_evidence(stage: Stage) -> None:
    thread = await stage.start()
    ts = await stage.sre.say(CHANNEL, "@rca note token abc123 leaked", thread_ts=thread)
    await stage.entry(lambda e: bool(e.data.get("person")))
    await stage.sre.edit(CHANNEL, ts, "@rca note a token leaked")
    await stage.entry(
        lambda e: bool(e.data.get("person")) and e.text and e.text.en == "a token leaked"
    )
    await stage.sre.delete(CHANNEL, ts)
    await stage.entry(lambda e: bool(e.data.get("person")) and e.is_withheld)
    assert all("abc123" not in str(item.summary) for item in (await stage.incident()).evidence)


async def test_retries_and_repeats_enter_the_timeline_once(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    said = {
        "type": "message",
        "channel": CHANNEL,
        "user": "U0SRE",
        "text": "rolled back to v41",
        "ts": "1772587000.000100",
        "thread_ts": thread,
    }
    only_retry = {**said, "text": "error rate is falling", "ts": "1772587050.000100"}
    broadcast = {**said, "subtype": "thread_broadcast"}
    for event, event_id, retry in (
        (said, "EvA1", None),
        (said, "EvA1", "1"),
        (only_retry, "EvB7", "1"),
        (said, "EvA9", None),
        (broadcast, "EvA7", None),
    ):
        headers = {"x-slack-retry-num": retry} if retry else {}
        assert (await stage.deliver(stage.event(event, event_id), **headers)).status_code == 200
    await stage.calm()
    texts = [e.text.en for e in await stage.entries() if e.kind is EntryKind.MESSAGE and e.text]
    assert texts == ["rolled back to v41", "error rate is falling"]


async def test_only_what_is_new_is_kept_and_a_broadcast_reply_is(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    base = {"type": "message", "channel": CHANNEL, "user": "U0SRE", "thread_ts": thread}
    new = ("thread_broadcast", "me_message", "bot_message", "file_share")
    subtypes = (*new, "channel_topic", "channel_join", "bot_add")
    for place, subtype in enumerate(subtypes):
        ts = f"1772587100.00010{place}"
        event = {**base, "subtype": subtype, "text": subtype, "ts": ts}
        if subtype == "bot_message":
            # Another app's words: it has a name of its own and no user.
            event |= {"user": None, "bot_id": "B0DEPLOYS", "username": "deploys"}
        assert (await stage.deliver(stage.event(event, f"EvS{place}"))).status_code == 200
    await stage.calm()
    kept = [e.text.en for e in await stage.entries() if e.kind is EntryKind.MESSAGE and e.text]
    assert sorted(kept) == sorted(new)


async def test_half_of_a_character_pair_is_kept_as_a_mark_and_stops_nothing(stage: Stage) -> None:
    thread = await stage.start()
    event = {
        "type": "message",
        "channel": CHANNEL,
        "user": "U0SRE",
        "text": "cut \ud83d here, whole \U0001f525 there",
        "ts": "1772587200.000100",
        "thread_ts": thread,
    }
    raw = json.dumps(stage.event(event, "EvHalf"))
    assert (await post(stage, raw)).status_code == 200
    entry = await stage.entry(lambda e: e.data.get("ts") == event["ts"])
    assert entry.text is not None
    assert entry.text.en == "cut \ufffd here, whole \U0001f525 there"


async def test_app_mention_and_message_of_one_message_act_once(stage: Stage) -> None:
    thread = await stage.start()
    await stage.sre.say(CHANNEL, "@rca hypothesis add the pool lock", thread_ts=thread)
    await stage.entry(lambda e: e.kind is EntryKind.HYPOTHESIS and e.op == "added")
    await stage.calm()
    added = [e for e in await stage.entries() if e.op == "added"]
    assert len(added) == 1
    answers = [m for m in await stage.sre.thread(CHANNEL, thread) if "Added" in m.all_text]
    assert len(answers) == 1


@pytest.mark.parametrize(
    "emoji", ["pushpin", "bulb", "scales", "hammer_and_wrench", "ballot_box_with_check"]
)
async def test_reaction_counts_and_taking_it_away_takes_it_back(stage: Stage, emoji: str) -> None:
    thread = await stage.start()
    ts = await stage.sre.say(CHANNEL, "the pool lock is held 400 ms", thread_ts=thread)
    await stage.entry(lambda e: e.data.get("ts") == ts)
    await stage.lead.react(CHANNEL, ts, emoji)
    entry = await stage.entry(lambda e: e.kind is EntryKind.REACTION)
    assert entry.text is not None
    assert entry.text.en == "the pool lock is held 400 ms"
    incident = await stage.incident()
    match emoji:
        case "pushpin":
            assert [e.summary.en for e in incident.evidence] == [entry.text.en]
        case "bulb":
            assert incident.hypothesis(f"person:r{entry.seq}") is not None
        case "hammer_and_wrench":
            assert incident.fix is not None
        case "ballot_box_with_check":
            assert [item.status for item in incident.action_items] == [ActionStatus.OPEN]
        case _:
            assert entry.data["meaning"] == "decision"
    await stage.lead.unreact(CHANNEL, ts, emoji)
    undone = await stage.entry(lambda e: e.kind is EntryKind.REACTION and e.data.get("removed"))
    assert undone.corrects == entry.seq
    incident = await stage.incident()
    assert not incident.evidence
    assert incident.fix is None
    assert all(item.status is ActionStatus.DROPPED for item in incident.action_items)
    hypothesis = incident.hypothesis(f"person:r{entry.seq}")
    assert hypothesis is None or hypothesis.status is HypothesisStatus.REJECTED


async def test_other_reactions_and_messages_outside_a_thread_are_nobodys_business(
    stage: Stage,
) -> None:
    thread = await stage.start()
    ts = await stage.sre.say(CHANNEL, "lunch?")
    await stage.sre.react(CHANNEL, ts, "pushpin")
    inside = await stage.sre.say(CHANNEL, "hm", thread_ts=thread)
    await stage.sre.react(CHANNEL, inside, "eyes")
    await stage.calm()
    kinds = [e.kind for e in await stage.entries()]
    assert kinds.count(EntryKind.MESSAGE) == 1
    assert EntryKind.REACTION not in kinds


async def test_file_in_the_thread_is_copied_with_the_token(stage: Stage) -> None:
    thread = await stage.start()
    content = b"2026-11-30 20:05:01 lock held\n" * 100
    await stage.sre.upload(CHANNEL, "lock.txt", content, thread_ts=thread)
    entry = await stage.entry(lambda e: bool(e.data.get("files")))
    blob = entry.data["files"][0]["blob"]

    async def copied() -> bool:
        return await stage.store.blob(blob) == content

    await stage.until(copied, "the file is in the store")


async def test_mentions_become_names_and_entities_plain_text(stage: Stage) -> None:
    thread = await stage.start()
    await stage.sre.say(CHANNEL, "@lin.mei p95 < 2 && see #alerts", thread_ts=thread)
    entry = await stage.entry(lambda e: e.kind is EntryKind.MESSAGE)
    assert entry.text is not None
    assert entry.text.en == "@lin.mei p95 < 2 && see #alerts"


async def test_name_is_asked_for_once_however_often_it_is_said(stage: Stage) -> None:
    thread = await stage.start()
    for n in range(3):
        ts = await stage.sre.say(CHANNEL, f"@chen.siyuan look {n}", thread_ts=thread)
        said = await stage.entry(lambda e, ts=ts: e.data.get("ts") == ts)
        assert said.text is not None
        assert said.text.en.startswith("@")
        assert "U0DEV" not in said.text.en
    await stage.calm()
    asked = [str(c["request"]) for c in await stage.client.traffic("users.info")]
    assert len([request for request in asked if "U0DEV" in request]) == 1


async def test_deleting_the_root_keeps_the_incident(stage: Stage) -> None:
    root = await stage.sre.say(CHANNEL, "answers take 600 ms")
    await stage.sre.say(CHANNEL, "@rca start sev2 P99 600 ms", thread_ts=root)
    await stage.entry(lambda e: e.data.get("ts") == root)
    await stage.sre.delete(CHANNEL, root)
    await stage.entry(lambda e: e.data.get("ts") == root and e.is_withheld)
    assert (await stage.incident()).is_open


async def _shared(stage: Stage, url: str, ts: str) -> None:
    """A file in the thread that is kept at `url`."""
    event = {
        "type": "message",
        "subtype": "file_share",
        "channel": CHANNEL,
        "user": "U0SRE",
        "text": "",
        "ts": ts,
        "thread_ts": (await stage.incident()).thread_ts,
        "files": [{"id": f"F{ts[-3:]}", "name": "a.txt", "mimetype": "text/plain", "size": 4}],
    }
    event["files"][0]["url_private_download"] = url  # type: ignore[index]
    assert (await stage.deliver(stage.event(event, f"EvF{ts}"))).status_code == 200
    await stage.entry(lambda e: e.data.get("ts") == ts)
    await stage.calm()


async def test_sign_in_page_with_status_200_is_no_file(redis_url: str, tmp_path: Path) -> None:
    scopes = {"scopes": SCOPES - {"files:read"}}
    async with staged(redis_url, tmp_path, workspace=scopes) as stage:
        thread = await stage.start()
        await stage.sre.upload(CHANNEL, "lock.txt", b"1234", thread_ts=thread)
        entry = await stage.entry(lambda e: bool(e.data.get("files")))
        await stage.calm()
        assert await stage.store.blob(entry.data["files"][0]["blob"]) is None


async def test_token_is_never_sent_to_where_a_remote_file_lies(stage: Stage) -> None:
    await stage.start()
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await _shared(stage, f"http://127.0.0.1:{port}/x", "1796070000.000702")
        await _shared(stage, "https://slack.com.evil.example/x", "1796070000.000703")
    assert seen == []
    assert await stage.store.text.lrange("rca:parked:inbound", 0, -1) == []
