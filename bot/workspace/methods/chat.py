"""chat.*: post, update, delete, ephemeral messages, permalinks."""

from __future__ import annotations

from bot.workspace import shapes
from bot.workspace.call import ApiError, Call
from bot.workspace.methods.content import Checked, channel_for_post, content, visible_channel
from bot.workspace.records import Channel, Content, Json, Message
from bot.workspace.services import Services

# What an answer of chat.update carries of the message, as documented.
_UPDATE_KEYS = (
    "type",
    "user",
    "team",
    "text",
    "blocks",
    "bot_id",
    "app_id",
    "bot_profile",
    "edited",
)
_UPDATE_MORE = ("files", "metadata")
_NOT_IN_POST = ("client_msg_id", "reply_count", "reply_users", "reply_users_count", "latest_reply")


async def post_message(services: Services, call: Call) -> Json:
    """Posts as the app."""
    workspace = services.workspace
    channel = channel_for_post(services, call.required("channel"))
    ts = workspace.timestamp()
    checked = content(call, is_update=False, salt=ts)
    message = _from_app(services, call, channel, ts, checked.content)
    message.thread_ts = _thread(channel, call.text("thread_ts"))
    if message.thread_ts and call.flag("reply_broadcast"):
        message.subtype = "thread_broadcast"
    workspace.post(message)
    shown = shapes.message(workspace, message)
    answer: Json = {
        "channel": channel.id,
        "ts": ts,
        "message": {key: value for key, value in shown.items() if key not in _NOT_IN_POST},
    }
    return answer | _warning(checked)


async def update(services: Services, call: Call) -> Json:
    """Changes one of the app's own messages."""
    workspace = services.workspace
    channel = visible_channel(workspace, call.required("channel"))
    message = channel.messages.get(call.required("ts"))
    if message is None:
        raise ApiError("message_not_found")
    if message.bot_id != workspace.app.bot_id or message.subtype == "tombstone":
        raise ApiError("cant_update_message")
    checked = content(call, is_update=True, salt=message.ts)
    workspace.edit(message, checked.content, editor=workspace.app_user)
    shown = shapes.message(workspace, message)
    return {
        "channel": channel.id,
        "ts": message.ts,
        "text": message.text,
        "message": {key: shown[key] for key in (*_UPDATE_KEYS, *_UPDATE_MORE) if key in shown},
    } | _warning(checked)


async def delete(services: Services, call: Call) -> Json:
    """Deletes one of the app's own messages."""
    workspace = services.workspace
    channel = visible_channel(workspace, call.required("channel"))
    message = channel.messages.get(call.required("ts"))
    if message is None:
        raise ApiError("message_not_found")
    if message.bot_id != workspace.app.bot_id:
        raise ApiError("cant_delete_message")
    workspace.delete(message)
    return {"channel": channel.id, "ts": message.ts}


async def post_ephemeral(services: Services, call: Call) -> Json:
    """Shows a message to one person in a channel that they are in."""
    workspace = services.workspace
    channel = channel_for_post(services, call.required("channel"))
    user = call.required("user")
    if user not in channel.members:
        raise ApiError("user_not_in_channel")
    ts = workspace.timestamp()
    checked = content(call, is_update=False, salt=ts)
    message = _from_app(services, call, channel, ts, checked.content)
    message.metadata = None
    message.only_for = user
    message.thread_ts = _thread(channel, call.text("thread_ts"))
    workspace.post_ephemeral(message)
    return {"message_ts": ts} | _warning(checked)


async def get_permalink(services: Services, call: Call) -> Json:
    """The address of a message."""
    workspace = services.workspace
    channel = visible_channel(workspace, call.required("channel"))
    message = channel.messages.get(call.required("message_ts"))
    if message is None:
        raise ApiError("message_not_found")
    thread_ts = message.thread_ts if message.is_reply else None
    return {
        "channel": channel.id,
        "permalink": workspace.permalink(channel.id, message.ts, thread_ts),
    }


def _from_app(services: Services, call: Call, channel: Channel, ts: str, what: Content) -> Message:
    workspace = services.workspace
    username = call.text("username")
    has_custom_name = username is not None and "chat:write.customize" in services.config.scopes
    return Message(
        channel=channel.id,
        ts=ts,
        text=what.text or "",
        blocks=what.blocks or [],
        attachments=what.attachments or [],
        metadata=what.metadata or None,
        bot_id=workspace.app.bot_id,
        app_id=workspace.app.id,
        user=None if has_custom_name else workspace.app_user,
        subtype="bot_message" if has_custom_name else None,
        username=username if has_custom_name else None,
        icon_emoji=call.text("icon_emoji") if has_custom_name else None,
    )


def _thread(channel: Channel, thread_ts: str | None) -> str | None:
    if thread_ts is None:
        return None
    root = channel.messages.get(thread_ts)
    if root is None:
        # Slack does not document a parent that is gone; what is seen there is a new root.
        return None
    if root.is_reply or root.subtype == "channel_join":
        raise ApiError("cannot_reply_to_message")
    return thread_ts


def _warning(checked: Checked) -> Json:
    if checked.warning is None:
        return {}
    return {"warning": checked.warning, "response_metadata": {"warnings": [checked.warning]}}


HANDLERS = {
    "chat.postMessage": post_message,
    "chat.update": update,
    "chat.delete": delete,
    "chat.postEphemeral": post_ephemeral,
    "chat.getPermalink": get_permalink,
}
