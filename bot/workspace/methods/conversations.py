"""conversations.*: channels, their members, history and threads."""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.workspace import shapes
from bot.workspace.call import ApiError, Call
from bot.workspace.methods.content import visible_channel
from bot.workspace.paging import page
from bot.workspace.records import Channel, ChannelKind, Json, Message
from bot.workspace.services import Services

_TYPES = {
    "public_channel": ChannelKind.PUBLIC,
    "private_channel": ChannelKind.PRIVATE,
    "im": ChannelKind.DIRECT,
}
# Source: docs.slack.dev, conversations.history and conversations.list.
_PAGE_MAX = 999
_TS = re.compile(r"^\d{1,11}(\.\d{1,6})?$")


async def list_channels(services: Services, call: Call) -> Json:
    """Public channels unless `types` asks for others; private ones only from the inside."""
    workspace = services.workspace
    names = (call.text("types") or "public_channel").split(",")
    if unknown := [name for name in names if name not in (*_TYPES, "mpim")]:
        raise ApiError("invalid_types", messages=[f"[ERROR] unknown type: {unknown[0]}"])
    kinds = {_TYPES[name] for name in names if name in _TYPES}
    channels = [
        channel
        for channel in workspace.channels.values()
        if channel.kind in kinds
        and (channel.kind is ChannelKind.PUBLIC or workspace.app_user in channel.members)
        and not (channel.is_archived and call.flag("exclude_archived"))
    ]
    shown, metadata = page(channels, cursor=call.text("cursor"), limit=_limit(call, 100))
    return {
        "channels": [shapes.channel(workspace, channel, with_count=True) for channel in shown],
        "response_metadata": metadata,
    }


async def info(services: Services, call: Call) -> Json:
    """One channel."""
    channel = visible_channel(services.workspace, call.required("channel"))
    shown = shapes.channel(services.workspace, channel, with_count=call.flag("include_num_members"))
    return {"channel": shown}


async def history(services: Services, call: Call) -> Json:
    """Messages of the channel itself, newest first; replies are not among them."""
    channel = _readable(services, call, "not_in_channel")
    chosen = _in_range(call)
    messages = [m for m in channel.messages.values() if m.is_in_channel and chosen(m)]
    messages.reverse()
    shown, metadata = page(messages, cursor=call.text("cursor"), limit=_limit(call, 100))
    return {
        "messages": _shown(services, call, shown),
        "has_more": bool(metadata["next_cursor"]),
        "pin_count": 0,
        "channel_actions_ts": None,
        "channel_actions_count": 0,
    } | ({"response_metadata": metadata} if metadata["next_cursor"] else {})


async def replies(services: Services, call: Call) -> Json:
    """A thread, its root first; a reply's own ts gives that reply alone."""
    channel = _readable(services, call, "channel_not_found")
    root = channel.messages.get(call.required("ts"))
    if root is None:
        raise ApiError("thread_not_found")
    if root.is_reply:
        return {"messages": _shown(services, call, [root]), "has_more": False}
    chosen = _in_range(call)
    thread = [root, *(m for m in services.workspace.replies(channel.id, root.ts) if chosen(m))]
    shown, metadata = page(thread, cursor=call.text("cursor"), limit=_limit(call, 1000))
    return {
        "messages": _shown(services, call, shown),
        "has_more": bool(metadata["next_cursor"]),
    } | ({"response_metadata": metadata} if metadata["next_cursor"] else {})


async def join(services: Services, call: Call) -> Json:
    """The app comes into a public channel."""
    workspace = services.workspace
    channel = visible_channel(workspace, call.required("channel"))
    if channel.kind is not ChannelKind.PUBLIC:
        raise ApiError("method_not_supported_for_channel_type")
    if channel.is_archived:
        raise ApiError("is_archived")
    joined = workspace.join(channel, workspace.app_user)
    answer: Json = {"channel": shapes.channel(workspace, channel)}
    if not joined:
        answer |= {
            "warning": "already_in_channel",
            "response_metadata": {"warnings": ["already_in_channel"]},
        }
    return answer


async def members(services: Services, call: Call) -> Json:
    """Who is in a channel."""
    channel = visible_channel(services.workspace, call.required("channel"))
    ids = sorted(channel.members)
    shown, metadata = page(ids, cursor=call.text("cursor"), limit=_limit(call, 100))
    return {"members": shown, "response_metadata": metadata}


async def open_direct(services: Services, call: Call) -> Json:
    """The app's direct messages with one person."""
    workspace = services.workspace
    if reference := call.text("channel"):
        channel = visible_channel(workspace, reference)
    else:
        users = (call.text("users") or "").split(",")
        if users == [""]:
            raise ApiError("users_list_not_supplied")
        if len(users) > 1:
            raise ApiError("method_not_supported_for_channel_type")
        if users[0] not in workspace.users:
            raise ApiError("user_not_found")
        channel = workspace.direct(users[0])
    if channel.kind is not ChannelKind.DIRECT:
        raise ApiError("method_not_supported_for_channel_type")
    body: Json = {"id": channel.id}
    if call.flag("return_im"):
        body |= {
            "created": channel.created,
            "is_im": True,
            "is_open": True,
            "is_archived": False,
            "is_org_shared": False,
            "user": channel.with_user,
            "context_team_id": workspace.team_id,
        }
    return {"channel": body, "no_op": False, "already_open": True}


def _readable(services: Services, call: Call, outside: str) -> Channel:
    workspace = services.workspace
    channel = visible_channel(workspace, call.required("channel"))
    if workspace.app_user not in channel.members:
        raise ApiError(outside)
    family = {
        ChannelKind.PUBLIC: "channels:history",
        ChannelKind.PRIVATE: "groups:history",
        ChannelKind.DIRECT: "im:history",
    }[channel.kind]
    scopes = services.config.scopes
    if family not in scopes:
        raise ApiError("missing_scope", needed=family, provided=",".join(sorted(scopes)))
    return channel


def _in_range(call: Call) -> Callable[[Message], bool]:
    oldest, latest = call.text("oldest") or "0", call.text("latest")
    if not _TS.match(oldest):
        raise ApiError("invalid_ts_oldest")
    if latest in (None, "now"):
        latest = None
    elif not _TS.match(latest or ""):
        raise ApiError("invalid_ts_latest")
    is_inclusive = call.flag("inclusive")
    low, high = _key(oldest), None if latest is None else _key(latest)

    def chosen(message: Message) -> bool:
        at = _key(message.ts)
        if is_inclusive:
            return low <= at and (high is None or at <= high)
        return low < at and (high is None or at < high)

    return chosen


def _key(ts: str) -> tuple[int, int]:
    # A ts is text: as a float it would lose its last digits.
    seconds, _, micros = ts.partition(".")
    return int(seconds), int(micros.ljust(6, "0") or 0)


def _limit(call: Call, default: int) -> int:
    limit = call.number("limit", default) or default
    if limit < 1:
        raise ApiError("invalid_arguments", messages=["[ERROR] limit must be at least 1"])
    return min(limit, _PAGE_MAX)


def _shown(services: Services, call: Call, messages: list[Message]) -> list[Json]:
    with_metadata = call.flag("include_all_metadata")
    return [
        shapes.message(services.workspace, message, with_metadata=with_metadata)
        for message in messages
    ]


HANDLERS = {
    "conversations.list": list_channels,
    "conversations.info": info,
    "conversations.history": history,
    "conversations.replies": replies,
    "conversations.join": join,
    "conversations.members": members,
    "conversations.open": open_direct,
}
