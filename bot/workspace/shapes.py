"""Slack's JSON for what the workspace holds."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from bot.workspace.records import App, Channel, ChannelKind, Json, Message, StoredFile, User, View

if TYPE_CHECKING:
    # The state tells its listeners what a message looked like before, so it needs these shapes first.
    from bot.workspace.state import Workspace

_PRETTY = {
    "png": "PNG",
    "jpg": "JPEG",
    "svg": "SVG",
    "pdf": "PDF",
    "md": "Markdown",
    "html": "HTML",
    "json": "JSON",
    "csv": "CSV",
    "txt": "Plain Text",
}


def message(workspace: Workspace, record: Message, *, with_metadata: bool = True) -> Json:
    """A message as history, replies and events carry it, without its channel."""
    body: Json = {"type": "message", "ts": record.ts, "text": record.text}
    if record.subtype:
        body["subtype"] = record.subtype
    if record.user:
        body["user"] = record.user
    if record.user and record.subtype != "tombstone":
        body["team"] = workspace.team_id
    body.update(_author(workspace, record))
    optional = {
        "client_msg_id": record.client_message_id,
        "inviter": record.inviter,
        "blocks": record.blocks,
        "attachments": record.attachments,
        "files": [file(workspace, workspace.files[file_id]) for file_id in record.files],
        "metadata": record.metadata if with_metadata else None,
    }
    body.update({key: value for key, value in optional.items() if value})
    if record.edited_ts:
        body["edited"] = {"user": record.edited_by, "ts": record.edited_ts}
    if record.reactions:
        body["reactions"] = reactions(record)
    if record.subtype == "tombstone":
        body["hidden"] = True
    if record.only_for:
        body["is_ephemeral"] = True
    body.update(_thread(workspace, record))
    return body


def _author(workspace: Workspace, record: Message) -> Json:
    body: Json = {}
    if record.bot_id:
        body["bot_id"] = record.bot_id
    if record.app_id and record.subtype != "bot_message":
        body["app_id"] = record.app_id
        body["bot_profile"] = bot_profile(workspace, workspace.apps[record.bot_id or ""])
    if record.username:
        body["username"] = record.username
    if record.icon_emoji:
        body["icons"] = {"emoji": record.icon_emoji}
    return body


def _thread(workspace: Workspace, record: Message) -> Json:
    channel = workspace.channels[record.channel]
    if record.is_reply:
        body: Json = {"thread_ts": record.thread_ts}
        root = channel.messages.get(record.thread_ts or "")
        if root is not None and root.user:
            body["parent_user_id"] = root.user
        if root is not None and record.subtype == "thread_broadcast":
            body["root"] = message(workspace, root)
        return body
    under = workspace.replies(channel.id, record.ts) if record.thread_ts == record.ts else []
    if not under:
        return {}
    people = list(dict.fromkeys(reply.user or reply.bot_id or "" for reply in under))
    return {
        "thread_ts": record.ts,
        "reply_count": len(under),
        "reply_users_count": len(people),
        "reply_users": people,
        "latest_reply": under[-1].ts,
        "subscribed": False,
    }


def reactions(record: Message) -> list[Json]:
    """The reactions of a message."""
    return [
        {"name": r.name, "users": list(r.users), "count": len(r.users)} for r in record.reactions
    ]


def bot_profile(workspace: Workspace, app: App) -> Json:
    """The profile that a message of an app carries."""
    return {
        "id": app.bot_id,
        "app_id": app.id,
        "name": app.name,
        "deleted": False,
        "updated": 1_700_000_000,
        "icons": {"image_36": "", "image_48": "", "image_72": ""},
        "team_id": workspace.team_id,
    }


def user(workspace: Workspace, record: User, *, with_locale: bool = False) -> Json:
    """A user as users.info and users.list carry it."""
    profile: Json = {
        "real_name": record.real_name,
        "real_name_normalized": record.real_name,
        "display_name": record.name,
        "display_name_normalized": record.name,
        "title": record.title,
        "team": workspace.team_id,
        "status_text": "",
        "status_emoji": "",
        "image_48": "",
    }
    if record.email:
        profile["email"] = record.email
    if record.bot_id:
        profile |= {"bot_id": record.bot_id, "api_app_id": record.app_id}
    body: Json = {
        "id": record.id,
        "team_id": workspace.team_id,
        "name": record.name,
        "real_name": record.real_name,
        "deleted": False,
        "is_bot": record.bot_id is not None,
        "is_app_user": False,
        "is_admin": record.is_admin,
        "is_owner": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "tz": record.timezone,
        "tz_label": record.timezone,
        "tz_offset": record.timezone_offset_seconds,
        "updated": 1_700_000_000,
        "profile": profile,
    }
    if with_locale:
        body["locale"] = record.locale
    return body


def channel(workspace: Workspace, record: Channel, *, with_count: bool = False) -> Json:
    """A conversation as conversations.info and conversations.list carry it."""
    body: Json = {
        "id": record.id,
        "created": record.created,
        "creator": record.creator,
        "is_archived": record.is_archived,
        "is_channel": record.kind is ChannelKind.PUBLIC,
        "is_group": record.kind is ChannelKind.PRIVATE,
        "is_im": record.kind is ChannelKind.DIRECT,
        "is_mpim": False,
        "is_private": record.kind is not ChannelKind.PUBLIC,
        "is_member": workspace.app_user in record.members,
        "is_org_shared": False,
        "is_ext_shared": False,
        "is_shared": False,
        "updated": record.created * 1000,
        "context_team_id": workspace.team_id,
    }
    if record.kind is ChannelKind.DIRECT:
        body["user"] = record.with_user
        return body
    body |= {
        "name": record.name,
        "name_normalized": record.name,
        "topic": {"value": record.topic, "creator": record.creator, "last_set": record.created},
        "purpose": {"value": record.purpose, "creator": record.creator, "last_set": record.created},
        "previous_names": [],
    }
    if with_count:
        body["num_members"] = len(record.members)
    return body


def file(workspace: Workspace, record: StoredFile) -> Json:
    """A file as files.info and messages carry it; where it is shared comes with the share."""
    suffix = PurePath(record.name).suffix.lstrip(".").lower() or "binary"
    name = quote(record.name)
    path = f"{workspace.base_url}/files-pri/{workspace.team_id}-{record.id}"
    public: Json = {}
    private: Json = {}
    for share in record.shares:
        kind = workspace.channels[share.channel].kind
        entry: Json = {"ts": share.ts, "channel_name": workspace.channels[share.channel].name}
        if share.thread_ts:
            entry["thread_ts"] = share.thread_ts
        side = public if kind is ChannelKind.PUBLIC else private
        side.setdefault(share.channel, []).append(entry)
    body: Json = {
        "id": record.id,
        "created": record.created,
        "timestamp": record.created,
        "name": record.name,
        "title": record.title,
        "mimetype": record.mimetype,
        "filetype": suffix,
        "pretty_type": _PRETTY.get(suffix, suffix.upper()),
        "user": record.user,
        "username": "",
        "editable": False,
        "size": len(record.content),
        "mode": "hosted",
        "is_external": False,
        "external_type": "",
        "is_public": bool(public),
        "public_url_shared": False,
        "display_as_bot": False,
        "url_private": f"{path}/{name}",
        "url_private_download": f"{path}/download/{name}",
        "permalink": f"{workspace.base_url}/files/{record.user}/{record.id}/{name}",
        "permalink_public": "",
        "channels": list(public),
        "groups": [c for c in private if workspace.channels[c].kind is ChannelKind.PRIVATE],
        "ims": [c for c in private if workspace.channels[c].kind is ChannelKind.DIRECT],
        "comments_count": 0,
        "is_starred": False,
        "has_rich_preview": False,
        "file_access": "visible",
    }
    if record.alt_text:
        body["alt_txt"] = record.alt_text
    shares = {key: value for key, value in (("public", public), ("private", private)) if value}
    if shares:
        body["shares"] = shares
    return body


def view(workspace: Workspace, record: View, *, state: Json | None = None) -> Json:
    """A view as views.* answers and payloads carry it."""
    body = record.body
    return {
        "id": record.id,
        "team_id": workspace.team_id,
        "type": body["type"],
        "blocks": body["blocks"],
        "private_metadata": body.get("private_metadata", ""),
        "callback_id": body.get("callback_id", ""),
        "external_id": body.get("external_id", ""),
        "state": {"values": state or {}},
        "hash": record.hash,
        "title": body.get("title", {"type": "plain_text", "text": "Home", "emoji": True}),
        "clear_on_close": body.get("clear_on_close", False),
        "notify_on_close": body.get("notify_on_close", False),
        "close": body.get("close"),
        "submit": body.get("submit"),
        "previous_view_id": record.previous_view_id,
        "root_view_id": record.root_view_id,
        "app_id": workspace.app.id,
        "app_installed_team_id": workspace.team_id,
        "bot_id": workspace.app.bot_id,
    }
