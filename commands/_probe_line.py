"""What a `/rca probe` line names: nodes, arguments, the service."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from bot.domain.text import listed
from bot.errors import CommandError, Reason
from bot.jobs.services import Services
from bot.locales import say
from commands import _line, _typed

MOST_NODES = 256
_BETWEEN = re.compile(r"[\s,;、]+")


def named_nodes(text: str, services: Services, usage: str) -> tuple[str, ...]:
    """The nodes of a list as the inventory spells them; `all` is every one, up to `MOST_NODES`.

    Raises:
        CommandError: one that the inventory does not have, or none.
    """
    known = tuple(services.inventory.nodes)
    if text.lower() in ("all", "全部"):
        if not known:
            raise CommandError(say("commands.no_nodes"), reason=Reason.NOT_FOUND)
        return known[:MOST_NODES]
    spelled = {name.lower(): name for name in known}
    parts = [part for part in _BETWEEN.split(text) if part]
    named = tuple(dict.fromkeys(spelled.get(part.lower(), part) for part in parts))
    for name in named:
        if name not in known:
            near = _line.nearest(name, known)
            key = "commands.unknown_node_near" if near else "commands.unknown_node"
            raise CommandError(
                say(key, name=name[:60], near=near or "", known=listed(known[:10] or ("–",))),
                reason=Reason.NOT_FOUND,
            )
    if not named:
        raise _line.wrong(usage)
    return named


def named_args(options: Sequence[str], usage: str) -> dict[str, Any]:
    """`key=value` words; a value that is a number, a list or a truth value is sent as one.

    Raises:
        CommandError: a name or a value is missing.
    """
    args: dict[str, Any] = {}
    for option in options:
        key, _, value = option.partition("=")
        if not key or not value:
            raise _line.wrong(usage)
        if key == "gpus":
            value = f"[{value.strip('[]')}]"
        args[key] = _value(value)
    return args


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        # No JSON, or brackets without end: words.
        return _typed.unquoted(text)


def _no_number(name: str) -> None:
    """What no JSON on the wire may hold (`NaN`, `Infinity`)."""
    raise ValueError(name)


def service_of(services: Services, named: str | None) -> dict[str, str]:
    """The argument that names the service: the incident's, or the only one there is.

    Raises:
        CommandError: neither.
    """
    if named is not None:
        return {"service": named}
    known = tuple(services.inventory.services)
    if len(known) == 1:
        return {"service": known[0]}
    raise CommandError(say("commands.which_service", known=listed(known[:20] or ("–",))))
