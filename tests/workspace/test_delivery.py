"""Events, commands and actions as a real Bolt app over HTTP gets them."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from urllib.parse import parse_qs

import httpx
from slack_sdk.signature import SignatureVerifier
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.workspace.client import WorkspaceClient
from bot.workspace.config import WorkspaceConfig
from bot.workspace.http_carrier import sign
from bot.workspace.server import RunningWorkspace
from tests.waiting import PATIENCE_SECONDS
from tests.workspace.conftest import INCIDENTS, Bot, bot_behind

ALERTS = "C0ALERTS"


def listen_to(bot: Bot, *event_types: str) -> None:
    for event_type in event_types:

        async def note(event: dict[str, Any]) -> None:
            bot.seen.append(event)

        bot.app.event(event_type)(note)


async def test_mention_arrives_as_mention_and_as_message(bot: Bot, client: WorkspaceClient) -> None:
    listen_to(bot, "app_mention", "message")
    ts = await client.person("U0SRE").say(INCIDENTS, "@rca status <now>")
    seen = await bot.saw(2)
    assert {event["type"] for event in seen} == {"app_mention", "message"}
    assert {event["ts"] for event in seen} == {ts}
    assert {event["text"] for event in seen} == {"<@U0RCABOT> status &lt;now&gt;"}


async def test_every_request_is_signed_and_a_forged_one_is_refused(
    bot: Bot, client: WorkspaceClient, workspace: RunningWorkspace
) -> None:
    bodies: list[bytes] = []

    async def keep(request: Request) -> Response | None:
        bodies.append(await request.body())
        return None

    bot.answer_with = keep
    listen_to(bot, "message")
    await client.person("U0SRE").say(INCIDENTS, "签名")
    await bot.saw(1)
    verifier = SignatureVerifier(workspace.config.signing_secret)
    assert verifier.is_valid_request(bodies[0], bot.headers[0])
    stamp = str(int(time.time()))
    async with httpx.AsyncClient() as http:
        forged = await http.post(
            f"{bot.url}/slack/events",
            content=bodies[0],
            headers={
                "Content-Type": "application/json",
                "X-Slack-Request-Timestamp": stamp,
                "X-Slack-Signature": sign("wrong-secret", stamp, bodies[0]),
            },
        )
    assert forged.status_code == 401


async def test_edit_delete_and_tombstone_reach_the_app(bot: Bot, client: WorkspaceClient) -> None:
    listen_to(bot, "message")
    person = client.person("U0SRE")
    root = await person.say(INCIDENTS, "first")
    reply = await person.say(INCIDENTS, "reply", thread_ts=root)
    await person.edit(INCIDENTS, root, "second")
    await person.delete(INCIDENTS, root)
    await person.delete(INCIDENTS, reply)
    seen = await bot.saw(5)
    posted, replied, changed, buried, deleted = seen
    assert posted["ts"] == root
    assert (replied["thread_ts"], replied["parent_user_id"]) == (root, "U0SRE")
    assert changed["subtype"] == "message_changed"
    assert changed["message"]["text"] == "second"
    assert changed["previous_message"]["text"] == "first"
    assert "user" not in changed
    assert buried["message"]["subtype"] == "tombstone"
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", reply)


async def test_alert_of_another_app_has_attachments_and_no_user(
    bot: Bot, client: WorkspaceClient
) -> None:
    listen_to(bot, "message")
    senders = {"alertmanager": "B0ALERTMGR", "grafana": "B0GRAFANA", "pagerduty": "B0PAGER"}
    for count, (app, bot_id) in enumerate(senders.items(), start=1):
        ts = await client.alert_message(app, ALERTS)
        event = (await bot.saw(count))[-1]
        assert (event["subtype"], event["bot_id"], event["ts"]) == ("bot_message", bot_id, ts)
        assert event["text"] == ""
        assert "user" not in event
        assert event["attachments"][0]["fallback"]


async def test_reactions_files_joins_and_home_reach_the_app(
    bot: Bot, client: WorkspaceClient
) -> None:
    listen_to(
        bot,
        "message",
        "reaction_added",
        "reaction_removed",
        "file_shared",
        "member_joined_channel",
        "app_home_opened",
    )
    person = client.person("U0SRE")
    ts = await person.say(INCIDENTS, "evidence")
    await person.react(INCIDENTS, ts, "pushpin")
    await person.unreact(INCIDENTS, ts, "pushpin")
    await person.upload(INCIDENTS, "log.txt", b"boom", text="the log")
    await person.invite_app("C0GENERAL")
    await person.open_home()
    # The notice of the app's own join is among them; Bolt keeps it from listeners.
    seen = await bot.saw(7)
    by_type = {event.get("subtype") or event["type"]: event for event in seen}
    assert by_type["reaction_added"]["item"] == {"type": "message", "channel": INCIDENTS, "ts": ts}
    assert by_type["reaction_removed"]["item_user"] == "U0SRE"
    assert by_type["file_share"]["files"][0]["name"] == "log.txt"
    assert by_type["file_shared"]["channel_id"] == INCIDENTS
    assert by_type["member_joined_channel"]["inviter"] == "U0SRE"
    assert by_type["app_home_opened"]["tab"] == "home"


async def test_app_hears_nothing_of_channels_that_it_is_not_in(
    bot: Bot, client: WorkspaceClient
) -> None:
    listen_to(bot, "message")
    await client.person("U0LEAD").say("C0GENERAL", "@rca secret")
    await client.person("U0LEAD").say("G0LEADS", "@rca more secret")
    ts = await client.person("U0LEAD").say(INCIDENTS, "open")
    seen = await bot.saw(1)
    assert [event["ts"] for event in seen] == [ts]


async def test_unacknowledged_event_comes_three_more_times_on_the_workspaces_clock(
    bot: Bot, client: WorkspaceClient
) -> None:
    attempts: list[tuple[str | None, str | None, str]] = []

    async def refuse(request: Request) -> Response:
        body = json.loads(await request.body())
        attempts.append(
            (
                request.headers.get("x-slack-retry-num"),
                request.headers.get("x-slack-retry-reason"),
                body["event_id"],
            )
        )
        return PlainTextResponse("no", status_code=500)

    async def tried(count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(attempts) < count:
                await asyncio.sleep(0.005)

    bot.answer_with = refuse
    await client.person("U0SRE").say(INCIDENTS, "x")
    await tried(2)
    assert not await client.settle(0.1)
    await client.advance_clock(61)
    await tried(3)
    await client.advance_clock(240)
    await tried(4)
    assert await client.settle()
    assert [number for number, *_ in attempts] == [None, "1", "2", "3"]
    assert {reason for _, reason, _ in attempts[1:]} == {"http_error"}
    assert len({event_id for *_, event_id in attempts}) == 1


async def test_app_that_declines_retries_gets_none(bot: Bot, client: WorkspaceClient) -> None:
    async def refuse(_: Request) -> Response:
        return PlainTextResponse("no", status_code=500, headers={"X-Slack-No-Retry": "1"})

    bot.answer_with = refuse
    await client.person("U0SRE").say(INCIDENTS, "x")
    assert await client.settle()
    assert len(await client.traffic("message")) == 1


async def test_lost_ack_brings_the_same_event_again(bot: Bot, client: WorkspaceClient) -> None:
    listen_to(bot, "message")
    await client.inject("lost_ack", "message")
    await client.person("U0SRE").say(INCIDENTS, "x")
    first, second = await bot.saw(2)
    assert first["ts"] == second["ts"]
    assert await client.settle()
    assert [h.get("x-slack-retry-reason") for h in bot.headers] == [None, "http_timeout"]


async def test_events_can_be_dropped_doubled_and_swapped(bot: Bot, client: WorkspaceClient) -> None:
    listen_to(bot, "message")
    person = client.person("U0SRE")
    await client.inject("drop_event", "message")
    await person.say(INCIDENTS, "dropped")
    await client.inject("duplicate_event", "message")
    await person.say(INCIDENTS, "twice")
    await client.inject("reorder_events", "message")
    await person.say(INCIDENTS, "late")
    await person.say(INCIDENTS, "early")
    seen = await bot.saw(4)
    assert [event["text"] for event in seen] == ["twice", "twice", "early", "late"]


async def test_command_answer_is_shown_to_its_user_alone(bot: Bot, client: WorkspaceClient) -> None:
    @bot.app.command("/rca")
    async def rca(ack: Any, command: dict[str, Any]) -> None:
        bot.seen.append(command)
        await ack(f"got {command['text']}")

    person = client.person("U0SRE")
    done = await person.command(INCIDENTS, "/rca role lead @lin.mei in #alerts")
    assert done.is_good
    assert bot.seen[0]["text"] == "role lead <@U0LEAD|lin.mei> in <#C0ALERTS|alerts>"
    answer = await person.wait_for(lambda m: m.only_for == "U0SRE", channel=INCIDENTS)
    assert answer.text.startswith("got role lead")


async def test_command_in_a_thread_never_reaches_the_app(bot: Bot, client: WorkspaceClient) -> None:
    person = client.person("U0SRE")
    ts = await person.say(INCIDENTS, "root")
    done = await person.command(INCIDENTS, "/rca status", thread_ts=ts)
    assert done.error == "not_in_thread"
    assert await client.traffic("/rca") == []


async def test_command_that_is_not_acknowledged_shows_slacks_error_and_is_not_retried(
    bot: Bot, client: WorkspaceClient
) -> None:
    person = client.person("U0SRE")
    unhandled = await person.command(INCIDENTS, "/rca nobody listens")
    assert unhandled.error == "dispatch_failed"
    await client.inject("lost_ack", "/rca")
    late = await person.command(INCIDENTS, "/rca too late")
    assert late.error == "operation_timeout"
    shown = [m.text for m in await client.messages(INCIDENTS, user="U0SRE")]
    assert shown == [
        "/rca failed with the error “dispatch_failed”",
        "/rca failed with the error “operation_timeout”",
    ]
    assert len(await client.traffic("/rca")) == 2


async def test_response_url_works_five_times_and_for_half_an_hour(
    bot: Bot, client: WorkspaceClient
) -> None:
    urls: list[str] = []

    @bot.app.command("/rca")
    async def rca(ack: Any, command: dict[str, Any]) -> None:
        urls.append(command["response_url"])
        await ack()

    person = client.person("U0SRE")
    await person.command(INCIDENTS, "/rca one")
    await person.command(INCIDENTS, "/rca two")
    async with httpx.AsyncClient() as http:
        answers = [await http.post(urls[0], json={"text": f"answer {n}"}) for n in range(6)]
        public = await http.post(
            urls[1],
            json={"text": "for all", "response_type": "in_channel", "replace_original": True},
        )
        bad = await http.post(urls[1], json={"blocks": [{"type": "nope"}]})
        await client.advance_clock(1801)
        expired = await http.post(urls[1], json={"text": "late"})
    assert [answer.status_code for answer in answers] == [200] * 5 + [404]
    assert public.text == "ok"
    assert (bad.status_code, expired.status_code) == (400, 404)
    seen = await client.messages(INCIDENTS)
    assert [m.only_for for m in seen] == ["U0SRE"] * 5 + [None]


async def test_command_travels_as_a_form(bot: Bot, client: WorkspaceClient) -> None:
    bodies: list[bytes] = []

    async def keep(request: Request) -> Response:
        bodies.append(await request.body())
        return Response()

    bot.answer_with = keep
    await client.person("U0SRE").command(INCIDENTS, "/rca note 100% & more")
    form = parse_qs(bodies[0].decode())
    assert form["text"] == ["note 100% & more"]
    assert form["is_enterprise_install"] == ["false"]


async def test_app_over_the_hourly_limit_is_told_once_a_minute_and_hears_no_more() -> None:
    async with bot_behind(WorkspaceConfig(port=0, events_per_hour=2)) as (bot, client):
        bodies: list[dict[str, Any]] = []

        async def take(request: Request) -> Response:
            bodies.append(json.loads(await request.body()))
            return PlainTextResponse("")

        bot.answer_with = take
        for text in ("a", "b", "c", "d"):
            await client.person("U0SRE").say(INCIDENTS, text)
        assert await client.settle()
        assert [b.get("event", {}).get("text", b["type"]) for b in bodies] == [
            "a",
            "b",
            "app_rate_limited",
        ]
        told = bodies[2]
        assert told.keys() == {
            *("type", "token", "team_id", "minute_rate_limited", "api_app_id"),
        }
        assert told["minute_rate_limited"] % 60 == 0
        await client.advance_clock(3601)
        await client.person("U0SRE").say(INCIDENTS, "e")
        assert await client.settle()
        assert bodies[-1]["event"]["text"] == "e"


async def test_app_that_fails_nearly_everything_of_an_hour_is_switched_off_until_somebody_acts() -> (
    None
):
    async with bot_behind(WorkspaceConfig(port=0, failure_floor=10)) as (bot, client):

        async def refuse(_: Request) -> Response:
            return PlainTextResponse("no", status_code=500)

        async def take(_: Request) -> Response:
            return PlainTextResponse("")

        person = client.person("U0SRE")
        bot.answer_with = refuse
        for n in range(9):
            await person.say(INCIDENTS, f"{n}")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await client.state())["is_delivering"]:
                await asyncio.sleep(0.01)
        await client.advance_clock(400)
        assert await client.settle()
        bot.answer_with = take
        await person.say(INCIDENTS, "into the void")
        assert (await client.traffic("message"))[-1]["note"] == "event delivery is switched off"
        await client.post("subscription", {})
        await person.say(INCIDENTS, "heard again")
        assert await client.settle()
        last = (await client.traffic("message"))[-1]
        assert (last["status"], last["request"]["event"]["text"]) == (200, "heard again")
