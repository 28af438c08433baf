"""One policy for every way of acting: all words, buttons, forms, shortcuts and reactions are walked through here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import bot.slack.gate
import commands
from bot.command import Command, Permission
from bot.domain.reaction import MEANINGS as REACTIONS
from bot.domain.timeline import EntryKind
from bot.registry import collect
from bot.settings import PolicySettings
from bot.slack import forms
from bot.slack.gate import Door, Gate
from bot.slack.interactions import START_HERE
from bot.slack.presses import MEANINGS
from bot.store import surface
from tests.slack.conftest import CHANNEL, Stage, staged
from tests.slack.test_receiver import post

WORDS = collect(commands, Command)


def every_way() -> list[tuple[Door, str]]:
    return [
        *((Door.WORD, word) for word in WORDS),
        *((Door.BUTTON, action_id) for action_id in MEANINGS),
        *((Door.FORM, form) for form in forms.FORMS),
        (Door.SHORTCUT, START_HERE),
        *((Door.REACTION, emoji) for emoji in REACTIONS),
    ]


async def _payload(stage: Stage, body: dict[str, Any]) -> None:
    who = {"user": {"id": "U0SRE", "team_id": "T0LOCAL"}, "team": {"id": "T0LOCAL"}}
    sent = urlencode({"payload": json.dumps(body | who | {"api_app_id": "A0RCABOT"})})
    assert (await post(stage, sent, form=True)).status_code == 200


async def act(stage: Stage, door: Door, name: str, ts: str) -> None:
    """Acts as a person does, as Slack delivers it."""
    opaque = f"{door.value}-{name}".replace(".", "-")
    held: dict[str, Any] = {"incident": "INC-1", "payload": {}}
    match door:
        case Door.WORD:
            form = {"command": "/rca", "text": f"{name} INC-1", "user_id": "U0SRE"}
            form |= {"channel_id": CHANNEL, "trigger_id": f"1.{name}", "team_id": "T0LOCAL"}
            assert (await post(stage, urlencode(form), form=True)).status_code == 200
        case Door.BUTTON:
            step = surface.remember_button(opaque, {**held, "action": name})
            await stage.store.commit(step, doing="test")
            action = {"type": "button", "action_id": name, "value": opaque, "block_id": "b"}
            body = {"type": "block_actions", "actions": [action], "trigger_id": f"2.{name}"}
            await _payload(stage, body | {"channel": {"id": CHANNEL}})
        case Door.FORM:
            meaning = {**held, "form": name, "word": "note", "text": "x", "channel": CHANNEL}
            await stage.store.commit(surface.remember_button(opaque, meaning), doing="test")
            values = {"text": {"value": {"type": "plain_text_input", "value": "x"}}}
            view = {"id": f"V{name}", "callback_id": name, "private_metadata": opaque}
            view |= {"hash": "1", "state": {"values": values}, "type": "modal", "blocks": []}
            await _payload(stage, {"type": "view_submission", "view": view})
        case Door.SHORTCUT:
            body = {"type": "message_action", "callback_id": name, "trigger_id": "3.1"}
            body |= {"channel": {"id": CHANNEL}, "message": {"ts": ts, "text": "x"}}
            await _payload(stage, body | {"message_ts": ts})
        case Door.REACTION:
            item = {"type": "message", "channel": CHANNEL, "ts": ts}
            event = {"type": "reaction_added", "user": "U0SRE", "reaction": name, "item": item}
            event_ts = f"17960000{list(REACTIONS).index(name):02d}.000100"
            body = stage.event({**event, "event_ts": event_ts}, f"EvP{name}")
            assert (await stage.deliver(body)).status_code == 200


async def test_nobody_acts_past_the_policy_and_every_refusal_is_in_the_record(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = await stage.start()
    ts = await stage.lead.say(CHANNEL, "the pool lock", thread_ts=thread)
    await stage.entry(lambda e: e.data.get("ts") == ts)
    await stage.calm()
    before = len(await stage.entries())
    asked: list[tuple[Door, str]] = []
    real = Gate.refusal

    async def noted(self: Gate, door: Door, name: str, *rest: Any) -> Any:
        asked.append((door, name))
        return await real(self, door, name, *rest)

    monkeypatch.setattr(Gate, "refusal", noted)
    monkeypatch.setattr(bot.slack.gate, "allowed", lambda *_: False)
    for door, name in every_way():
        await act(stage, door, name, ts)
    await stage.calm()
    assert sorted(set(asked)) == sorted(every_way())
    entries = (await stage.entries())[before:]
    refused = {str(e.data["refused"]) for e in entries if "refused" in e.data}
    assert refused == {f"{d.value} {n}" for d, n in every_way() if d is not Door.SHORTCUT}
    assert {e.author for e in entries if "refused" in e.data} == {"U0SRE"}
    # Nothing else was written: whoever may not act changes nothing.
    assert [e for e in entries if "refused" not in e.data and e.author == "U0SRE"] == []
    assert await stage.store.text.lrange("rca:parked:inbound", 0, -1) == []


@pytest.mark.parametrize(
    ("action_id", "permission"),
    [
        ("rca.hypothesis.confirm", Permission.CONFIRM_CAUSE),
        ("rca.probe.approve", Permission.APPROVE_HEAVY),
        ("rca.resolve", Permission.RESOLVE),
        ("rca.report.final", Permission.REVIEW),
    ],
)
async def test_button_asks_for_what_its_word_asks_for(
    redis_url: str, tmp_path: Path, action_id: str, permission: Permission
) -> None:
    policy = PolicySettings.model_validate({permission.value: ["U0LEAD"]})
    async with staged(redis_url, tmp_path, policy=policy) as stage:
        await stage.start()
        await act(stage, Door.BUTTON, action_id, "")
        entry = await stage.entry(lambda e: "refused" in e.data)
        assert entry.data["refused"] == f"button {action_id}"
        assert (await stage.incident()).is_open


async def test_class_of_a_probe_decides_who_may_run_it(redis_url: str, tmp_path: Path) -> None:
    policy = PolicySettings(run_moderate=("U0LEAD",))
    async with staged(redis_url, tmp_path, policy=policy) as stage:
        await stage.start()
        await stage.sre.command(CHANNEL, "/rca probe process_stacks on gpu-1")
        await stage.whispered(stage.sre, "moderate")
        assert (await stage.entry(lambda e: "refused" in e.data)).data["refused"] == "word probe"
        await stage.sre.command(CHANNEL, "/rca probe host_cpu on gpu-1")
        await stage.entry(lambda e: e.kind is EntryKind.PROBE and e.author == "U0SRE")
        await stage.lead.command(CHANNEL, "/rca probe process_stacks on gpu-1")
        await stage.entry(lambda e: e.kind is EntryKind.PROBE and e.author == "U0LEAD")


async def test_approval_is_in_the_record_with_who_asked_and_who_approved(stage: Stage) -> None:
    await stage.start()
    await stage.sre.command(CHANNEL, "/rca probe h2d_bandwidth on gpu-1 gpu=0")
    asked = await stage.whispered(stage.sre, "needs an approval")
    await stage.sre.click(CHANNEL, asked.ts, "rca.probe.approve")
    entry = await stage.entry(lambda e: "approval" in e.data)
    assert (entry.author, entry.data["asked_by"]) == ("U0SRE", "U0SRE")
    assert entry.text is not None
    assert "h2d_bandwidth @ gpu-1" in entry.text.en


async def test_words_of_another_workspace_are_recorded_and_steer_nothing(stage: Stage) -> None:
    thread = await stage.start()
    await stage.calm()
    event = {
        "type": "message",
        "channel": CHANNEL,
        "channel_type": "channel",
        "user": "U9OTHER",
        "user_team": "T9OTHER",
        "text": "<@U0RCABOT> severity sev1",
        "ts": "1796070000.000900",
        "thread_ts": thread,
    }
    await stage.deliver(stage.event(event, "EvForeign"))
    await stage.entry(lambda e: e.data.get("ts") == event["ts"])
    await stage.calm()
    assert (await stage.incident()).severity.value == "sev2"
