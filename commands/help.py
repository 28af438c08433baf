"""`/rca help`: the words and their grammar."""

from __future__ import annotations

from collections.abc import Mapping

import commands
from bot.command import Call, Command, Reply, allowed, command
from bot.errors import CommandError, Reason
from bot.jobs.services import Services
from bot.locales import say
from bot.registry import collect
from commands import _line, _words
from commands._may import refused
from commands._reply import shown


@command(
    name="help",
    usage="help [word]",
    en="This list, or the grammar of one word.",
    zh="显示全部命令，或某个命令的用法。",
    needs_incident=False,
)
async def help(call: Call, services: Services) -> Reply:
    """Lists only what the caller may use; of a word that they may not, it says who may."""
    known: Mapping[str, Command] = collect(commands, Command)
    policy = services.settings.policy
    mine = [item for item in known.values() if allowed(policy, call.user, item.permission)]
    typed = _line.read(call.text).head()[0]
    word = _words.known(typed)
    if word in known and known[word] not in mine:
        raise CommandError(refused(policy, known[word].permission), reason=Reason.NOT_FOUND)
    if word and word not in known:
        near = _line.nearest(word, (*known, *_words.CHINESE))
        key = "commands.unknown_word" if near else "commands.unknown_word_plain"
        raise CommandError(say(key, word=typed[:40], near=near or ""), reason=Reason.NOT_FOUND)
    chosen = [known[word]] if word else mine
    return shown(
        "help",
        {
            "commands": [
                {"name": item.name, "usage": item.usage, "summary": item.summary.to_json()}
                for item in chosen
            ],
            "one": len(chosen) == 1,
        },
    )
