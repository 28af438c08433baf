"""Buttons, selects, modals, shortcuts and the Home tab, through a real Bolt app."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError
from bot.workspace.client import WorkspaceClient
from tests.waiting import PATIENCE_SECONDS
from tests.workspace.conftest import INCIDENTS, Bot


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def button(action_id: str, value: str) -> dict[str, Any]:
    return {"type": "button", "action_id": action_id, "value": value, "text": plain(value)}


def options(*values: str) -> list[dict[str, Any]]:
    return [{"text": plain(value.upper()), "value": value} for value in values]


def modal(title: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "modal",
        "title": plain(title),
        "submit": plain("Save"),
        "blocks": list(blocks),
        **more,
    }


def text_input(block_id: str, *, is_optional: bool = False) -> dict[str, Any]:
    return {
        "type": "input",
        "block_id": block_id,
        "optional": is_optional,
        "label": plain(block_id),
        "element": {"type": "plain_text_input", "action_id": f"{block_id}.value"},
    }


async def post_buttons(slack: AsyncWebClient, *values: str) -> str:
    blocks = [{"type": "actions", "elements": [button("rca.step.next", v)]} for v in values]
    return str((await slack.chat_postMessage(channel=INCIDENTS, text="card", blocks=blocks))["ts"])


async def test_pressed_button_carries_value_message_and_a_response_url_that_replaces(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.action("rca.step.next")
    async def pressed(ack: Any, body: dict[str, Any], respond: Any) -> None:
        await ack()
        bot.seen.append(body)
        await respond(text=f"step {body['actions'][0]['value']}", replace_original=True)

    ts = await post_buttons(slack, "one", "two")
    done = await client.person("U0SRE").click(INCIDENTS, ts, "rca.step.next", "two")
    assert done.is_good
    card = await client.wait_for(lambda m: m.text == "step two", channel=INCIDENTS)
    assert card.ts == ts
    assert card.is_edited
    body = bot.seen[0]
    assert body["container"]["message_ts"] == ts
    assert body["message"]["text"] == "card"
    assert body["user"]["id"] == "U0SRE"


async def test_button_that_does_not_exist_cannot_be_pressed(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    ts = await post_buttons(slack, "one", "two")
    with pytest.raises(DeliveryError, match="there are: rca"):
        await client.person("U0SRE").click(INCIDENTS, ts, "rca.gone")
    with pytest.raises(DeliveryError, match="name the block_id or the value"):
        await client.person("U0SRE").click(INCIDENTS, ts, "rca.step.next")


async def test_chosen_option_arrives_and_an_option_that_is_not_offered_is_refused(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.action("severity")
    async def chosen(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        bot.seen.append(body)

    select = {"type": "static_select", "action_id": "severity", "options": options("sev1", "sev2")}
    blocks = [{"type": "section", "text": plain("severity"), "accessory": select}]
    ts = (await slack.chat_postMessage(channel=INCIDENTS, text="x", blocks=blocks))["ts"]
    person = client.person("U0SRE")
    await person.click(INCIDENTS, ts, "severity", "sev2")
    assert bot.seen[0]["actions"][0]["selected_option"]["value"] == "sev2"
    with pytest.raises(DeliveryError, match="sev1, sev2"):
        await person.click(INCIDENTS, ts, "severity", "sev9")


async def test_modal_opens_checks_its_inputs_and_submits_typed_values(
    bot: Bot, client: WorkspaceClient
) -> None:
    view = modal(
        "Symptom",
        text_input("what"),
        text_input("scope", is_optional=True),
        {
            "type": "input",
            "block_id": "layers",
            "label": plain("Layers"),
            "element": {
                "type": "checkboxes",
                "action_id": "layers.value",
                "options": options("gpu", "host"),
            },
        },
        {
            "type": "input",
            "block_id": "since",
            "label": plain("Since"),
            "element": {"type": "datetimepicker", "action_id": "since.value"},
        },
        callback_id="symptom",
        private_metadata="INC-1",
    )

    @bot.app.command("/rca")
    async def rca(ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=view)

    @bot.app.view("symptom")
    async def submitted(ack: Any, body: dict[str, Any]) -> None:
        bot.seen.append(body)
        state = body["view"]["state"]["values"]
        if state["what"]["what.value"]["value"] == "vague":
            await ack(response_action="errors", errors={"what": "Say what is slow"})
        else:
            await ack()

    person = client.person("U0SRE")
    await person.command(INCIDENTS, "/rca symptom")
    await person.wait_for_view(lambda v: v["callback_id"] == "symptom")
    missing = await person.submit({"scope": "all"})
    assert set(missing.errors) == {"what", "layers", "since"}
    assert bot.seen == []
    answers = {"what": "vague", "layers": ["gpu"], "since.value": 1796000000}
    refused = await person.submit(answers)
    assert refused.errors == {"what": "Say what is slow"}
    assert len(await person.views()) == 1
    assert (await person.submit(answers | {"what": "P99 600 ms"})).is_good
    assert await person.views() == []
    values = bot.seen[1]["view"]["state"]["values"]
    assert values["scope"]["scope.value"] == {"type": "plain_text_input", "value": None}
    assert values["layers"]["layers.value"]["selected_options"][0]["value"] == "gpu"
    assert values["since"]["since.value"]["selected_date_time"] == 1796000000
    assert bot.seen[1]["view"]["private_metadata"] == "INC-1"


async def test_modal_stack_is_three_deep_and_clears_at_once(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    def level(number: int) -> dict[str, Any]:
        row = {"type": "actions", "elements": [button("deeper", str(number))]}
        return modal(f"Level {number}", row, text_input("x", is_optional=True), callback_id="level")

    @bot.app.command("/rca")
    async def rca(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        await slack.views_open(trigger_id=body["trigger_id"], view=level(1))

    @bot.app.action("deeper")
    async def deeper(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        try:
            number = int(body["actions"][0]["value"]) + 1
            await slack.views_push(trigger_id=body["trigger_id"], view=level(number))
        except SlackApiError as error:
            bot.seen.append({"error": error.response["error"]})

    @bot.app.view("level")
    async def submitted(ack: Any) -> None:
        await ack(response_action="clear")

    person = client.person("U0SRE")
    await person.command(INCIDENTS, "/rca open")
    for depth in (1, 2):
        await person.wait_for_view(lambda v, d=depth: v["title"]["text"] == f"Level {d}")
        await person.click_in_view("deeper", str(depth))
    top = await person.wait_for_view(lambda v: v["title"]["text"] == "Level 3")
    root, middle, _ = await person.views()
    assert (top["previous_view_id"], top["root_view_id"]) == (middle["id"], root["id"])
    await person.click_in_view("deeper", "3")
    [refusal] = await bot.saw(1)
    assert refusal == {"error": "push_limit_reached"}
    await person.submit({})
    assert await person.views() == []


async def test_trigger_opens_one_view_within_three_seconds(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    triggers: list[str] = []

    @bot.app.command("/rca")
    async def rca(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        triggers.append(body["trigger_id"])

    person = client.person("U0SRE")
    view = modal("One", text_input("x"))
    await person.command(INCIDENTS, "/rca a")
    await slack.views_open(trigger_id=triggers[0], view=view)
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await slack.views_open(trigger_id=triggers[0], view=view)
    await person.command(INCIDENTS, "/rca b")
    await client.advance_clock(3.1)
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await slack.views_open(trigger_id=triggers[1], view=view)
    with pytest.raises(SlackApiError, match="invalid_trigger_id"):
        await slack.views_open(trigger_id="1.2.3", view=view)


async def test_submission_answer_that_slack_would_not_take_shows_trouble(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.command("/rca")
    async def rca(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        await slack.views_open(
            trigger_id=body["trigger_id"], view=modal("M", text_input("x"), callback_id="m")
        )

    @bot.app.view("m")
    async def submitted(ack: Any) -> None:
        await ack(response_action="errors", errors={"no_such_block": "x"})

    person = client.person("U0SRE")
    await person.command(INCIDENTS, "/rca a")
    await person.wait_for_view()
    assert (await person.submit({"x": "y"})).error == "trouble_connecting"
    assert len(await person.views()) == 1


async def test_update_with_an_old_hash_conflicts(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.command("/rca")
    async def rca(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        view = modal("M", text_input("x"), notify_on_close=True, callback_id="m")
        opened = await slack.views_open(trigger_id=body["trigger_id"], view=view)
        bot.seen.append(opened["view"])

    @bot.app.view_closed("m")
    async def closed(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        bot.seen.append(body)

    person = client.person("U0SRE")
    await person.command(INCIDENTS, "/rca a")
    [opened] = await bot.saw(1)
    new = modal("N", text_input("x"), notify_on_close=True, callback_id="m")
    await slack.views_update(view_id=opened["id"], hash=opened["hash"], view=new)
    with pytest.raises(SlackApiError, match="hash_conflict"):
        await slack.views_update(view_id=opened["id"], hash=opened["hash"], view=new)
    await person.close()
    assert (await bot.saw(2))[1]["is_cleared"] is False
    with pytest.raises(SlackApiError, match="not_found"):
        await slack.views_update(view_id=opened["id"], view=new)


async def test_select_with_the_apps_options_asks_the_app(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.command("/rca")
    async def rca(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        element = {"type": "external_select", "action_id": "cause", "min_query_length": 1}
        block = {"type": "input", "block_id": "c", "label": plain("Cause"), "element": element}
        await slack.views_open(
            trigger_id=body["trigger_id"], view=modal("M", block, callback_id="m")
        )

    @bot.app.options("cause")
    async def offered(ack: Any, payload: dict[str, Any]) -> None:
        many = 101 if payload["value"] == "all" else 2
        await ack(options=options(*(f"{payload['value']}{n}" for n in range(many))))

    @bot.app.view("m")
    async def submitted(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        bot.seen.append(body["view"]["state"]["values"]["c"]["cause"])

    person = client.person("U0SRE")
    await person.command(INCIDENTS, "/rca a")
    await person.wait_for_view()
    offered_options = await person.suggestions("cause", "lock")
    assert [option["value"] for option in offered_options] == ["lock0", "lock1"]
    assert await person.suggestions("cause", "all") == []
    await person.submit({"cause": offered_options[1]})
    assert bot.seen[0]["selected_option"]["value"] == "lock1"


async def test_shortcut_on_an_alert_of_another_app_carries_the_alert(
    bot: Bot, client: WorkspaceClient
) -> None:
    @bot.app.shortcut("rca_start_here")
    async def started(ack: Any, body: dict[str, Any], respond: Any) -> None:
        await ack()
        bot.seen.append(body)
        await respond("started", replace_original=True)

    @bot.app.event("message")
    async def ignored() -> None:
        return

    ts = await client.alert_message()
    person = client.person("U0SRE")
    assert (await person.shortcut("C0ALERTS", ts)).is_good
    [body] = await bot.saw(1)
    assert body["message"]["attachments"][0]["title"].startswith("[FIRING:1]")
    assert body["message_ts"] == ts
    # What belongs to another app is never replaced.
    answer = await person.wait_for(lambda m: m.text == "started", channel="C0ALERTS")
    assert answer.only_for == "U0SRE"


async def test_home_tab_is_published_shown_and_pressed(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    home = {"type": "home", "blocks": [{"type": "actions", "elements": [button("open", "INC-1")]}]}

    @bot.app.event("app_home_opened")
    async def opened(event: dict[str, Any]) -> None:
        await slack.views_publish(user_id=event["user"], view=home)
        bot.seen.append(event)

    @bot.app.action("open")
    async def pressed(ack: Any, body: dict[str, Any]) -> None:
        await ack()
        bot.seen.append(body)

    person = client.person("U0SRE")
    assert await person.open_home() is None
    await bot.saw(1)
    shown = await person.home()
    assert shown is not None
    await person.click_in_view("open", "INC-1", view_id=shown["id"])
    assert (await bot.saw(2))[1]["view"]["id"] == shown["id"]
    await person.open_home()
    assert (await bot.saw(3))[2]["view"]["id"] == shown["id"]


async def test_ephemeral_message_is_replaced_and_removed_by_its_own_button(
    bot: Bot, slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    @bot.app.action("yes")
    async def yes(ack: Any, respond: Any) -> None:
        await ack()
        row = {"type": "actions", "elements": [button("no", "n")]}
        await respond(text="sure?", blocks=[row], replace_original=True)

    @bot.app.action("no")
    async def no(ack: Any, respond: Any) -> None:
        await ack()
        await respond(delete_original=True)

    row = {"type": "actions", "elements": [button("yes", "y")]}
    sent = await slack.chat_postEphemeral(
        channel=INCIDENTS, user="U0SRE", text="run?", blocks=[row]
    )
    person = client.person("U0SRE")
    await person.click(INCIDENTS, sent["message_ts"], "yes")
    asked = await person.wait_for(lambda m: m.text == "sure?", channel=INCIDENTS)
    assert len(await client.messages(INCIDENTS)) == 1
    await person.click(INCIDENTS, asked.ts, "no")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await client.messages(INCIDENTS):
            await asyncio.sleep(0.005)
