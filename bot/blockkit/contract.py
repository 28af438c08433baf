"""Slack's Web API as data: per method its arguments, scopes, rate tier and error codes.

Source: slack-ruby/slack-api-ref at f4837c0c (2026-08-20), a machine-readable copy of docs.slack.dev.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

# Codes that any method may answer beside its own.
# Source: docs.slack.dev, "Evaluating responses".
COMMON_ERRORS = frozenset(
    {
        "account_inactive",
        "fatal_error",
        "internal_error",
        "invalid_arguments",
        "invalid_auth",
        "missing_scope",
        "not_allowed_token_type",
        "not_authed",
        "ratelimited",
        "service_unavailable",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
        "unknown_method",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a method; `kinds` are JSON type names, empty where Slack states none."""

    name: str
    kinds: frozenset[str]
    required: bool
    max_length: int | None
    minimum: int | None
    maximum: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What Slack states of one Web API method.

    `scopes` are those of a bot token; any one of them admits the call, an empty set admits every token.
    `tier` is "1" to "4", "special" or None; calls per minute are in `limits.PER_MINUTE`.
    """

    name: str
    tier: str | None
    scopes: frozenset[str]
    arguments: Mapping[str, Argument]
    errors: frozenset[str]

    def knows_error(self, code: str) -> bool:
        """Whether Slack may answer this code here."""
        return code in self.errors or code in COMMON_ERRORS


@cache
def document(name: str) -> dict[str, Any]:
    """One of the data files, parsed; the caller must not change it.

    Raises:
        FileNotFoundError: no such file in this package.
    """
    text = resources.files("bot.blockkit").joinpath(name).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def methods() -> Mapping[str, Method]:
    """Every method that an incident bot may touch, by name."""
    return MappingProxyType(
        {
            name: _method(name, raw)
            for name, raw in document("methods.contract.json")["methods"].items()
        }
    )


def subscription_scopes() -> Mapping[str, tuple[str, ...]]:
    """The scopes of which an event subscription needs one, by event name (`message.channels`)."""
    scopes = document("events.schema.json")["subscription_scopes"]
    return MappingProxyType({name: tuple(any_of) for name, any_of in scopes.items()})


def _method(name: str, raw: Mapping[str, Any]) -> Method:
    scopes = raw.get("scopes") or {}
    return Method(
        name=name,
        tier=raw.get("tier"),
        scopes=frozenset(scopes.get("bot") or ()),
        arguments=MappingProxyType(
            {key: _argument(key, value) for key, value in raw["args"].items()}
        ),
        errors=frozenset(raw["errors"]),
    )


def _argument(name: str, raw: Mapping[str, Any]) -> Argument:
    kinds = raw.get("type") or ()
    return Argument(
        name=name,
        kinds=frozenset([kinds] if isinstance(kinds, str) else kinds),
        required=bool(raw.get("required", False)),
        max_length=raw.get("maxLength") or None,
        minimum=raw.get("minimum"),
        maximum=raw.get("maximum"),
    )
