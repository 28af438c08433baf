"""files.*: upload in three steps, with the share after the answer, as Slack does it."""

from __future__ import annotations

import asyncio
from typing import Any

from bot.blockkit.validate import validate_blocks
from bot.workspace import blocks as block_kit
from bot.workspace import shapes
from bot.workspace.call import ApiError, Call
from bot.workspace.methods.content import channel_for_post, invalid_blocks
from bot.workspace.records import Channel, Json, Message, StoredFile
from bot.workspace.services import Services
from bot.workspace.tickets import Upload

# Source: docs.slack.dev, files.getUploadURLExternal and files.completeUploadExternal.
_MAX_FILE_BYTES = 1_000_000_000
_MAX_CHANNELS = 100
_ALT_TEXT = 1_000


async def get_upload_url(services: Services, call: Call) -> Json:
    """Where to send one file's bytes."""
    length = call.number("length", 0)
    if length > _MAX_FILE_BYTES:
        raise ApiError("file_upload_size_restricted")
    alt_text = call.text("alt_txt")
    if alt_text is not None and len(alt_text) > _ALT_TEXT:
        raise ApiError("alt_txt_too_large")
    file_id = services.workspace.new_id("F")
    services.tickets.uploads[file_id] = Upload(
        file_id=file_id, name=call.required("filename"), length=length, alt_text=alt_text
    )
    return {
        "upload_url": f"{services.workspace.base_url}/upload/v1/{file_id}",
        "file_id": file_id,
    }


async def complete_upload(services: Services, call: Call) -> Json:
    """Takes uploaded files in and shares them a moment later."""
    channels = _channels(services, call)
    blocks = call.json("blocks")
    if blocks and (faults := validate_blocks(blocks)):
        raise invalid_blocks(faults, "/blocks")
    files = [_take(services, entry) for entry in _entries(call.json("files"))]
    thread_ts = call.text("thread_ts")
    if channels:
        task = asyncio.create_task(_share(services, call, files, channels, thread_ts))
        # Held, so that the loop cannot drop it.
        services.sharing.add(task)
        task.add_done_callback(services.sharing.discard)
    # As in Slack, the answer comes before the share: no `shares`, no message ts.
    return {"files": [_answer(services, file) for file in files]}


async def info(services: Services, call: Call) -> Json:
    """One file, with where it is shared once it is."""
    file = services.workspace.files.get(call.required("file"))
    if file is None:
        raise ApiError("file_not_found")
    return {
        "file": shapes.file(services.workspace, file),
        "comments": [],
        "response_metadata": {"next_cursor": ""},
    }


async def _share(
    services: Services,
    call: Call,
    files: list[StoredFile],
    channels: list[Channel],
    thread_ts: str | None,
) -> None:
    await asyncio.sleep(services.config.share_delay_seconds)
    workspace = services.workspace
    for channel in channels:
        ts = workspace.timestamp()
        blocks = call.json("blocks")
        is_known = thread_ts is not None and thread_ts in channel.messages
        workspace.share_files(
            files,
            Message(
                channel=channel.id,
                ts=ts,
                text=call.text("initial_comment") or "",
                blocks=block_kit.with_ids(blocks, salt=ts) if blocks else [],
                user=workspace.app_user,
                bot_id=workspace.app.bot_id,
                app_id=workspace.app.id,
                thread_ts=thread_ts if is_known else None,
            ),
        )


def _entries(value: Any) -> list[Json]:
    if not isinstance(value, list) or not value:
        raise ApiError("invalid_arguments", messages=["[ERROR] files must be a list of objects"])
    if not all(isinstance(entry, dict) and isinstance(entry.get("id"), str) for entry in value):
        raise ApiError("invalid_arguments", messages=["[ERROR] each file needs an id"])
    return value


def _take(services: Services, entry: Json) -> StoredFile:
    upload = services.tickets.uploads.pop(entry["id"], None)
    if upload is None or upload.content is None:
        raise ApiError("file_not_found")
    file = services.workspace.store_file(
        upload.file_id, upload.name, upload.content, user=services.workspace.app_user
    )
    file.title = entry.get("title") or upload.name
    file.alt_text = upload.alt_text
    return file


def _channels(services: Services, call: Call) -> list[Channel]:
    references = [call.text("channel_id") or "", *(call.text("channels") or "").split(",")]
    references = [reference for reference in references if reference]
    if len(references) > _MAX_CHANNELS:
        raise ApiError("channels_limit_exceeded")
    if call.text("thread_ts") and len(references) > 1:
        raise ApiError("invalid_arguments", messages=["[ERROR] thread_ts needs a single channel"])
    return [channel_for_post(services, reference) for reference in references]


def _answer(services: Services, file: StoredFile) -> Json:
    body = shapes.file(services.workspace, file)
    # The type is worked out after the answer, so it is not known yet.
    return body | {"mimetype": "", "filetype": "", "pretty_type": ""}


HANDLERS = {
    "files.getUploadURLExternal": get_upload_url,
    "files.completeUploadExternal": complete_upload,
    "files.info": info,
}
