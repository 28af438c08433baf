"""The bodies that the app receives: event envelopes, slash commands, interactivity."""

from __future__ import annotations

from bot.workspace import seed, shapes
from bot.workspace.blocks import Element
from bot.workspace.records import Channel, ChannelKind, Json, Message, User, View
from bot.workspace.state import Workspace

# Slack still sends the verification token of old; apps are told to check the signature instead.
LEGACY_TOKEN = "unused-verification-token"  # noqa: S105  it opens nothing


def event_envelope(workspace: Workspace, event: Json, event_id: str) -> Json:
    """An event as `POST /slack/events` carries it."""
    channel = event.get("channel") or event.get("item", {}).get("channel")
    return {
        "token": LEGACY_TOKEN,
        "team_id": workspace.team_id,
        "context_team_id": workspace.team_id,
        "context_enterprise_id": None,
        "api_app_id": workspace.app.id,
        "event": event,
        "type": "event_callback",
        "event_id": event_id,
        "event_time": int(workspace.clock.now()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": workspace.team_id,
                "user_id": workspace.app_user,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": f"4-{event_id}-{channel or ''}",
    }


def slash_command(
    workspace: Workspace,
    *,
    user: User,
    channel: Channel,
    command: str,
    text: str,
    response_url: str,
    trigger_id: str,
) -> Json:
    """A slash command; every value is text, since it travels as a form."""
    names = {ChannelKind.DIRECT: "directmessage", ChannelKind.PRIVATE: "privategroup"}
    return {
        "token": LEGACY_TOKEN,
        "team_id": workspace.team_id,
        "team_domain": seed.TEAM_DOMAIN,
        "channel_id": channel.id,
        "channel_name": names.get(channel.kind, channel.name),
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": workspace.app.id,
        "is_enterprise_install": "false",
        "response_url": response_url,
        "trigger_id": trigger_id,
    }


def action(element: Element, value: Json, action_ts: str) -> Json:
    """One entry of `actions` in a block_actions payload."""
    body = element.body
    entry: Json = {
        "type": element.kind,
        "action_id": element.action_id,
        "block_id": element.block_id,
        "action_ts": action_ts,
        **value,
    }
    if element.kind == "button":
        entry["text"] = body["text"]
        entry |= {key: body[key] for key in ("value", "style", "url") if key in body}
    elif "placeholder" in body:
        entry["placeholder"] = body["placeholder"]
    return entry


def block_actions(
    workspace: Workspace,
    *,
    user: User,
    actions: list[Json],
    trigger_id: str,
    state: Json,
    message: Message | None = None,
    view: View | None = None,
    response_url: str | None = None,
) -> Json:
    """A press or a choice in a message or a view."""
    body: Json = {
        **_common(workspace, user, "block_actions"),
        "trigger_id": trigger_id,
        "is_enterprise_install": False,
        "enterprise": None,
        "actions": actions,
    }
    if message is not None:
        channel = workspace.channels[message.channel]
        body["container"] = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": message.only_for is not None,
        }
        if message.is_reply:
            body["container"]["thread_ts"] = message.thread_ts
        body |= {
            "channel": _channel(channel),
            "state": {"values": state},
            "response_url": response_url,
        }
        if message.only_for is None:
            body["message"] = shapes.message(workspace, message)
    if view is not None:
        body["container"] = {"type": "view", "view_id": view.id}
        body["view"] = shapes.view(workspace, view, state=state)
    return _without_none(body)


def view_submission(
    workspace: Workspace, *, user: User, view: View, state: Json, trigger_id: str, urls: list[Json]
) -> Json:
    """A person pressed a modal's submit button."""
    return {
        **_common(workspace, user, "view_submission"),
        "trigger_id": trigger_id,
        "view": shapes.view(workspace, view, state=state),
        "response_urls": urls,
        "is_enterprise_install": False,
    }


def view_closed(workspace: Workspace, *, user: User, view: View, is_cleared: bool) -> Json:
    """A person closed a modal that asked to be told."""
    return {
        **_common(workspace, user, "view_closed"),
        "view": shapes.view(workspace, view),
        "is_cleared": is_cleared,
        "is_enterprise_install": False,
    }


def block_suggestion(
    workspace: Workspace,
    *,
    user: User,
    element: Element,
    typed: str,
    message: Message | None,
    view: View | None,
) -> Json:
    """A person typed into a select whose options the app supplies."""
    body: Json = {
        **_common(workspace, user, "block_suggestion"),
        "action_id": element.action_id,
        "block_id": element.block_id,
        "value": typed,
        "is_enterprise_install": False,
    }
    if message is not None:
        body["container"] = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": message.channel,
            "is_ephemeral": False,
        }
        body["channel"] = _channel(workspace.channels[message.channel])
        body["message"] = shapes.message(workspace, message)
    if view is not None:
        body["container"] = {"type": "view", "view_id": view.id}
        body["view"] = shapes.view(workspace, view)
    return body


def message_action(
    workspace: Workspace,
    *,
    user: User,
    message: Message,
    callback_id: str,
    trigger_id: str,
    response_url: str,
    action_ts: str,
) -> Json:
    """A message shortcut."""
    return {
        **_common(workspace, user, "message_action"),
        "callback_id": callback_id,
        "trigger_id": trigger_id,
        "response_url": response_url,
        "action_ts": action_ts,
        "message_ts": message.ts,
        "channel": _channel(workspace.channels[message.channel]),
        "message": shapes.message(workspace, message),
        "is_enterprise_install": False,
    }


def _common(workspace: Workspace, user: User, kind: str) -> Json:
    return {
        "type": kind,
        "token": LEGACY_TOKEN,
        "api_app_id": workspace.app.id,
        "team": {"id": workspace.team_id, "domain": seed.TEAM_DOMAIN},
        "user": {
            "id": user.id,
            "username": user.name,
            "name": user.name,
            "team_id": workspace.team_id,
        },
    }


def _channel(channel: Channel) -> Json:
    is_direct = channel.kind is ChannelKind.DIRECT
    return {"id": channel.id, "name": "directmessage" if is_direct else channel.name}


def _without_none(body: Json) -> Json:
    return {key: value for key, value in body.items() if value is not None}
