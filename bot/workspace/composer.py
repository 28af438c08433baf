"""What Slack makes of the words that a person types."""

from __future__ import annotations

import re

from bot.workspace.records import ChannelKind
from bot.workspace.state import Workspace

_KEPT = re.compile(
    r"<(?:[@#][A-Z0-9]+(?:\|[^<>]*)?|!(?:here|channel|everyone|subteam\^[A-Z0-9]+)|https?://[^\s<>]+)>"
)
_URL = re.compile(r"https?://[^\s<>|]+[^\s<>|.,;:!?)\]'\"]")
_NAME = re.compile(r"(?<![\w<@#])([@#])([\w.-]*\w)")


def as_message(workspace: Workspace, text: str) -> str:
    """Escapes `&`, `<`, `>`, and turns names and addresses into Slack's tokens.

    Tokens that are already there (`<@U0SRE>`) stay, so that a script may use ids.
    """
    parts: list[str] = []
    end = 0
    for token in _KEPT.finditer(text):
        parts += [_plain(workspace, text[end : token.start()]), token.group()]
        end = token.end()
    parts.append(_plain(workspace, text[end:]))
    return "".join(parts)


def as_command(workspace: Workspace, text: str) -> str:
    """Turns `@name` and `#channel` into `<@U…|name>` and `<#C…|name>`, as an app with `should_escape` gets them."""

    def token(match: re.Match[str]) -> str:
        sigil, name = match.groups()
        found = _id_of(workspace, sigil, name)
        return match.group() if found is None else f"<{sigil}{found}|{name}>"

    return _NAME.sub(token, text)


def _plain(workspace: Workspace, text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    linked = _URL.sub(lambda match: f"<{match.group()}>", escaped)

    def token(match: re.Match[str]) -> str:
        sigil, name = match.groups()
        found = _id_of(workspace, sigil, name)
        if found is None:
            return match.group()
        return f"<@{found}>" if sigil == "@" else f"<#{found}|{name}>"

    return "".join(
        part if part.startswith("<http") else _NAME.sub(token, part)
        for part in re.split(r"(<https?://[^>]*>)", linked)
    )


def _id_of(workspace: Workspace, sigil: str, name: str) -> str | None:
    if sigil == "@":
        return next((user.id for user in workspace.users.values() if user.name == name), None)
    return next(
        (
            channel.id
            for channel in workspace.channels.values()
            if channel.name == name and channel.kind is not ChannelKind.DIRECT
        ),
        None,
    )
