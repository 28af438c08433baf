"""Reads Slack's message JSON: its words wherever they are, and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.locales import say
from bot.store.queue import Job

FILE = "slack.file"
# Subtypes of a message event that say something new; the others tell of a message that is there already.
NEW_SUBTYPES = (None, "bot_message", "thread_broadcast", "file_share", "me_message")
_DEEPEST = 8
MOST_FILE_BYTES = 20 * 1024 * 1024
Json = Mapping[str, Any]


def moment(ts: str) -> datetime:
    """The time in a message's ts, to the microsecond; never through a float."""
    seconds, _, micros = ts.partition(".")
    at = datetime.fromtimestamp(int(seconds), UTC)
    return at.replace(microsecond=int((micros or "0")[:6].ljust(6, "0")))


def text_of(message: Json) -> str:
    """A message's own text; that of its attachments and blocks where it has none."""
    text = str(message.get("text") or "").strip()
    if text:
        return text
    lines: list[str] = []
    for attachment in message.get("attachments") or ():
        keys = ("pretext", "title", "text")
        own = [str(attachment[key]) for key in keys if attachment.get(key)]
        for field in attachment.get("fields") or ():
            pair = [str(field[key]) for key in ("title", "value") if field.get(key)]
            own += [": ".join(pair)] if pair else []
        own += _block_lines(attachment.get("blocks") or ())
        lines += own or [str(attachment.get("fallback") or "")]
    lines += _block_lines(message.get("blocks") or ())
    return "\n".join(dict.fromkeys(line for line in lines if line))


def _block_lines(blocks: Sequence[Json]) -> list[str]:
    lines = []
    for block in blocks:
        if block.get("type") == "rich_text":
            lines += [_run_of(part) for part in block.get("elements") or ()]
            continue
        parts = [block.get("text"), *(block.get("fields") or ()), *(block.get("elements") or ())]
        for part in parts:
            value = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(value, str) and value.strip():
                lines.append(value)
    return [line for line in lines if line.strip()]


def _run_of(part: object, depth: int = 0) -> str:
    """A paragraph, list or quotation of rich text as one run of words; people stay as mentions."""
    if not isinstance(part, Mapping) or depth > _DEEPEST:
        return ""
    match part.get("type"):
        case "user":
            return f"<@{part.get('user_id')}>"
        case "emoji":
            return f":{part.get('name')}:"
        case "link":
            return str(part.get("text") or part.get("url") or "")
    if isinstance(part.get("text"), str):
        return str(part["text"])
    between = "\n" if part.get("type") == "rich_text_list" else ""
    return between.join(_run_of(item, depth + 1) for item in part.get("elements") or ())


def files_of(event: Json, incident_id: str) -> list[dict[str, Any]]:
    """The files of a message, each with the name of the blob that its copy will have; None where it is too long."""
    found = []
    for item in event.get("files") or ():
        file_id = str(item.get("id") or "")
        if not file_id:
            continue
        url = item.get("url_private_download") or item.get("url_private")
        size = int(item.get("size") or 0)
        found.append(
            {
                "id": file_id,
                "name": str(item.get("name") or file_id),
                "mimetype": str(item.get("mimetype") or ""),
                "size": size,
                "url": url,
                "blob": f"rca:inc:{incident_id}:blob:thread-{file_id}"
                if url and size <= MOST_FILE_BYTES
                else None,
            }
        )
    return found


def file_words(files: Sequence[Mapping[str, Any]]) -> str:
    """What stands for the text of a message that is only files."""
    names = ", ".join(str(item["name"]) for item in files)
    return say("slack.file_only", names=names).en if names else ""


def copy_job(file: Mapping[str, Any], incident_id: str) -> Job:
    """Copies one file, in a lane of its own: nothing waits for it."""
    return Job(
        kind=FILE,
        lane=f"file:{file['id']}",
        payload={
            "incident": incident_id,
            "url": file["url"],
            "blob": file["blob"],
            "mimetype": file["mimetype"],
        },
    )
