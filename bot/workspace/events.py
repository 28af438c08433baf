"""Turns changes of the workspace into the events that the app is subscribed to."""

from __future__ import annotations

from bot.workspace import shapes
from bot.workspace.changes import (
    Change,
    FileShared,
    HomeOpened,
    MemberJoined,
    MessageDeleted,
    MessageEdited,
    MessagePosted,
    ReactionChanged,
)
from bot.workspace.records import ChannelKind, Json, Message
from bot.workspace.state import Workspace

# The subscriptions of the app; a message event is named after the kind of channel.
SUBSCRIPTIONS = frozenset(
    {
        "app_home_opened",
        "app_mention",
        "file_shared",
        "member_joined_channel",
        "message.channels",
        "message.groups",
        "message.im",
        "reaction_added",
        "reaction_removed",
    }
)

_MESSAGE_EVENT = {
    ChannelKind.PUBLIC: "message.channels",
    ChannelKind.PRIVATE: "message.groups",
    ChannelKind.DIRECT: "message.im",
}


def inner_events(
    workspace: Workspace, change: Change, subscriptions: frozenset[str] = SUBSCRIPTIONS
) -> list[Json]:
    """The events that this change sends to the app, in order; none where it is not in the channel."""
    match change:
        case MessagePosted(message=message):
            return _posted(workspace, message, subscriptions)
        case MessageEdited(message=message, previous=previous):
            body = {
                "subtype": "message_changed",
                "hidden": True,
                "message": shapes.message(workspace, message),
                "previous_message": previous,
                # The event has an id of its own; the message keeps its.
                "ts": message.edited_ts or workspace.timestamp(),
            }
            return _message_event(workspace, message.channel, body, subscriptions)
        case MessageDeleted(channel=channel, ts=ts, previous=previous):
            body = {
                "subtype": "message_deleted",
                "hidden": True,
                "deleted_ts": ts,
                "previous_message": previous,
                "ts": workspace.timestamp(),
            }
            return _message_event(workspace, channel, body, subscriptions)
        case ReactionChanged():
            return _reaction(workspace, change, subscriptions)
        case MemberJoined():
            return _joined(workspace, change, subscriptions)
        case FileShared(file=file, channel=channel, user=user):
            if "file_shared" not in subscriptions or not _sees(workspace, channel):
                return []
            return [
                {
                    "type": "file_shared",
                    "file_id": file.id,
                    "file": {"id": file.id},
                    "user_id": user,
                    "channel_id": channel,
                    "event_ts": workspace.timestamp(),
                }
            ]
        case HomeOpened(user=user, tab=tab):
            return _home(workspace, user, tab, subscriptions)
        case _:
            return []


def _posted(workspace: Workspace, message: Message, subscriptions: frozenset[str]) -> list[Json]:
    body = shapes.message(workspace, message)
    if message.files:
        body |= {"subtype": message.subtype or "file_share", "upload": False}
    events = _message_event(workspace, message.channel, body, subscriptions)
    mentions_app = workspace.app_user in workspace.mentions(message.text)
    is_own = message.bot_id == workspace.app.bot_id
    kind = workspace.channels[message.channel].kind
    if (
        mentions_app
        and not is_own
        and message.subtype is None
        and kind is not ChannelKind.DIRECT
        and "app_mention" in subscriptions
        and _sees(workspace, message.channel)
    ):
        mention = {key: value for key, value in body.items() if key not in ("subtype", "files")}
        mention |= {"type": "app_mention", "channel": message.channel, "event_ts": message.ts}
        # Slack sends both, in no stated order; the mention first is what most receivers see.
        events.insert(0, mention)
    return events


def _message_event(
    workspace: Workspace, channel: str, body: Json, subscriptions: frozenset[str]
) -> list[Json]:
    kind = workspace.channels[channel].kind
    if _MESSAGE_EVENT[kind] not in subscriptions or not _sees(workspace, channel):
        return []
    return [
        {
            **body,
            "type": "message",
            "channel": channel,
            "channel_type": kind.value,
            "event_ts": body["ts"],
        }
    ]


def _reaction(
    workspace: Workspace, change: ReactionChanged, subscriptions: frozenset[str]
) -> list[Json]:
    name = "reaction_added" if change.is_added else "reaction_removed"
    if name not in subscriptions or not _sees(workspace, change.message.channel):
        return []
    event: Json = {
        "type": name,
        "user": change.user,
        "reaction": change.name,
        "item": {
            "type": "message",
            "channel": change.message.channel,
            "ts": change.message.ts,
        },
        "event_ts": workspace.timestamp(),
    }
    # Slack leaves the author out where the message was posted by a webhook, which has no user.
    if change.message.user:
        event["item_user"] = change.message.user
    return [event]


def _joined(
    workspace: Workspace, change: MemberJoined, subscriptions: frozenset[str]
) -> list[Json]:
    if "member_joined_channel" not in subscriptions or not _sees(workspace, change.channel):
        return []
    kind = workspace.channels[change.channel].kind
    event: Json = {
        "type": "member_joined_channel",
        "user": change.user,
        "channel": change.channel,
        "channel_type": "C" if kind is ChannelKind.PUBLIC else "G",
        "team": workspace.team_id,
        "event_ts": workspace.timestamp(),
    }
    if change.inviter:
        event["inviter"] = change.inviter
    return [event]


def _home(workspace: Workspace, user: str, tab: str, subscriptions: frozenset[str]) -> list[Json]:
    if "app_home_opened" not in subscriptions:
        return []
    event: Json = {
        "type": "app_home_opened",
        "user": user,
        "channel": workspace.direct(user).id,
        "tab": tab,
        "event_ts": workspace.timestamp(),
    }
    if tab == "home" and (home := workspace.homes.get(user)):
        event["view"] = shapes.view(workspace, home)
    return [event]


def _sees(workspace: Workspace, channel: str) -> bool:
    return workspace.app_user in workspace.channels[channel].members
