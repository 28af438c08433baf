"""How much the bot says unasked in a channel: `quiet`, `normal` or `chatty`, as the channel's settings say.

| level | says |
| --- | --- |
| quiet | the anchor, questions and steps, rankings, follow-ups, and whatever a person asked for |
| normal | also what each source gave, similar incidents, and charts of its own accord |
| chatty | also each alert that fires, flaps or is over, as a line in the thread |

What is not said is on record all the same: timeline, report and anchor know it.
"""

from __future__ import annotations

from enum import StrEnum

from bot.domain.timeline import SYSTEM_AUTHOR
from bot.message import Message
from bot.settings import Settings

# Views that inform and ask nothing; with `by`: of a person, they answer one.
_UNASKED = frozenset({"evidence", "chart", "similar"})


class Verbosity(StrEnum):
    """The levels of `RCA_CONFIG`."""

    QUIET = "quiet"
    NORMAL = "normal"
    CHATTY = "chatty"


def level_of(settings: Settings, channel: str) -> Verbosity:
    """A channel's level; normal where nothing is set."""
    entry = settings.channel(channel)
    return Verbosity(entry.verbosity) if entry else Verbosity.NORMAL


def is_said(settings: Settings, channel: str, message: Message) -> bool:
    """Whether a message of the bot's belongs into a channel's threads."""
    if level_of(settings, channel) is not Verbosity.QUIET or message.view not in _UNASKED:
        return True
    return str(message.context.get("by") or SYSTEM_AUTHOR) != SYSTEM_AUTHOR
