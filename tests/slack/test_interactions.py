"""Buttons and forms under bad conditions: slow Slack, old triggers, repeats, strangers, long lists."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from bot.app import utc_now
from bot.blockkit.validate import validate_view
from bot.cause import Catalogue
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.slack import forms
from bot.slack.manifest import manifest
from tests.slack.conftest import CHANNEL, Stage, small_catalogue
from tests.slack.test_receiver import post

_NOW = utc_now()


async def _interact(stage: Stage, payload: dict[str, Any]) -> Any:
    """Posts an interaction as Slack does."""
    return await post(stage, urlencode({"payload": json.dumps(payload)}), form=True)


def _press(action_id: str, **more: Any) -> dict[str, Any]:
    action = {"type": "button", "action_id": action_id, "value": "x", "block_id": "b"}
    return {
        "type": "block_actions",
        "user": {"id": "U0SRE", "team_id": "T0LOCAL"},
        "team": {"id": "T0LOCAL"},
        "channel": {"id": CHANNEL},
        "container": {"type": "message", "channel_id": CHANNEL, "message_ts": "1.1"},
        "trigger_id": f"{time.time_ns()}.1.1",
        "actions": [action],
        **more,
    }


async def test_what_is_asked_while_slack_is_slow_is_done_all_the_same(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
    await stage.calm()
    for method in (
        "chat.postMessage",
        "chat.postEphemeral",
        "views.open",
        "users.info",
        "auth.test",
    ):
        await stage.client.inject("delay", method, times=5, seconds=2.5)
    button = prompt.button("rca.symptom")
    assert button is not None
    form = {"command": "/rca", "text": "severity sev1", "user_id": "U0SRE", "trigger_id": "9.9.9"}
    form |= {"channel_id": CHANNEL, "team_id": "T0LOCAL", "is_enterprise_install": "false"}
    assert (await post(stage, urlencode(form), form=True)).status_code == 200
    action = {"type": "button", "action_id": "rca.symptom", "value": button.value, "block_id": "b"}
    assert (await _interact(stage, _press("rca.symptom", actions=[action]))).status_code == 200
    event = {"type": "message", "channel": CHANNEL, "user": "U0DEV", "text": "hm", "ts": "9.1"}
    event["thread_ts"] = thread
    assert (await stage.deliver(stage.event(event, "EvSlow"))).status_code == 200
    await stage.entry(lambda e: e.kind is EntryKind.SEVERITY)


async def test_trigger_that_is_too_old_asks_to_press_again(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
    await stage.client.inject("error", "views.open", times=1, error="expired_trigger_id")
    assert (await stage.sre.click(CHANNEL, prompt.ts, "rca.symptom")).is_good
    await stage.whispered(stage.sre, "please press again")
    assert (await stage.sre.click(CHANNEL, prompt.ts, "rca.symptom")).is_good
    await stage.sre.wait_for_view()


async def test_form_that_is_delivered_twice_is_worked_once(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
    await stage.sre.click(CHANNEL, prompt.ts, "rca.symptom")
    await stage.sre.wait_for_view()
    await stage.sre.submit({"text": "P99 is 600 ms", "scope": "all", "since": "20m"})
    await stage.entry(lambda e: e.kind is EntryKind.SYMPTOM and e.author == "U0SRE")
    sent = (await stage.client.traffic("view_submission"))[-1]
    assert (await _interact(stage, _payload(sent))).status_code == 200
    await stage.calm()
    declared = [e for e in await stage.entries() if e.kind is EntryKind.SYMPTOM]
    assert len([e for e in declared if e.author == "U0SRE"]) == 1


def _payload(entry: dict[str, Any]) -> dict[str, Any]:
    """The payload inside a line of the traffic log, whatever it is wrapped in."""
    for value in entry.values():
        if isinstance(value, dict):
            if value.get("type") == "view_submission":
                return value
            try:
                return _payload(value)
            except LookupError:
                continue
    raise LookupError("no payload in it")


async def test_form_of_an_older_version_is_answered_politely(stage: Stage) -> None:
    view = {"id": "V1", "hash": "1.a", "callback_id": "rca_old_form", "private_metadata": "gone"}
    view |= {"type": "modal", "state": {"values": {}}}
    body = {"type": "view_submission", "user": {"id": "U0SRE"}, "view": view, "trigger_id": "1.2.3"}
    answer = await _interact(stage, body)
    assert (answer.status_code, answer.text) == (200, "")
    await stage.sre.wait_for(lambda m: "out of date" in m.all_text)


async def test_press_from_another_workspace_is_answered_and_changes_nothing(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.step.next") is not None)
    await stage.calm()
    before = len(await stage.entries())
    button = prompt.button("rca.step.next")
    assert button is not None
    action = {"type": "button", "action_id": "rca.step.next", "value": button.value}
    stranger = {"id": "U0SRE", "team_id": "T0OTHER"}
    body = _press("rca.step.next", user=stranger, team=None, actions=[action])
    assert (await _interact(stage, body)).status_code == 200
    await stage.whispered(stage.sre, "People of another workspace")
    await stage.calm()
    assert len(await stage.entries()) == before


@pytest.mark.parametrize("locale", Locale)
@pytest.mark.parametrize("name", forms.FORMS)
def test_form_is_valid_and_its_complaints_stand_below_its_own_inputs(
    name: str, locale: Locale
) -> None:
    long = dict.fromkeys(("text", "scope", "since", "metric", "service"), "长 text " * 2000)
    for given in ({}, long):
        view = forms.form(name, "opaque", locale, **given)
        assert validate_view(view) == []
    state = {"since": {"value": {"type": "plain_text_input", "value": "never"}}}
    if name != forms.SYMPTOM:
        state = {}
    body = {"view": {**view, "state": {"values": state}}}
    inputs = {block["block_id"] for block in view["blocks"] if block["type"] == "input"}
    complaints = forms.faults(body, _NOW, locale)
    assert set(complaints) <= inputs
    assert bool(complaints) == (name in (forms.SYMPTOM, forms.ADD))
    assert set(forms.store_down(body, locale)) <= inputs
    assert forms.store_down(body, locale)


def test_long_catalogue_gives_a_select_that_opens() -> None:
    one = next(iter(small_catalogue().causes.values()))
    title = Localized("GPU " * 60, "显卡" * 100)
    many = Catalogue(causes={f"c{n}": replace(one, id=f"c{n}", title=title) for n in range(300)})
    for locale in Locale:
        options = forms.causes(many, "", locale)
        assert len(options) == 100
        assert all(0 < len(item["text"]["text"]) <= 75 for item in options)
        assert all(len(item["value"]) <= 150 for item in options)


async def test_answer_of_a_command_is_a_message_of_its_own(stage: Stage) -> None:
    await stage.lead.command(CHANNEL, "/rca status")
    await stage.whispered(stage.lead, "No incident is open")
    log = json.dumps(await stage.client.traffic(), default=str)
    assert '"replace_original": true' not in log
    assert '"delete_original": true' not in log


def test_one_workspace_without_token_rotation() -> None:
    settings = manifest("https://rca.example.net")["settings"]
    assert settings["token_rotation_enabled"] is False
    assert settings["org_deploy_enabled"] is False
