"""Finds the word and the incident that are meant, runs the command, and sends what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import structlog

from bot.command import Audience, Call, Command, Reply
from bot.domain.incident import IncidentStatus
from bot.domain.text import Localized
from bot.errors import BotError, CommandError, Reason, StoreError
from bot.incidents.journal import UnknownIncidentError
from bot.jobs import outbox
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Button, Message
from bot.slack.gate import Actor, Door, Gate
from bot.store import index
from bot.store.queue import Job
from commands import _line
from commands._words import CHINESE, split_incident

log = structlog.get_logger(__name__)

_MOST_CHOICES = 5


class Dispatcher:
    """Runs commands for the Slack surface."""

    def __init__(self, services: Services, commands: Mapping[str, Command], gate: Gate) -> None:
        self._services = services
        self._gate = gate
        self._commands = commands

    def knows(self, word: str) -> bool:
        """Whether there is such a word."""
        return word in self._commands

    async def answer(self, call: Call, response_url: str | None) -> None:
        """Runs the call and queues its reply; whatever goes wrong becomes one line for the caller.

        Raises:
            StoreError: Redis is not reachable; the same call may be run again.
        """
        try:
            reply = await self._run(call)
        except StoreError:
            raise
        except CommandError as error:
            reply = _error(error.text)
        except UnknownIncidentError:
            reply = _error(say("commands.unknown_incident", incident=call.incident or "INC-?"))
        except BotError as error:
            log.warning("command.failed", word=call.word, error=str(error))
            reply = _error(say("commands.failed", why=str(error)))
        await self._send(call, reply, response_url)

    async def _run(self, call: Call) -> Reply:
        named, text = split_incident(call.text)
        if named is not None:
            if await index.summary_of(self._services.store, named) is None:
                raise CommandError(say("commands.unknown_incident", incident=named))
            call = replace(call, incident=named, text=text)
        command = self._commands.get(call.word)
        if command is None:
            return _error(self._unknown(call.word))
        found: list[index.Summary] = []
        is_about_one = command.needs_incident or command.wants_incident or command.permission
        if call.incident is None and is_about_one:
            found = await self._open_here(call.channel)
        # A refusal is recorded in the channel's only open incident, too.
        placed = replace(call, incident=found[0].id) if len(found) == 1 else call
        actor = Actor.of(placed)
        if refusal := await self._gate.refusal(Door.WORD, call.word, actor, command.permission):
            return _error(refusal)
        if command.needs_incident and placed.incident is None:
            if found:
                return _choice(call, found)
            raise CommandError(say("commands.no_incident"))
        if command.needs_incident or command.wants_incident:
            call = placed
        try:
            return await command.run(call, self._services)
        except CommandError as error:
            if error.reason is Reason.UNAUTHORISED:
                await self._gate.note(Actor.of(call), f"{Door.WORD.value} {call.word}")
            raise

    def _unknown(self, word: str) -> Localized:
        near = _line.nearest(word, (*self._commands, *CHINESE))
        if near is None:
            return say("commands.unknown_word_plain", word=word[:40])
        return say("commands.unknown_word", word=word[:40], near=near)

    async def _open_here(self, channel: str) -> list[index.Summary]:
        newest = await index.summaries(self._services.store, before=None, limit=200)
        return [
            item
            for item in newest
            if item.channel == channel and item.status != IncidentStatus.RESOLVED.value
        ]

    async def _send(self, call: Call, reply: Reply, response_url: str | None) -> None:
        if reply.message is None:
            return
        once = f"{call.key}:reply"
        if reply.audience is Audience.THREAD and call.incident is not None:
            incident = (await self._services.journal.load(call.incident)).incident
            await self._services.outbox.send(outbox.thread_post(incident, reply.message), once=once)
            return
        await self._services.outbox.send(private(call, reply.message, response_url), once=once)


def private(call: Call, message: Message, response_url: str | None) -> Job:
    """An answer that only the caller sees, in the caller's language."""
    job = outbox.private_post(
        call.channel,
        call.user,
        message,
        thread_ts=call.thread_ts,
        response_url=response_url,
    )
    payload = {**job.payload, "incident": call.incident, "locale": call.locale.value}
    return replace(job, payload=payload)


def _error(text: Localized) -> Reply:
    return Reply(message=Message(view="error", context={"text": text.to_json()}))


def _choice(call: Call, found: list[index.Summary]) -> Reply:
    buttons = tuple(
        Button(
            action_id="rca.choice",
            label=Localized.verbatim(f"{item.id} · {item.title}"),
            payload={
                "word": call.word,
                "text": call.text,
                "incident": item.id,
                "payload": dict(call.payload),
            },
        )
        for item in found[:_MOST_CHOICES]
    )
    text = say("commands.which_incident")
    message = Message(view="choice", context={"text": text.to_json()}, buttons=buttons)
    return Reply(message=message)
