"""`/rca help`: the words and their grammar."""

from __future__ import annotations

from collections.abc import Mapping

import commands
from bot.command import Call, Command, Reply, allowed, command
from bot.jobs.services import Services
from bot.registry import collect
from commands import _line
from commands._reply import shown


@command(
    name="help",
    usage="help [word]",
    en="This list, or the grammar of one word.",
    zh="显示全部命令，或某个命令的用法。",
    needs_incident=False,
)
async def help(call: Call, services: Services) -> Reply:
    """Lists only what the caller may use."""
    known: Mapping[str, Command] = collect(commands, Command)
    mine = [
        item
        for item in known.values()
        if allowed(services.settings.policy, call.user, item.permission)
    ]
    word = _line.read(call.text).head()[0]
    chosen = [item for item in mine if item.name == word] or mine
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
