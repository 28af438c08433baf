"""What a response URL, or the answer to a command, puts on the screen."""

from __future__ import annotations

from typing import Any

from bot.blockkit.validate import validate_message
from bot.workspace import blocks as block_kit
from bot.workspace.records import Content, Json, Message
from bot.workspace.services import Services
from bot.workspace.tickets import ResponseUrl


class ResponseRefusedError(ValueError):
    """The body is nothing that Slack would show; the text is Slack's code for it."""


def show(services: Services, origin: ResponseUrl, body: Json) -> Message | None:
    """Posts, replaces or removes, as the body asks; gives the message that now shows.

    Raises:
        ResponseRefusedError: the body has no content, or blocks that break a rule.
    """
    workspace = services.workspace
    original = workspace.message(origin.channel, origin.message_ts) if origin.message_ts else None
    if original is not None and original.bot_id != workspace.app.bot_id:
        original = None
    if body.get("delete_original") is True:
        if original is not None:
            _remove(services, original)
        return None
    content = _content(body, salt=workspace.timestamp())
    if body.get("replace_original") is True and original is not None:
        return _replace(services, original, content)
    is_public = body.get("response_type") == "in_channel"
    message = Message(
        channel=origin.channel,
        ts=workspace.timestamp(),
        text=content.text or "",
        blocks=content.blocks or [],
        attachments=content.attachments or [],
        user=workspace.app_user,
        bot_id=workspace.app.bot_id,
        app_id=workspace.app.id,
        thread_ts=_thread(services, origin, body),
        only_for=None if is_public else origin.user,
    )
    return workspace.post(message) if is_public else workspace.post_ephemeral(message)


def _thread(services: Services, origin: ResponseUrl, body: Json) -> str | None:
    named = body.get("thread_ts")
    channel = services.workspace.channels[origin.channel]
    if isinstance(named, str) and named in channel.messages:
        return named
    # What answers an action in a thread shows beside it.
    return origin.thread_ts


def _replace(services: Services, original: Message, content: Content) -> Message:
    workspace = services.workspace
    if original.only_for is None:
        workspace.edit(original, content, editor=workspace.app_user)
        return original
    workspace.remove_ephemeral(original)
    original.text = content.text or ""
    original.blocks = content.blocks or []
    original.attachments = content.attachments or []
    return workspace.post_ephemeral(original)


def _remove(services: Services, original: Message) -> None:
    if original.only_for is None:
        services.workspace.delete(original)
    else:
        services.workspace.remove_ephemeral(original)


def _content(body: Json, *, salt: str) -> Content:
    text: Any = body.get("text")
    blocks, attachments = body.get("blocks"), body.get("attachments")
    if not text and not blocks and not attachments:
        raise ResponseRefusedError("no_text")
    if blocks and not isinstance(blocks, list):
        raise ResponseRefusedError("invalid_blocks_format")
    # The sum of all text is not limited here, unlike in chat.postMessage.
    faults = validate_message(blocks or None, "x", attachments=attachments, text_limit=10**9)
    if faults:
        raise ResponseRefusedError("invalid_blocks" if blocks else "invalid_attachments")
    return Content(
        text=str(text or ""),
        blocks=block_kit.with_ids(blocks or [], salt=salt),
        attachments=attachments or [],
    )
