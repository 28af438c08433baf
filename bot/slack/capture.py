"""What people say in an incident's thread becomes its record: messages, edits, deletions, reactions, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from bot.domain.text import Localized
from bot.domain.timeline import Draft, Entry, EntryKind
from bot.errors import DeliveryError, Reason
from bot.incidents.responding import Via
from bot.jobs import delivering
from bot.jobs.services import Services
from bot.slack.directory import Directory
from bot.slack.reading import (
    MOST_FILE_BYTES,
    copy_job,
    file_words,
    files_of,
    moment,
    text_of,
)
from bot.slack.text import after_mention, cut, mentions, plain, prose_text
from bot.slack.web import SlackRefusalError, Web
from bot.store import index, surface
from commands import _line
from commands._words import split_incident, split_word

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
            if not (event.get("previous_message") or {}).get("bot_id"):
                await self.deleted({"channel": channel, "deleted_ts": ts})
            # An alert's words are the alert's: no person takes them back by removing the message.
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
            newest = self._newest(entry, message, words, names)
            if newest:
                text = Localized.verbatim(cut(newest, MOST_TEXT))
                await self._services.journal.reword(incident_id, entry.seq, text)

    def _newest(
        self, entry: Entry, message: Json, words: str, names: Mapping[str, str]
    ) -> str | None:
        """The entry's wording after an edit of its message; None where the words were a command's."""
        if entry.kind in (EntryKind.MESSAGE, EntryKind.REACTION):
            return words or None
        if entry.kind is EntryKind.EVIDENCE and entry.data.get("person"):
            rest = after_mention(str(message.get("text") or ""), self._directory.known.user)
            word, text = split_word(prose_text(rest, names)) if rest else ("", "")
            return _line.said(split_incident(text)[1]) if word == "note" else None
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
        if count:
            await delivering.renew(self._services, incident_id, once=f"gone:{channel}:{ts}")

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

    async def _author(self, event: Json) -> str:
        user = event.get("user")
        if user:
            await self._directory.names([str(user)])
            return str(user)
        bot = str(event.get("bot_id") or "unknown")
        name = event.get("username") or (event.get("bot_profile") or {}).get("name")
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
