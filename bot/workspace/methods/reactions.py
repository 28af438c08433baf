"""reactions.*: emoji on messages."""

from __future__ import annotations

import re

from bot.workspace import shapes
from bot.workspace.call import ApiError, Call
from bot.workspace.methods.content import visible_channel
from bot.workspace.records import Json, Message
from bot.workspace.services import Services

_NAME = re.compile(r"^[a-z0-9_+'-]{1,100}(::skin-tone-[2-6])?$")
_GET_KEYS = ("type", "user", "team", "text", "ts", "bot_id", "app_id", "bot_profile", "blocks")


async def add(services: Services, call: Call) -> Json:
    """The app puts an emoji on a message."""
    message = _message(services, call)
    if not services.workspace.react(message, services.workspace.app_user, _name(call)):
        raise ApiError("already_reacted")
    return {}


async def remove(services: Services, call: Call) -> Json:
    """The app takes its emoji off a message."""
    message = _message(services, call)
    if not services.workspace.unreact(message, services.workspace.app_user, _name(call)):
        raise ApiError("no_reaction")
    return {}


async def get(services: Services, call: Call) -> Json:
    """A message with its reactions."""
    workspace = services.workspace
    message = _message(services, call)
    shown = shapes.message(workspace, message)
    body = {key: shown[key] for key in _GET_KEYS if key in shown}
    body["permalink"] = workspace.permalink(message.channel, message.ts)
    if message.reactions:
        body["reactions"] = shapes.reactions(message)
    return {"type": "message", "channel": message.channel, "message": body}


def _message(services: Services, call: Call) -> Message:
    if not call.has("channel") or not call.has("timestamp"):
        raise ApiError("no_item_specified")
    channel = visible_channel(services.workspace, call.required("channel"))
    message = channel.messages.get(call.required("timestamp"))
    if message is None:
        raise ApiError("message_not_found")
    return message


def _name(call: Call) -> str:
    name = call.required("name").strip(":")
    if not _NAME.match(name):
        raise ApiError("invalid_name")
    return name


HANDLERS = {"reactions.add": add, "reactions.remove": remove, "reactions.get": get}
