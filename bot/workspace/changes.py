"""What just happened in the workspace, for whoever tells the app or the page about it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.workspace.records import Json, Message, StoredFile


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePosted:
    """A new message, seen by everyone in the channel."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralPosted:
    """A message for one person's eyes."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class EphemeralRemoved:
    """An ephemeral message was replaced or taken away."""

    channel: str
    ts: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdited:
    """A message with new content; `previous` is its JSON before."""

    message: Message
    previous: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeleted:
    """A message that is gone; `previous` is its JSON."""

    channel: str
    ts: str
    thread_ts: str | None
    previous: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionChanged:
    """An emoji put on a message or taken off."""

    message: Message
    user: str
    name: str
    is_added: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberJoined:
    """Somebody came into a channel."""

    channel: str
    user: str
    inviter: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShared:
    """A file became visible in a channel."""

    file: StoredFile
    channel: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeOpened:
    """A person looks at the app's Home or Messages tab."""

    user: str
    tab: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsChanged:
    """A person's modals or Home tab changed."""

    user: str


Change = (
    MessagePosted
    | EphemeralPosted
    | EphemeralRemoved
    | MessageEdited
    | MessageDeleted
    | ReactionChanged
    | MemberJoined
    | FileShared
    | HomeOpened
    | ViewsChanged
)
