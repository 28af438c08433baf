"""What a workspace holds: people, apps, channels, messages, files, views.

These records change in place: they are the state of a server, not values that travel. Block Kit, attachments
and views stay the JSON that Slack defines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class ChannelKind(StrEnum):
    """Who sees a channel; the value is Slack's `channel_type` in events."""

    PUBLIC = "channel"
    PRIVATE = "group"
    DIRECT = "im"


@dataclass(slots=True, kw_only=True)
class User:
    """A person, or the user that an app posts as."""

    id: str
    name: str
    real_name: str
    title: str = ""
    timezone: str = "Asia/Shanghai"
    timezone_offset_seconds: int = 28_800
    locale: str = "en-US"
    email: str | None = None
    is_admin: bool = False
    bot_id: str | None = None
    app_id: str | None = None


@dataclass(slots=True, kw_only=True)
class App:
    """An installed app; `user_id` is None for one that posts by an incoming webhook."""

    id: str
    bot_id: str
    name: str
    user_id: str | None = None
    emoji: str = ":robot_face:"


@dataclass(slots=True, kw_only=True)
class Reaction:
    """One emoji on a message and who put it there, in order."""

    name: str
    users: list[str]


@dataclass(slots=True, kw_only=True)
class Message:
    """One message; `ts` is its id within the channel and is never a number."""

    channel: str
    ts: str
    text: str = ""
    user: str | None = None
    bot_id: str | None = None
    app_id: str | None = None
    username: str | None = None
    icon_emoji: str | None = None
    subtype: str | None = None
    thread_ts: str | None = None
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    metadata: Json | None = None
    files: list[str] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    edited_by: str | None = None
    edited_ts: str | None = None
    client_message_id: str | None = None
    only_for: str | None = None
    inviter: str | None = None

    @property
    def is_reply(self) -> bool:
        """Whether it hangs under another message."""
        return self.thread_ts is not None and self.thread_ts != self.ts

    @property
    def is_in_channel(self) -> bool:
        """Whether it shows in the channel itself: a root, or a reply that was also sent there."""
        return not self.is_reply or self.subtype == "thread_broadcast"


@dataclass(slots=True, kw_only=True)
class Channel:
    """A conversation. `messages` is keyed by ts in order, `threads` holds the replies under each root's ts."""

    id: str
    name: str
    kind: ChannelKind = ChannelKind.PUBLIC
    members: set[str] = field(default_factory=set)
    topic: str = ""
    purpose: str = ""
    created: int = 0
    creator: str = ""
    is_archived: bool = False
    with_user: str | None = None
    messages: dict[str, Message] = field(default_factory=dict)
    threads: dict[str, list[Message]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Where a file was shared."""

    channel: str
    ts: str
    thread_ts: str | None


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A file; it has no share until the asynchronous share has happened, as in Slack."""

    id: str
    name: str
    title: str
    user: str
    created: int
    mimetype: str
    content: bytes
    alt_text: str | None = None
    shares: list[Share] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class UserGroup:
    """A group that can be mentioned as a whole."""

    id: str
    handle: str
    name: str
    users: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class View:
    """A modal on a user's stack or a Home tab; `body` is what the app sent."""

    id: str
    user: str
    body: Json
    hash: str
    root_view_id: str
    previous_view_id: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a message says; None leaves a part as it is when a message is edited."""

    text: str | None = None
    blocks: list[Json] | None = None
    attachments: list[Json] | None = None
    metadata: Json | None = None
