"""The Web API methods, one module per family."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from bot.workspace.call import Call
from bot.workspace.methods import chat, conversations, directory, files, reactions, views
from bot.workspace.records import Json
from bot.workspace.services import Services

Handler = Callable[[Services, Call], Awaitable[Json]]


def handlers() -> Mapping[str, Handler]:
    """Every method that the workspace answers, by name."""
    found: dict[str, Handler] = {}
    for family in (chat, conversations, directory, files, reactions, views):
        found |= family.HANDLERS
    return found
