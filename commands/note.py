"""`/rca note`: an observation, kept as a person's evidence."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice

USAGE = "note TEXT…"
# What a message of the thread may have, too.
MOST_TEXT = 12_000


@command(
    name="note",
    usage=USAGE,
    en="Record an observation as evidence.",
    zh="记录一条观察，作为证据。",
)
async def note(call: Call, services: Services) -> Reply:
    """Records the words as they are; a deleted message takes its note with it."""
    text = _line.shortened(_line.said(call.text), MOST_TEXT)
    if not text:
        raise _line.wrong(USAGE)
    await services.responding.note(_line.incident_id(call), text, _line.via(call))
    services.wake()
    return notice(say("commands.noted"))
