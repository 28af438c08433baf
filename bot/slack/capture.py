"""What people say in an incident's thread becomes its record: messages, edits, deletions, reactions, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from bot.domain.incident import Incident
from bot.domain.reaction import MEANINGS, Meaning
from bot.domain.text import Localized
from bot.domain.timeline import Draft, Entry, EntryKind
from bot.errors import DeliveryError, Reason
from bot.incidents.journal import Ledger
from bot.incidents.responding import Via
from bot.jobs.services import Services
from bot.locales import say
from bot.slack.directory import Directory
from bot.slack.reading import (
    MOST_FILE_BYTES,
    copy_job,
    file_words,
    files_of,
    moment,
    text_of,
)
from bot.slack.text import after_mention, command_text, cut, mentions, plain
from bot.slack.web import SlackRefusalError, Web
from bot.store import index, surface
from commands import _line

log = structlog.get_logger(__name__)

MOST_TEXT = 12_000
Json = Mapping[str, Any]


class Capture:
    """Writes thread messages and what happens to them."""

    def __init__(self, services: Services, web: Web, directory: Directory) -> None:
        self._services = services
        self._web = web
        self._directory = directory

    @property
    def team(self) -> str:
        """The workspace that the bot belongs to; empty while unknown."""
        return self._directory.known.team

    async def incident_of(self, channel: str, thread_ts: str | None) -> str | None:
        """The incident that lives in this thread."""
        if thread_ts is None:
            return None
        return await index.incident_of(self._services.store, index.thread_key(channel, thread_ts))

    async def message(self, event: Json, incident_id: str) -> None:
        """Records a message with its own time and address, once, whatever it is told of by."""
        channel, ts = str(event["channel"]), str(event["ts"])
        author = await self._author(event)
        names = await self._directory.names(mentions(str(event.get("text") or "")))
        files = files_of(event, incident_id)
        text = plain(text_of(event), names) or file_words(files)
        identity = self._directory.known
        draft = Draft(
            kind=EntryKind.MESSAGE,
            at=moment(ts),
            text=Localized.verbatim(cut(text, MOST_TEXT)),
            author=author,
            source="slack",
            permalink=identity.permalink(channel, ts, event.get("thread_ts")),
            data={"ts": ts, "files": files},
        )
        step = surface.remember_message(channel, ts, incident_id)
        via = Via(by=author, at=draft.at, key=f"msg:{channel}:{ts}")
        await self._services.store.commit(step, doing="keep a message's place")
        await self._services.responding.write(
            incident_id,
            via,
            lambda _: [draft],
            step="capture",
            jobs=lambda _: [copy_job(item, incident_id) for item in files if item.get("blob")],
        )
        if await surface.is_gone(self._services.store, channel, ts):
            await self._services.journal.withhold(incident_id, ts)
        self._services.wake()

    async def changed(self, event: Json) -> None:
        """An edit: the entry keeps its place and time and shows the newest words."""
        channel = str(event["channel"])
        message = event.get("message") or {}
        ts = str(message.get("ts") or "")
        if message.get("subtype") == "tombstone":
            await self.deleted({"channel": channel, "deleted_ts": ts})
            return
        incident_id = await surface.incident_of_message(self._services.store, channel, ts)
        if incident_id is None:
            thread_ts = message.get("thread_ts")
            incident_id = await self.incident_of(channel, str(thread_ts) if thread_ts else None)
        if incident_id is None:
            return
        if message.get("bot_id") and message.get("bot_id") == self._directory.known.bot:
            return
        ledger = await self._services.journal.load(incident_id)
        entries = [item for item in ledger.entries if item.data.get("ts") == ts]
        if not entries:
            # The edit overtook the message, or the message is older than the incident.
            await self.message({**message, "channel": channel}, incident_id)
            return
        names = await self._directory.names(mentions(str(message.get("text") or "")))
        words = plain(text_of(message), names)
        for entry in entries:
            newest = self._newest(entry, message, words)
            if newest:
                text = Localized.verbatim(cut(newest, MOST_TEXT))
                await self._services.journal.reword(incident_id, entry.seq, text)

    def _newest(self, entry: Entry, message: Json, words: str) -> str | None:
        """The entry's wording after an edit of its message; None where the words were a command's."""
        if entry.kind in (EntryKind.MESSAGE, EntryKind.REACTION):
            return words or None
        if entry.kind is EntryKind.EVIDENCE and entry.data.get("person"):
            rest = after_mention(str(message.get("text") or ""), self._directory.known.user)
            word, _, text = (command_text(rest) if rest else "").partition(" ")
            return _line.read(text).text if word.lower() == "note" else None
        return None

    async def deleted(self, event: Json) -> None:
        """A deletion: the entries stay, every text of the message is erased."""
        channel, ts = str(event["channel"]), str(event.get("deleted_ts") or "")
        step = surface.remember_gone(channel, ts)
        await self._services.store.commit(step, doing="keep a deletion")
        incident_id = await surface.incident_of_message(self._services.store, channel, ts)
        if incident_id is None:
            return
        count = await self._services.journal.withhold(incident_id, ts)
        log.info("slack.withheld", incident=incident_id, entries=count)

    async def reacted(self, event: Json, *, key: str) -> None:
        """One of the five reactions on a thread message, or its end."""
        item = event.get("item") or {}
        meaning = MEANINGS.get(str(event.get("reaction") or "").partition("::")[0])
        if meaning is None or item.get("type") != "message":
            return
        channel, ts = str(item.get("channel") or ""), str(item.get("ts") or "")
        incident_id = await self._incident_of_reacted(channel, ts)
        if incident_id is None:
            return
        user = str(event.get("user") or "")
        await self._directory.names([user])
        at = moment(str(event.get("event_ts") or ts))
        removed = event.get("type") == "reaction_removed"
        via = Via(by=user, at=at, key=key)
        words = "" if removed else await self._words(incident_id, channel, ts)

        def make(incident: Incident) -> Sequence[Draft]:
            return [self._reaction(incident, via, ts, str(event["reaction"]), meaning, words)]

        if not removed:
            await self._services.responding.write(incident_id, via, make, step="reaction")
        else:
            await self._take_back(incident_id, via, ts, meaning, str(event["reaction"]))
        self._services.wake()

    def _reaction(
        self, incident: Incident, via: Via, ts: str, emoji: str, meaning: Meaning, words: str
    ) -> Draft:
        data: dict[str, Any] = {
            "ts": ts,
            "emoji": emoji,
            "meaning": meaning.value,
            "removed": False,
        }
        if meaning is Meaning.ACTION_ITEM:
            data["n"] = len(incident.action_items) + 1
        return Draft(
            kind=EntryKind.REACTION,
            at=via.at,
            text=Localized.verbatim(words),
            author=via.by,
            source="slack",
            data=data,
        )

    async def _take_back(
        self, incident_id: str, via: Via, ts: str, meaning: Meaning, emoji: str
    ) -> None:
        def make(ledger: Ledger) -> Sequence[Draft]:
            standing = _standing(ledger.entries, ts, emoji, via.by)
            if standing is None:
                return []
            text = say("slack.taken_back", meaning=say(f"slack.meaning_{meaning.value}"))
            return [
                Draft(
                    kind=EntryKind.REACTION,
                    at=via.at,
                    text=text,
                    author=via.by,
                    source="slack",
                    corrects=standing.seq,
                    data={
                        "emoji": emoji,
                        "meaning": meaning.value,
                        "removed": True,
                        "target": standing.seq,
                        "n": standing.data.get("n"),
                        "taken_at": standing.at.isoformat(),
                    },
                )
            ]

        await self._services.journal.record(incident_id, make, once=f"{via.key}:reaction")

    async def _incident_of_reacted(self, channel: str, ts: str) -> str | None:
        """By the exact ts only: history would give another message for a reply."""
        known = await surface.incident_of_message(self._services.store, channel, ts)
        if known is not None:
            return known
        root = await self.incident_of(channel, ts)
        if root is not None:
            return root
        found = await self.fetch(channel, ts)
        if found is None:
            return None
        incident_id = await self.incident_of(channel, str(found.get("thread_ts") or ""))
        if incident_id is not None:
            await self.message({**found, "channel": channel}, incident_id)
        return incident_id

    async def fetch(self, channel: str, ts: str) -> Json | None:
        """The message with exactly this ts, or None."""
        try:
            answer = await self._web.call(
                "conversations.replies",
                channel=channel,
                ts=ts,
                oldest=ts,
                latest=ts,
                inclusive=True,
                limit=10,
            )
        except SlackRefusalError as error:
            log.info("slack.fetch", code=error.code)
            return None
        return next((item for item in answer.get("messages") or () if item.get("ts") == ts), None)

    async def backfill(self, channel: str, thread_ts: str) -> None:
        """Records what was said in a thread before the incident began in it: one page, the rest is not guessed."""
        incident_id = await self.incident_of(channel, thread_ts)
        if incident_id is None:
            return
        try:
            answer = await self._web.call(
                "conversations.replies", channel=channel, ts=thread_ts, limit=200
            )
        except SlackRefusalError as error:
            log.warning("slack.backfill", incident=incident_id, code=error.code)
            return
        for item in answer.get("messages") or ():
            if item.get("bot_id") != self._directory.known.bot and item.get("ts"):
                await self.message({**item, "channel": channel}, incident_id)

    async def _words(self, incident_id: str, channel: str, ts: str) -> str:
        """The words that a reaction is about: as recorded, else as Slack has them."""
        ledger = await self._services.journal.load(incident_id)
        for entry in ledger.entries:
            if entry.data.get("ts") == ts and entry.text is not None:
                return entry.text.en
        found = await self.fetch(channel, ts)
        return cut(plain(text_of(found), {}), MOST_TEXT) if found else ""

    async def _author(self, event: Json) -> str:
        user = event.get("user")
        if user:
            await self._directory.names([str(user)])
            return str(user)
        bot = str(event.get("bot_id") or "unknown")
        name = event.get("username")
        if name:
            step = surface.remember_person(bot, str(name))
            await self._services.store.commit(step, doing="keep a name")
        return bot

    async def copy_file(self, payload: Json) -> None:
        """Copies a file of the thread into the store, with the bot's token; it is never made public.

        Raises:
            DeliveryError: not to be had now.
        """
        if await self._services.store.blob(str(payload["blob"])) is not None:
            return
        content, media_type = await self._web.download(str(payload["url"]), MOST_FILE_BYTES)
        # Without a valid token Slack answers a sign-in page with status 200.
        if media_type == "text/html" and "html" not in str(payload.get("mimetype") or ""):
            raise DeliveryError(
                "Slack file download: a sign-in page came instead; check the scope files:read",
                reason=Reason.UNAUTHORISED,
            )
        await self._services.store.put_blob(str(payload["blob"]), content)


def _standing(entries: Sequence[Entry], ts: str, emoji: str, user: str) -> Entry | None:
    """The reaction that is taken back: the newest of this person on this message that still stands."""
    undone = {item.corrects for item in entries if item.corrects is not None}
    for entry in reversed(entries):
        if (
            entry.kind is EntryKind.REACTION
            and entry.data.get("ts") == ts
            and entry.data.get("emoji") == emoji
            and entry.author == user
            and not entry.data.get("removed")
            and entry.seq not in undone
        ):
            return entry
    return None
