"""The workspace's memory and every change to it; each change is told to the listeners."""

from __future__ import annotations

import itertools
import mimetypes
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.workspace import seed, shapes
from bot.workspace.changes import (
    Change,
    EphemeralPosted,
    EphemeralRemoved,
    FileShared,
    HomeOpened,
    MemberJoined,
    MessageDeleted,
    MessageEdited,
    MessagePosted,
    ReactionChanged,
    ViewsChanged,
)
from bot.workspace.clock import Clock
from bot.workspace.records import (
    App,
    Channel,
    ChannelKind,
    Content,
    Message,
    Reaction,
    Share,
    StoredFile,
    User,
    UserGroup,
    View,
)

Listener = Callable[[Change], None]


@dataclass(slots=True)
class Workspace:
    """One team with one app of our own; in memory, gone with the process."""

    clock: Clock = field(default_factory=Clock)
    app: App = field(default_factory=lambda: seed.OWN_APP)
    team_id: str = seed.TEAM_ID
    base_url: str = "http://127.0.0.1:0"
    revision: int = 0
    users: dict[str, User] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    groups: dict[str, UserGroup] = field(default_factory=dict)
    files: dict[str, StoredFile] = field(default_factory=dict)
    ephemerals: list[Message] = field(default_factory=list)
    stacks: dict[str, list[View]] = field(default_factory=dict)
    homes: dict[str, View] = field(default_factory=dict)
    _listeners: list[Listener] = field(default_factory=list)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _last_microseconds: int = 0

    def __post_init__(self) -> None:
        now = int(self.clock.now())
        self.users = {user.id: user for user in seed.people()}
        self.apps = {app.bot_id: app for app in (self.app, *seed.other_apps())}
        self.channels = {channel.id: channel for channel in seed.channels(now)}
        self.groups = {group.id: group for group in seed.groups()}

    def listen(self, listener: Listener) -> None:
        """Calls `listener` with every change, in order and before the change's caller goes on."""
        self._listeners.append(listener)

    def timestamp(self) -> str:
        """A fresh message id: strictly rising in the whole workspace, hence unique in each channel."""
        self._last_microseconds = max(
            int(self.clock.now() * 1_000_000), self._last_microseconds + 1
        )
        seconds, micros = divmod(self._last_microseconds, 1_000_000)
        return f"{seconds}.{micros:06d}"

    def new_id(self, prefix: str) -> str:
        """An id like Slack's: a letter for the kind, then digits and capitals."""
        return f"{prefix}{next(self._ids):08X}"

    @property
    def app_user(self) -> str:
        """The user that the app posts as."""
        return self.app.user_id or ""

    def find_channel(self, reference: str) -> Channel | None:
        """A channel by id, `#name` or name; a user id means the app's direct messages with them."""
        if reference in self.channels:
            return self.channels[reference]
        if reference in self.users:
            return self.direct(reference)
        name = reference.removeprefix("#")
        return next(
            (c for c in self.channels.values() if c.name == name and c.kind != ChannelKind.DIRECT),
            None,
        )

    def direct(self, user: str) -> Channel:
        """The app's direct messages with a person, opened if need be."""
        for channel in self.channels.values():
            if channel.kind is ChannelKind.DIRECT and channel.with_user == user:
                return channel
        channel = Channel(
            id=self.new_id("D"),
            name=user,
            kind=ChannelKind.DIRECT,
            members={user, self.app_user},
            created=int(self.clock.now()),
            creator=self.app_user,
            with_user=user,
        )
        self.channels[channel.id] = channel
        return channel

    def message(self, channel: str, ts: str) -> Message | None:
        """A message by its channel and ts; ephemeral ones are found too."""
        found = self.channels[channel].messages.get(ts) if channel in self.channels else None
        return found or next(
            (e for e in self.ephemerals if e.channel == channel and e.ts == ts), None
        )

    def replies(self, channel: str, ts: str) -> list[Message]:
        """The replies under a root, oldest first."""
        return self.channels[channel].threads.get(ts, [])

    def post(self, message: Message) -> Message:
        """Adds a message to its channel."""
        channel = self.channels[message.channel]
        channel.messages[message.ts] = message
        if message.is_reply and message.thread_ts is not None:
            channel.threads.setdefault(message.thread_ts, []).append(message)
            if root := channel.messages.get(message.thread_ts):
                root.thread_ts = root.ts
        self._tell(MessagePosted(message=message))
        return message

    def say(
        self,
        user: str,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        is_broadcast: bool = False,
    ) -> Message:
        """A person posts a message."""
        return self.post(
            Message(
                channel=channel,
                ts=self.timestamp(),
                text=text,
                user=user,
                thread_ts=thread_ts,
                subtype="thread_broadcast" if thread_ts and is_broadcast else None,
                client_message_id=str(uuid.uuid4()),
            )
        )

    def post_ephemeral(self, message: Message) -> Message:
        """Shows a message to one person; it can never be read back or edited by the Web API."""
        self.ephemerals.append(message)
        self._tell(EphemeralPosted(message=message))
        return message

    def remove_ephemeral(self, message: Message) -> None:
        """Takes an ephemeral message from its reader's screen."""
        self.ephemerals.remove(message)
        self._tell(
            EphemeralRemoved(channel=message.channel, ts=message.ts, user=message.only_for or "")
        )

    def edit(self, message: Message, content: Content, *, editor: str) -> None:
        """Replaces the parts of a message that `content` names."""
        previous = shapes.message(self, message)
        if content.text is not None:
            message.text = content.text
        if content.blocks is not None:
            message.blocks = content.blocks
        if content.attachments is not None:
            message.attachments = content.attachments
        if content.metadata is not None:
            message.metadata = content.metadata or None
        message.edited_by = editor
        message.edited_ts = self.timestamp()
        self._tell(MessageEdited(message=message, previous=previous))

    def delete(self, message: Message) -> None:
        """Removes a message; a root that has replies stays as a tombstone, as in Slack."""
        channel = self.channels[message.channel]
        previous = shapes.message(self, message)
        if not message.is_reply and self.replies(channel.id, message.ts):
            message.subtype = "tombstone"
            message.text = "This message was deleted."
            message.user, message.bot_id, message.app_id = "USLACKBOT", None, None
            message.username = message.icon_emoji = message.metadata = None
            message.blocks, message.attachments, message.files = [], [], []
            message.reactions = []
            self._tell(MessageEdited(message=message, previous=previous))
            return
        del channel.messages[message.ts]
        if message.is_reply and message.thread_ts is not None:
            channel.threads[message.thread_ts].remove(message)
        self._tell(
            MessageDeleted(
                channel=channel.id, ts=message.ts, thread_ts=message.thread_ts, previous=previous
            )
        )

    def react(self, message: Message, user: str, name: str) -> bool:
        """Puts an emoji on a message; False if that person's is there already."""
        reaction = next((r for r in message.reactions if r.name == name), None)
        if reaction is not None and user in reaction.users:
            return False
        if reaction is None:
            message.reactions.append(Reaction(name=name, users=[user]))
        else:
            reaction.users.append(user)
        self._tell(ReactionChanged(message=message, user=user, name=name, is_added=True))
        return True

    def unreact(self, message: Message, user: str, name: str) -> bool:
        """Takes an emoji off a message; False if that person's was not there."""
        reaction = next((r for r in message.reactions if r.name == name), None)
        if reaction is None or user not in reaction.users:
            return False
        reaction.users.remove(user)
        if not reaction.users:
            message.reactions.remove(reaction)
        self._tell(ReactionChanged(message=message, user=user, name=name, is_added=False))
        return True

    def join(self, channel: Channel, user: str, *, inviter: str | None = None) -> bool:
        """Brings a user into a channel; False if they were in it."""
        if user in channel.members:
            return False
        channel.members.add(user)
        self._tell(MemberJoined(channel=channel.id, user=user, inviter=inviter))
        self.post(
            Message(
                channel=channel.id,
                ts=self.timestamp(),
                user=user,
                subtype="channel_join",
                inviter=inviter,
                text=f"<@{user}> has joined the channel",
            )
        )
        return True

    def store_file(self, file_id: str, name: str, content: bytes, *, user: str) -> StoredFile:
        """Keeps a file's bytes; it is not visible to anyone until shared."""
        file = StoredFile(
            id=file_id,
            name=name,
            title=name,
            user=user,
            created=int(self.clock.now()),
            mimetype=mimetypes.guess_type(name)[0] or "application/octet-stream",
            content=content,
        )
        self.files[file_id] = file
        return file

    def share_files(self, files: list[StoredFile], message: Message) -> Message:
        """Posts a message that carries files, and makes each visible there."""
        message.files = [file.id for file in files]
        for file in files:
            file.shares.append(
                Share(channel=message.channel, ts=message.ts, thread_ts=message.thread_ts)
            )
        self.post(message)
        for file in files:
            self._tell(FileShared(file=file, channel=message.channel, user=file.user))
        return message

    def open_home(self, user: str, tab: str) -> None:
        """A person opens the app's Home or Messages tab."""
        self.direct(user)
        self._tell(HomeOpened(user=user, tab=tab))

    def views_changed(self, user: str) -> None:
        """Tells the listeners that a person sees other modals or another Home tab now."""
        self._tell(ViewsChanged(user=user))

    def mentions(self, text: str) -> set[str]:
        """The users that a text mentions."""
        return set(re.findall(r"<@([A-Z0-9]+)(?:\|[^>]*)?>", text)) & self.users.keys()

    def permalink(self, channel: str, ts: str, thread_ts: str | None = None) -> str:
        """The address of a message; it opens the page at that message."""
        link = f"{self.base_url}/archives/{channel}/p{ts.replace('.', '')}"
        return f"{link}?thread_ts={thread_ts}&cid={channel}" if thread_ts else link

    def _tell(self, change: Change) -> None:
        self.revision += 1
        for listener in self._listeners:
            listener(change)
