"""Everything that Slack delivers is durable before it is acknowledged, and acknowledged whatever it is."""

from __future__ import annotations

import json
import time

import httpx
import pytest
from slack_sdk.signature import SignatureVerifier

from bot.slack.web import METHODS
from tests.slack.conftest import CHANNEL, Stage


async def post(stage: Stage, raw: str, *, form: bool = False, **headers: str) -> httpx.Response:
    stamp = str(int(time.time()))
    sign = SignatureVerifier(stage.config.signing_secret)
    signed = {
        "content-type": "application/x-www-form-urlencoded" if form else "application/json",
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": sign.generate_signature(timestamp=stamp, body=raw) or "",
    }
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.post(
            f"http://127.0.0.1:{stage.settings.port}/slack/events",
            content=raw.encode(),
            headers={**signed, **headers},
        )


@pytest.mark.parametrize(
    "headers",
    [
        {"x-slack-signature": "v0=00"},
        {"x-slack-request-timestamp": "1700000000"},
        {"x-slack-request-timestamp": "not a number"},
        {"x-slack-request-timestamp": ""},
    ],
    ids=["signature", "stale", "word", "empty"],
)
async def test_badly_signed_request_is_401_and_its_body_is_in_no_log(
    stage: Stage, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    raw = json.dumps(stage.event({"type": "message", "text": "very private words"}))
    response = await post(stage, raw, **headers)
    assert response.status_code == 401
    assert "very private words" not in caplog.text
    assert await stage.bot.services.queue.depth() == 0


async def test_challenge_is_answered_only_when_it_is_signed(stage: Stage) -> None:
    raw = json.dumps({"type": "url_verification", "challenge": "c-1", "token": "x"})
    assert (await post(stage, raw)).json()["challenge"] == "c-1"
    assert (await post(stage, raw, **{"x-slack-signature": "v0=1"})).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {"type": "app_rate_limited", "team_id": "T0LOCAL", "minute_rate_limited": 1},
        {"type": "event_callback", "event": {"type": "unheard_of"}, "event_id": "E1"},
        {
            "type": "event_callback",
            "event": {"type": "channel_archive", "channel": "C1"},
            "event_id": "E2",
        },
        {"type": "something_new"},
        {
            "type": "event_callback",
            "event": {"type": "reaction_added", "item": "odd", "user": "U1"},
            "event_id": "E3",
        },
        {
            "type": "event_callback",
            "event": {"type": "message", "subtype": "message_changed", "message": "odd"},
            "event_id": "E4",
        },
    ],
    ids=["rate_limited", "unknown_event", "archive", "unknown_type", "odd_item", "odd_edit"],
)
async def test_payload_that_nobody_asked_for_is_acknowledged(stage: Stage, body: dict) -> None:
    assert (await post(stage, json.dumps(body))).status_code == 200


@pytest.mark.parametrize("raw", ["", "{", "[1]", '"x"', "null", "\x00"], ids=range(6))
async def test_body_that_is_no_payload_crashes_nothing(stage: Stage, raw: str) -> None:
    response = await post(stage, raw)
    assert response.status_code < 500 or response.status_code == 503
    assert (await stage.deliver(stage.event({"type": "x"}))).status_code == 200


@pytest.mark.parametrize(
    "by",
    [
        {"user": "U0RCABOT"},
        {"bot_id": "B0RCABOT", "subtype": "bot_message"},
        {"user": "U9X", "bot_id": "B9X", "app_id": "A0RCABOT"},
    ],
    ids=["user", "bot", "app"],
)
async def test_own_messages_never_come_back_as_somebody_elses(
    stage: Stage, by: dict[str, str]
) -> None:
    thread = await stage.start()
    await stage.calm()
    before = len(await stage.entries())
    base = {"channel": CHANNEL, "thread_ts": thread, "ts": "1772587000.000100"}
    own = {"type": "message", "text": "<@U0RCABOT> resolve now", **base, **by}
    assert (await stage.deliver(stage.event(own))).status_code == 200
    edited = {"type": "message", "subtype": "message_changed", "channel": CHANNEL}
    edited |= {"message": {**own, "text": "another"}, "ts": "1772587001.000100"}
    assert (await stage.deliver(stage.event(edited, "EvEdit"))).status_code == 200
    if "user" in by and "app_id" not in by:
        item = {"type": "message", "channel": CHANNEL, "ts": thread}
        liked = {"type": "reaction_added", **by, "reaction": "pushpin", "item": item}
        liked["event_ts"] = "1772587002.000100"
        assert (await stage.deliver(stage.event(liked, "EvOwn"))).status_code == 200
    await stage.calm()
    assert (await stage.entries())[before:] == ()
    assert (await stage.incident()).is_open


async def test_wrong_answer_in_a_form_is_said_below_its_field(stage: Stage) -> None:
    thread = await stage.start()
    prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
    await stage.sre.click(CHANNEL, prompt.ts, "rca.symptom")
    await stage.sre.wait_for_view()
    done = await stage.sre.submit({"text": "P99 600 ms", "scope": "all", "since": "yesterday-ish"})
    assert set(done.errors) == {"since"}
    assert (await stage.sre.submit({"text": "P99 600 ms", "scope": "all", "since": "20m"})).is_good


async def test_external_select_is_answered_from_memory(stage: Stage) -> None:
    await stage.start("5 % errors")
    await stage.calm()
    await stage.lead.command(CHANNEL, "/rca severity sev2")
    thread = (await stage.incident()).thread_ts
    await stage.sre.say(CHANNEL, "@rca step pass a reason", thread_ts=thread)
    await stage.sre.say(CHANNEL, "@rca step pass a reason", thread_ts=thread)
    prompt = await stage.reply(thread, lambda m: m.button("rca.hypothesis.add") is not None)
    await stage.sre.click(CHANNEL, prompt.ts, "rca.hypothesis.add")
    await stage.sre.wait_for_view()
    await stage.calm()

    async def asked() -> int:
        return sum([len(await stage.client.traffic(method)) for method in METHODS])

    before = await asked()
    options = await stage.sre.suggestions("rca.pick.cause", "contention")
    assert await asked() == before
    assert "cpu_contention" in {option["value"] for option in options}
    empty = await stage.sre.submit({})
    assert set(empty.errors) == {"text"}
    assert (await stage.sre.submit({"text": "the new driver"})).is_good
    await stage.entry(lambda e: e.op == "added")
    assert any(h.title.en == "the new driver" for h in (await stage.incident()).hypotheses)
