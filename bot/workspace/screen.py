"""What the people in the workspace see, as JSON for the page, for scripts and for tests; live over server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from bot.workspace import shapes
from bot.workspace.changes import (
    Change,
    EphemeralPosted,
    EphemeralRemoved,
    FileShared,
    MemberJoined,
    MessageDeleted,
    MessageEdited,
    MessagePosted,
    ReactionChanged,
    ViewsChanged,
)
from bot.workspace.records import Json, Message
from bot.workspace.services import Services
from bot.workspace.traffic import Exchange

_QUEUE = 500
_KEEPALIVE_SECONDS = 15.0


class Screen:
    """Snapshots of the workspace, and the stream of what changes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._workspace = services.workspace
        self._readers: set[asyncio.Queue[Json]] = set()
        self._changed = asyncio.Event()
        services.workspace.listen(self._on_change)
        services.traffic.listen(self._on_traffic)
        services.subscription.listen(lambda: self._send({"kind": "reload"}))

    def snapshot(self) -> Json:
        """Everything."""
        workspace = self._workspace
        config = self._services.config
        return {
            "revision": workspace.revision,
            "now": workspace.clock.now(),
            "team": {"id": workspace.team_id, "url": workspace.base_url},
            "app": {
                "id": workspace.app.id,
                "bot_id": workspace.app.bot_id,
                "user": workspace.app_user,
                "name": workspace.app.name,
            },
            "apps": [
                {"bot_id": app.bot_id, "name": app.name, "emoji": app.emoji}
                for app in workspace.apps.values()
            ],
            "users": [
                {
                    "id": user.id,
                    "name": user.name,
                    "real_name": user.real_name,
                    "title": user.title,
                    "is_bot": user.bot_id is not None,
                    "tz": user.timezone,
                    "locale": user.locale,
                }
                for user in workspace.users.values()
            ],
            "channels": [
                {
                    "id": channel.id,
                    "name": channel.name,
                    "kind": channel.kind.value,
                    "topic": channel.topic,
                    "members": sorted(channel.members),
                    "with_user": channel.with_user,
                }
                for channel in workspace.channels.values()
            ],
            "groups": [
                {"id": group.id, "handle": group.handle, "users": group.users}
                for group in workspace.groups.values()
            ],
            "messages": self.messages(),
            "views": {user: self.views(user) for user in workspace.stacks},
            "homes": {user: self.home(user) for user in workspace.homes},
            "is_delivering": self._services.subscription.is_on,
            "commands": list(config.commands),
            "shortcuts": [
                {"callback_id": shortcut.callback_id, "name": shortcut.name}
                for shortcut in config.shortcuts
            ],
        }

    def messages(
        self,
        *,
        channel: str | None = None,
        thread_ts: str | None = None,
        user: str | None = None,
    ) -> list[Json]:
        """Messages in the order of their ts: all, of a channel, or of a thread with its root.

        user: adds what only this person sees; without one, every ephemeral message is there with `only_for`.
        """
        found = self._workspace.find_channel(channel) if channel else None
        if channel and found is None:
            return []
        channels = [found] if found else list(self._workspace.channels.values())
        records = [message for one in channels for message in one.messages.values()]
        records += [
            message
            for message in self._workspace.ephemerals
            if (found is None or message.channel == found.id)
            and (user is None or message.only_for == user)
        ]
        if thread_ts:
            records = [m for m in records if thread_ts in (m.ts, m.thread_ts)]
        return [self.message(record) for record in sorted(records, key=lambda m: m.ts)]

    def message(self, record: Message) -> Json:
        """A message with its channel and, if ephemeral, its one reader."""
        body = shapes.message(self._workspace, record)
        body["channel"] = record.channel
        if record.only_for:
            body["only_for"] = record.only_for
        return body

    def views(self, user: str) -> list[Json]:
        """A person's modals, the top one last."""
        return [shapes.view(self._workspace, v) for v in self._workspace.stacks.get(user, [])]

    def home(self, user: str) -> Json | None:
        """A person's Home tab, if the app has published one."""
        home = self._workspace.homes.get(user)
        return shapes.view(self._workspace, home) if home else None

    async def changed_since(self, revision: int, *, timeout_seconds: float) -> None:
        """Returns once the workspace has moved past `revision`, or after the time is up."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._workspace.revision <= revision:
                    await self._changed.wait()
        except TimeoutError:
            return

    async def stream(self) -> AsyncIterator[str]:
        """Server-sent events: one JSON object per change; `reload` when the reader has fallen behind."""
        queue: asyncio.Queue[Json] = asyncio.Queue(_QUEUE)
        self._readers.add(queue)
        try:
            yield _frame({"kind": "hello", "revision": self._workspace.revision})
            while True:
                try:
                    async with asyncio.timeout(_KEEPALIVE_SECONDS):
                        note = await queue.get()
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if note["kind"] == "stop":
                    return
                yield _frame(note)
        finally:
            self._readers.discard(queue)

    def stop(self) -> None:
        """Ends every stream."""
        self._send({"kind": "stop"})

    def _on_change(self, change: Change) -> None:
        waiting, self._changed = self._changed, asyncio.Event()
        waiting.set()
        if not self._readers:
            return
        for note in self._notes(change):
            self._send(note)

    def _on_traffic(self, exchange: Exchange) -> None:
        if self._readers:
            self._send({"kind": "traffic", "exchange": exchange.to_json()})

    def _send(self, note: Json) -> None:
        for queue in self._readers:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                note = {"kind": "reload"}
            queue.put_nowait(note)

    def _notes(self, change: Change) -> list[Json]:
        workspace = self._workspace
        match change:
            case MessagePosted(message=m) | MessageEdited(message=m) | ReactionChanged(message=m):
                return self._message_notes(m)
            case EphemeralPosted(message=m):
                return [{"kind": "message", "message": self.message(m)}]
            case EphemeralRemoved(channel=channel, ts=ts):
                return [{"kind": "deleted", "channel": channel, "ts": ts}]
            case MessageDeleted(channel=channel, ts=ts, thread_ts=thread_ts):
                notes: list[Json] = [{"kind": "deleted", "channel": channel, "ts": ts}]
                if thread_ts and (root := workspace.message(channel, thread_ts)):
                    notes.append({"kind": "message", "message": self.message(root)})
                return notes
            case ViewsChanged(user=user):
                return [
                    {
                        "kind": "views",
                        "user": user,
                        "views": self.views(user),
                        "home": self.home(user),
                    }
                ]
            case MemberJoined():
                return [{"kind": "reload"}]
            case FileShared(file=file, channel=channel):
                share = next(s for s in reversed(file.shares) if s.channel == channel)
                message = workspace.message(channel, share.ts)
                return self._message_notes(message) if message else []
            case _:
                return []

    def _message_notes(self, message: Message) -> list[Json]:
        notes: list[Json] = [{"kind": "message", "message": self.message(message)}]
        if message.is_reply and message.thread_ts:
            root = self._workspace.message(message.channel, message.thread_ts)
            if root is not None:
                notes.append({"kind": "message", "message": self.message(root)})
        return notes


def _frame(note: Json) -> str:
    return f"data: {json.dumps(note, ensure_ascii=False)}\n\n"
