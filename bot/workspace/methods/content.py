"""Checks of what a message says and where it may go, shared by the chat and file methods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.blockkit import limits
from bot.blockkit.validate import Fault, text_length, validate_blocks, validate_message
from bot.workspace import blocks as block_kit
from bot.workspace.call import ApiError, Call
from bot.workspace.records import Channel, ChannelKind, Content, Json
from bot.workspace.services import Services
from bot.workspace.state import Workspace

# Source: docs.slack.dev, "Message metadata".
_METADATA_BYTES = 16_000


@dataclass(frozen=True, slots=True)
class Checked:
    """Content that may be posted, and a warning to give with it."""

    content: Content
    warning: str | None


def channel_for_post(services: Services, reference: str) -> Channel:
    """The channel that the app may post in.

    Raises:
        ApiError: no such channel, archived, or the app is not in it.
    """
    workspace = services.workspace
    channel = visible_channel(workspace, reference)
    if channel.is_archived:
        raise ApiError("is_archived")
    is_open = channel.kind is ChannelKind.PUBLIC and "chat:write.public" in services.config.scopes
    if workspace.app_user not in channel.members and not is_open:
        raise ApiError("not_in_channel")
    return channel


def visible_channel(workspace: Workspace, reference: str) -> Channel:
    """A channel that the app can know of: a private one only from the inside.

    Raises:
        ApiError: there is none.
    """
    channel = workspace.find_channel(reference)
    if channel is None or (
        channel.kind is not ChannelKind.PUBLIC and workspace.app_user not in channel.members
    ):
        raise ApiError("channel_not_found")
    return channel


def content(call: Call, *, is_update: bool, salt: str) -> Checked:
    """Reads and checks text, blocks, attachments and metadata.

    Raises:
        ApiError: with the code and the pointer that Slack would give.
    """
    text = call.text("text")
    markdown = call.text("markdown_text")
    blocks = _list(call.json("blocks"), "invalid_blocks_format")
    attachments = _list(call.json("attachments"), "invalid_attachments")
    if markdown is not None:
        if text is not None or blocks:
            raise ApiError("markdown_text_conflict")
        blocks = [{"type": "markdown", "text": markdown}]
    if text is None and not blocks and not attachments:
        raise ApiError("no_text")
    warning = None
    if text is not None and is_update and len(text) > limits.UPDATE_TEXT:
        raise ApiError("msg_too_long")
    if text is not None and len(text) > limits.POST_TEXT:
        text, warning = text[: limits.POST_TEXT], "message_truncated"
    if blocks:
        check_blocks(blocks)
        blocks = block_kit.with_ids(blocks, salt=salt)
    if attachments:
        attachments = _attachments(attachments, salt)
    return Checked(
        Content(
            # chat.update with text and no blocks drops the blocks; attachments stay unless given.
            text=text if text is not None else ("" if blocks else None),
            blocks=blocks if blocks is not None else ([] if text is not None else None),
            attachments=attachments,
            metadata=_metadata(call.json("metadata")),
        ),
        warning,
    )


def check_blocks(blocks: Sequence[Json]) -> None:
    """Refuses what Slack refuses.

    Raises:
        ApiError: `invalid_blocks` with one message per fault, or `msg_blocks_too_long`.
    """
    faults = validate_blocks(blocks)
    if faults:
        raise invalid_blocks(faults, "/blocks")
    if text_length(blocks) > limits.BLOCKS_TEXT_REFUSED:
        raise ApiError("msg_blocks_too_long")


def invalid_blocks(faults: Sequence[Fault], prefix: str = "") -> ApiError:
    """The answer to blocks that break a rule."""
    messages = [
        f"[ERROR] {fault.message} [json-pointer:{prefix}{fault.pointer}]" for fault in faults
    ]
    return ApiError("invalid_blocks", messages=messages, errors=[str(f) for f in faults])


def _attachments(attachments: list[Json], salt: str) -> list[Json]:
    if len(attachments) > limits.MESSAGE_ATTACHMENTS:
        raise ApiError("too_many_attachments")
    faults = validate_message(None, "", attachments=attachments)
    if faults:
        raise ApiError(
            "invalid_attachments",
            messages=[f"[ERROR] {f.message} [json-pointer:{f.pointer}]" for f in faults],
        )
    completed = []
    for index, item in enumerate(attachments, start=1):
        body = {"id": index, "fallback": "[no preview available]", **item}
        if body.get("blocks"):
            body["blocks"] = block_kit.with_ids(body["blocks"], salt=f"{salt}/{index}")
        completed.append(body)
    return completed


def _list(value: Any, code: str) -> list[Json] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ApiError(code)
    return value


def _metadata(value: Any) -> Json | None:
    if value is None:
        return None
    if value == {}:
        return {}
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("event_type"), str)
        or not isinstance(value.get("event_payload"), dict)
    ):
        raise ApiError("invalid_metadata_format")
    if len(json.dumps(value).encode()) > _METADATA_BYTES:
        raise ApiError("metadata_too_large")
    return {"event_type": value["event_type"], "event_payload": value["event_payload"]}
