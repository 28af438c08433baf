"""The five reactions on thread messages: each an entry that can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.domain.incident import Incident
from bot.domain.reaction import MEANINGS, Meaning
from bot.domain.text import Localized
from bot.domain.timeline import Draft, Entry, EntryKind
from bot.incidents.journal import Ledger
from bot.incidents.responding import Via
from bot.jobs.services import Services
from bot.locales import say
from bot.slack.capture import MOST_TEXT, Capture
from bot.slack.directory import Directory
from bot.slack.gate import Actor, Door, Gate
from bot.slack.reading import Json, moment, text_of
from bot.slack.text import cut, plain
from bot.store import surface


class Reactions:
    """Writes what reactions say about messages."""

    def __init__(
        self, services: Services, directory: Directory, capture: Capture, gate: Gate
    ) -> None:
        self._services = services
        self._gate = gate
        self._directory = directory
        self._capture = capture

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
        removed = event.get("type") == "reaction_removed"
        if not removed and await surface.is_gone(self._services.store, channel, ts):
            # There are no words left that it could be about: a hypothesis without a title helps nobody.
            return
        user = str(event.get("user") or "")
        await self._directory.names([user])
        at = moment(str(event.get("event_ts") or ts))
        actor = Actor(user=user, at=at, key=key, incident=incident_id)
        if await self._gate.refusal(Door.REACTION, str(event["reaction"]), actor):
            return
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
        root = await self._capture.incident_of(channel, ts)
        if root is not None:
            return root
        found = await self._capture.fetch(channel, ts)
        if found is None:
            return None
        incident_id = await self._capture.incident_of(channel, str(found.get("thread_ts") or ""))
        if incident_id is not None:
            await self._capture.message({**found, "channel": channel}, incident_id)
        return incident_id

    async def _words(self, incident_id: str, channel: str, ts: str) -> str:
        """The words that a reaction is about: as recorded, else as Slack has them."""
        ledger = await self._services.journal.load(incident_id)
        for entry in ledger.entries:
            if entry.data.get("ts") == ts and entry.text is not None:
                return entry.text.en
        found = await self._capture.fetch(channel, ts)
        return cut(plain(text_of(found), {}), MOST_TEXT) if found else ""


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
