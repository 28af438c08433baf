"""Short answers, so that every command says the common things in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.command import Reply
from bot.domain.text import Localized
from bot.message import Button, Message


def notice(text: Localized, *buttons: Button) -> Reply:
    """One line that only the caller sees."""
    message = Message(view="notice", context={"text": text.to_json()}, buttons=buttons)
    return Reply(message=message)


def shown(view: str, context: Mapping[str, Any], *buttons: Button) -> Reply:
    """A view that only the caller sees."""
    return Reply(message=Message(view=view, context=context, buttons=buttons))


DONE = Reply()
"""Nothing to say: what was done shows in the thread by itself."""
