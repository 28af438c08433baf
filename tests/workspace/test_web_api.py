"""The Web API as the real SDK meets it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ConfigError
from bot.workspace.client import WorkspaceClient
from bot.workspace.config import SCOPES, WorkspaceConfig
from bot.workspace.server import RunningWorkspace, running
from tests.workspace.conftest import INCIDENTS


def section(text: str, **more: object) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


async def refusal(call: Any) -> dict[str, Any]:
    with pytest.raises(SlackApiError) as caught:
        await call
    return dict(caught.value.response.data)


async def test_posted_message_comes_back_with_its_metadata_only_when_asked(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    metadata = {"event_type": "rca_outbox", "event_payload": {"key": "INC-1/anchor", "n": 2}}
    posted = await slack.chat_postMessage(channel=INCIDENTS, text="card", metadata=metadata)
    plain = await slack.conversations_history(channel=INCIDENTS)
    full = await slack.conversations_history(channel=INCIDENTS, include_all_metadata=True)
    assert [m["ts"] for m in plain["messages"]] == [posted["ts"]]
    assert "metadata" not in plain["messages"][0]
    assert full["messages"][0]["metadata"] == metadata


async def test_metadata_survives_an_edit_that_does_not_name_it(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    metadata = {"event_type": "rca_outbox", "event_payload": {"key": "a"}}
    posted = await slack.chat_postMessage(channel=INCIDENTS, text="card", metadata=metadata)
    await slack.chat_update(channel=INCIDENTS, ts=posted["ts"], text="card 2")
    [reply] = (
        await slack.conversations_replies(
            channel=INCIDENTS, ts=posted["ts"], include_all_metadata=True
        )
    )["messages"]
    assert reply["metadata"] == metadata
    assert reply["edited"]["user"] == "U0RCABOT"


async def test_thread_root_counts_its_replies_and_history_leaves_them_out(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    root = (await slack.chat_postMessage(channel=INCIDENTS, text="root"))["ts"]
    stamps = [
        (await slack.chat_postMessage(channel=INCIDENTS, text=f"reply {n}", thread_ts=root))["ts"]
        for n in range(3)
    ]
    [shown] = (await slack.conversations_history(channel=INCIDENTS))["messages"]
    assert (shown["reply_count"], shown["latest_reply"]) == (3, stamps[-1])
    first = await slack.conversations_replies(channel=INCIDENTS, ts=root, limit=2)
    assert [m["ts"] for m in first["messages"]] == [root, stamps[0]]
    rest = await slack.conversations_replies(
        channel=INCIDENTS, ts=root, limit=2, cursor=first["response_metadata"]["next_cursor"]
    )
    assert [m["ts"] for m in rest["messages"]] == stamps[1:]
    assert rest["has_more"] is False
    later = await slack.conversations_replies(channel=INCIDENTS, ts=root, oldest=stamps[1])
    assert [m["ts"] for m in later["messages"]] == [root, stamps[2]]


async def test_every_ts_is_new_and_rising(slack: AsyncWebClient, client: WorkspaceClient) -> None:
    posts = await asyncio.gather(
        *(slack.chat_postMessage(channel=INCIDENTS, text=str(n)) for n in range(20))
    )
    stamps = [post["ts"] for post in posts]
    assert len(set(stamps)) == 20
    history = (await slack.conversations_history(channel=INCIDENTS))["messages"]
    assert [m["ts"] for m in history] == sorted(stamps, reverse=True)


async def test_text_over_the_limit_of_update_is_refused(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    ts = (await slack.chat_postMessage(channel=INCIDENTS, text="x"))["ts"]
    answer = await refusal(slack.chat_update(channel=INCIDENTS, ts=ts, text="y" * 4001))
    assert answer["error"] == "msg_too_long"
    await slack.chat_update(channel=INCIDENTS, ts=ts, text="y" * 4000)


async def test_update_with_text_alone_drops_the_blocks_and_keeps_attachments(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    posted = await slack.chat_postMessage(
        channel=INCIDENTS,
        text="a",
        blocks=[section("b")],
        attachments=[{"text": "bar", "color": "good"}],
    )
    await slack.chat_update(channel=INCIDENTS, ts=posted["ts"], text="only text")
    [message] = await client.messages(INCIDENTS)
    assert "blocks" not in message.raw
    assert message.raw["attachments"][0]["text"] == "bar"


async def test_blocks_that_slack_refuses_are_refused_with_their_pointer(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    answer = await refusal(
        slack.chat_postMessage(channel=INCIDENTS, text="x", blocks=[section("y" * 3001)])
    )
    assert answer["error"] == "invalid_blocks"
    [message] = answer["response_metadata"]["messages"]
    assert "json-pointer:/blocks/0/text/text" in message
    too_long = [section("y" * 2900) for _ in range(4)]
    answer = await refusal(slack.chat_postMessage(channel=INCIDENTS, text="x", blocks=too_long))
    assert answer["error"] == "msg_blocks_too_long"
    assert await client.messages(INCIDENTS) == []


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("chat.postMessage", {"channel": "C0NOWHERE", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {"channel": "C0GENERAL", "text": "x"}, "not_in_channel"),
        ("chat.postMessage", {"channel": "G0LEADS", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {"channel": INCIDENTS}, "no_text"),
        ("chat.postMessage", {"text": "x"}, "invalid_arguments"),
        (
            "chat.postMessage",
            {"channel": INCIDENTS, "text": "x", "metadata": "{"},
            "invalid_metadata_format",
        ),
        ("chat.update", {"channel": INCIDENTS, "ts": "1.000001", "text": "x"}, "message_not_found"),
        ("conversations.replies", {"channel": INCIDENTS, "ts": "1.000001"}, "thread_not_found"),
        ("conversations.history", {"channel": "C0GENERAL"}, "not_in_channel"),
        ("conversations.history", {"channel": INCIDENTS, "cursor": "!!"}, "invalid_cursor"),
        ("conversations.list", {"types": "secret"}, "invalid_types"),
        ("users.info", {"user": "U0NOBODY"}, "user_not_found"),
        ("bots.info", {"bot": "B0NOBODY"}, "bot_not_found"),
        ("usergroups.users.list", {"usergroup": "S0NONE"}, "no_such_subteam"),
        (
            "reactions.add",
            {"channel": INCIDENTS, "timestamp": "1.000001", "name": "eyes"},
            "message_not_found",
        ),
        ("files.info", {"file": "F0NONE"}, "file_not_found"),
        ("files.getUploadURLExternal", {"filename": "a.txt", "length": 0}, "invalid_arguments"),
        ("files.completeUploadExternal", {"files": [{"id": "F0NONE"}]}, "file_not_found"),
        ("views.open", {"trigger_id": "made.up", "view": {"type": "modal"}}, "invalid_arguments"),
        ("conversations.archive", {"channel": INCIDENTS}, "unknown_method"),
    ],
)
async def test_refused_call_answers_slacks_own_code(
    slack: AsyncWebClient,
    client: WorkspaceClient,
    method: str,
    arguments: dict[str, Any],
    error: str,
) -> None:
    assert (await refusal(slack.api_call(method, json=arguments)))["error"] == error


async def test_message_of_a_person_cannot_be_changed_by_the_app(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    ts = await client.person("U0SRE").say(INCIDENTS, "mine")
    changed = await refusal(slack.chat_update(channel=INCIDENTS, ts=ts, text="not yours"))
    deleted = await refusal(slack.chat_delete(channel=INCIDENTS, ts=ts))
    assert (changed["error"], deleted["error"]) == ("cant_update_message", "cant_delete_message")


async def test_token_decides_who_may_call(workspace: RunningWorkspace) -> None:
    async with httpx.AsyncClient(base_url=workspace.api_url) as http:

        async def error(method: str, token: str | None) -> Any:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            return (await http.post(method, headers=headers)).json().get("error")

        config = workspace.config
        assert await error("auth.test", None) == "not_authed"
        assert await error("auth.test", "xoxb-wrong") == "invalid_auth"
        assert await error("auth.test", config.bot_token) is None
        assert await error("apps.connections.open", config.bot_token) == "not_allowed_token_type"
        assert await error("users.list", config.app_token) == "not_allowed_token_type"


async def test_missing_scope_names_what_is_needed() -> None:
    config = WorkspaceConfig(port=0, scopes=SCOPES - {"reactions:write"})
    async with running(config) as up, WorkspaceClient(up.url) as client:
        slack = AsyncWebClient(token=config.bot_token, base_url=up.api_url)
        ts = await client.person("U0SRE").say(INCIDENTS, "x")
        answer = await refusal(slack.reactions_add(channel=INCIDENTS, timestamp=ts, name="eyes"))
        assert answer["error"] == "missing_scope"
        assert answer["needed"] == "reactions:write"
        assert "chat:write" in answer["provided"]


async def test_reactions_go_on_once_and_come_off_once(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    ts = await client.person("U0SRE").say(INCIDENTS, "look")
    place = {"channel": INCIDENTS, "timestamp": ts}
    await slack.reactions_add(name="eyes", **place)
    assert (await refusal(slack.reactions_add(name="eyes", **place)))["error"] == "already_reacted"
    got = await slack.reactions_get(**place)
    assert got["message"]["reactions"] == [{"name": "eyes", "users": ["U0RCABOT"], "count": 1}]
    await slack.reactions_remove(name="eyes", **place)
    assert (await refusal(slack.reactions_remove(name="eyes", **place)))["error"] == "no_reaction"


async def test_uploaded_file_appears_in_the_thread_after_the_answer_and_needs_the_token(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    root = (await slack.chat_postMessage(channel=INCIDENTS, text="root"))["ts"]
    answer = await slack.files_upload_v2(
        channel=INCIDENTS,
        thread_ts=root,
        initial_comment="P99",
        file_uploads=[
            {"filename": "p99.png", "content": b"\x89PNG", "title": "P99", "alt_txt": "P99 rises"},
            {"filename": "图表.csv", "content": "时间,值\n".encode()},
        ],
    )
    assert "shares" not in answer["files"][0]
    shared = await client.wait_for(lambda m: bool(m.files), channel=INCIDENTS)
    assert (shared.thread_ts, len(shared.files)) == (root, 2)
    info = (await slack.files_info(file=answer["files"][0]["id"]))["file"]
    assert info["shares"]["public"][INCIDENTS][0]["thread_ts"] == root
    async with httpx.AsyncClient() as http:
        url = shared.files[1]["url_private_download"]
        allowed = await http.get(url, headers={"Authorization": f"Bearer {slack.token}"})
        refused = await http.get(url)
    assert allowed.content.decode() == "时间,值\n"
    assert refused.status_code == 200
    assert "Sign in" in refused.text


async def test_directory_methods_describe_the_seeded_team(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    assert (await slack.auth_test())["user_id"] == "U0RCABOT"
    channels = (await slack.conversations_list())["channels"]
    assert {c["name"]: c["is_member"] for c in channels} == {
        "incidents": True,
        "alerts": True,
        "drills": True,
        "general": False,
    }
    assert (await slack.conversations_info(channel=INCIDENTS))["channel"]["name"] == "incidents"
    assert "U0SRE" in (await slack.conversations_members(channel=INCIDENTS))["members"]
    assert (await slack.users_info(user="U0LEAD", include_locale=True))["user"]["locale"] == "zh-CN"
    first = await slack.users_list(limit=2)
    second = await slack.users_list(limit=2, cursor=first["response_metadata"]["next_cursor"])
    assert {u["id"] for u in first["members"]}.isdisjoint(u["id"] for u in second["members"])
    assert (await slack.usergroups_list(include_users=True))["usergroups"][0]["handle"] == "on-call"
    assert "U0SRE" in (await slack.usergroups_users_list(usergroup="S0ONCALL"))["users"]
    assert (await slack.bots_info(bot="B0ALERTMGR"))["bot"]["name"] == "Alertmanager"
    assert (await slack.team_info())["team"]["id"] == "T0LOCAL"
    direct = (await slack.conversations_open(users="U0SRE"))["channel"]["id"]
    assert (await slack.chat_postMessage(channel="U0SRE", text="psst"))["channel"] == direct


async def test_joining_a_channel_allows_posting_there(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    await slack.conversations_join(channel="C0GENERAL")
    assert (await slack.conversations_join(channel="C0GENERAL"))["warning"] == "already_in_channel"
    assert (await slack.chat_postMessage(channel="C0GENERAL", text="hello"))["ok"]


async def test_permalink_of_a_reply_leads_into_its_thread(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    root = (await slack.chat_postMessage(channel=INCIDENTS, text="root"))["ts"]
    reply = (await slack.chat_postMessage(channel=INCIDENTS, text="r", thread_ts=root))["ts"]
    link = (await slack.chat_getPermalink(channel=INCIDENTS, message_ts=reply))["permalink"]
    assert f"/archives/{INCIDENTS}/p{reply.replace('.', '')}?thread_ts={root}" in link


async def test_ephemeral_message_is_seen_by_its_reader_alone_and_never_stored(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    await slack.chat_postEphemeral(channel=INCIDENTS, user="U0SRE", text="for you")
    assert [m.text for m in await client.messages(INCIDENTS, user="U0SRE")] == ["for you"]
    assert await client.messages(INCIDENTS, user="U0LEAD") == []
    assert (await slack.conversations_history(channel=INCIDENTS))["messages"] == []


async def test_deleted_root_with_replies_stays_as_a_tombstone(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    root = (await slack.chat_postMessage(channel=INCIDENTS, text="secret"))["ts"]
    await slack.chat_postMessage(channel=INCIDENTS, text="reply", thread_ts=root)
    await slack.chat_delete(channel=INCIDENTS, ts=root)
    [tombstone, reply] = (await slack.conversations_replies(channel=INCIDENTS, ts=root))["messages"]
    assert tombstone["subtype"] == "tombstone"
    assert "secret" not in str(tombstone)
    assert reply["text"] == "reply"


async def test_rate_limit_answers_429_until_the_clock_has_moved_on(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    await client.rate_limits(enabled=True)
    for n in range(3):
        await slack.chat_postMessage(channel=INCIDENTS, text=str(n))
    with pytest.raises(SlackApiError) as caught:
        await slack.chat_postMessage(channel=INCIDENTS, text="one too many")
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "1"
    assert (await slack.chat_postMessage(channel="C0ALERTS", text="another channel"))["ok"]
    await client.advance_clock(1)
    assert (await slack.chat_postMessage(channel=INCIDENTS, text="now"))["ok"]
    for _ in range(20):
        await slack.users_list()
    assert (await refusal(slack.users_list()))["error"] == "ratelimited"


async def test_injected_error_hits_the_next_calls_and_no_others(
    slack: AsyncWebClient, client: WorkspaceClient
) -> None:
    await client.inject("error", "chat.postMessage", times=2, error="fatal_error")
    for _ in range(2):
        answer = await refusal(slack.chat_postMessage(channel=INCIDENTS, text="x"))
        assert answer["error"] == "fatal_error"
    assert (await slack.chat_postMessage(channel=INCIDENTS, text="x"))["ok"]


async def test_lost_answer_leaves_a_message_that_its_metadata_finds_again(
    workspace: RunningWorkspace, client: WorkspaceClient
) -> None:
    metadata = {"event_type": "rca_outbox", "event_payload": {"key": "k1"}}
    body = {"channel": INCIDENTS, "text": "card", "metadata": metadata}
    headers = {"Authorization": f"Bearer {workspace.config.bot_token}"}
    await client.inject("drop_call", "chat.postMessage")
    await client.inject("lost_answer", "chat.postMessage")
    async with httpx.AsyncClient(base_url=workspace.api_url, headers=headers) as http:
        for expected in (0, 1):
            with pytest.raises(httpx.HTTPError):
                await http.post("chat.postMessage", json=body)
            answer = await http.get(
                "conversations.history",
                params={"channel": INCIDENTS, "include_all_metadata": "1"},
            )
            found = answer.json()["messages"]
            assert [m["metadata"] for m in found] == [metadata] * expected


async def test_arguments_are_taken_from_query_form_and_json(workspace: RunningWorkspace) -> None:
    headers = {"Authorization": f"Bearer {workspace.config.bot_token}"}
    async with httpx.AsyncClient(base_url=workspace.api_url, headers=headers) as http:
        body = {"channel": INCIDENTS, "text": "x", "blocks": '[{"type":"divider"}]'}
        by_query = await http.post("chat.postMessage", params=body)
        by_form = await http.post("chat.postMessage", data=body)
        by_json = await http.post("chat.postMessage", json=body)
    assert [r.json()["message"]["blocks"][0]["type"] for r in (by_query, by_form, by_json)] == [
        "divider"
    ] * 3


async def test_name_that_is_not_loopback_is_refused(workspace: RunningWorkspace) -> None:
    async with httpx.AsyncClient() as http:
        answer = await http.get(workspace.url, headers={"Host": "evil.example"})
    assert answer.status_code == 400


def test_address_that_is_not_loopback_is_refused() -> None:
    with pytest.raises(ConfigError, match="machine only"):
        WorkspaceConfig(host="0.0.0.0")


async def test_control_call_from_another_sites_form_is_refused(workspace: RunningWorkspace) -> None:
    async with httpx.AsyncClient(base_url=workspace.url) as http:
        answer = await http.post(
            "/control/message", data={"user": "U0SRE", "channel": INCIDENTS, "text": "x"}
        )
    assert answer.status_code == 400
    assert "application/json" in answer.json()["error"]


async def test_block_check_names_the_fault(slack: AsyncWebClient, client: WorkspaceClient) -> None:
    good = await slack.api_call("blocks.validate", json={"blocks": '[{"type":"divider"}]'})
    assert good["ok"]
    bad = await refusal(slack.api_call("blocks.validate", json={"blocks": '[{"type":"nope"}]'}))
    assert bad["error"] == "invalid_blocks"
    assert "/blocks/0/type" in bad["response_metadata"]["messages"][0]
