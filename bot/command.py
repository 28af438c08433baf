"""What one `/rca` word is: a typed call in, a reply out; no Slack anywhere.

The same command runs from a slash command, a mention in a thread, a button, the shell and a test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.text import Locale, Localized
from bot.jobs.services import Services
from bot.message import Message
from bot.settings import PolicySettings


class Permission(StrEnum):
    """What not everybody may do; each is a list of the policy."""

    APPROVE_HEAVY = "approve_heavy"
    CONFIRM_CAUSE = "confirm_cause"
    RESOLVE = "resolve"
    RUN_CHEAP = "run_cheap"
    RUN_MODERATE = "run_moderate"
    REVIEW = "review"


def allowed(policy: PolicySettings, user: str, permission: Permission | None) -> bool:
    """Whether `user` may: the one place that is asked, by every command, button and job."""
    match permission:
        case None:
            return True
        case Permission.APPROVE_HEAVY:
            listed = policy.approve_heavy
        case Permission.CONFIRM_CAUSE:
            listed = policy.confirm_cause
        case Permission.RESOLVE:
            listed = policy.resolve
        case Permission.RUN_CHEAP:
            listed = policy.run_cheap
        case Permission.RUN_MODERATE:
            listed = policy.run_moderate
        case Permission.REVIEW:
            listed = policy.review
    return "*" in listed or user in listed


class Audience(StrEnum):
    """Who sees a message."""

    THREAD = "thread"
    ONLY_CALLER = "only_caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A command's answer. `message` None: everything that there is to say is already on its way."""

    message: Message | None = None
    audience: Audience = Audience.ONLY_CALLER


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of a word.

    text: the rest of the line, as typed. key: unique per use, the same when it is tried again after a crash; a command
    names its steps after it, so that a second run writes nothing twice.
    message_ts: the message that carried the words (a mention), None for a slash command or a button.
    incident: the incident of the thread, or the one that was named; None when there is none.
    """

    word: str
    text: str
    user: str
    channel: str
    thread_ts: str | None
    message_ts: str | None
    incident: str | None
    key: str
    at: datetime
    locale: Locale
    source: str = "slack"
    permalink: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One word of `/rca`: `usage` is its grammar, `summary` one line of help.

    wants_incident: it works without an incident, but takes the channel's only open one.
    permission: what a person must be allowed to use the word at all; a command may ask for more.
    """

    name: str
    usage: str
    summary: Localized
    run: Callable[[Call, Services], Awaitable[Reply]]
    needs_incident: bool = True
    wants_incident: bool = False
    permission: Permission | None = None


def command(
    *,
    name: str,
    usage: str,
    en: str,
    zh: str,
    needs_incident: bool = True,
    wants_incident: bool = False,
    permission: Permission | None = None,
) -> Callable[[Callable[[Call, Services], Awaitable[Reply]]], Command]:
    """Describes the decorated coroutine as a command; it registers nothing."""

    def describe(run: Callable[[Call, Services], Awaitable[Reply]]) -> Command:
        return Command(
            name=name,
            usage=usage,
            summary=Localized(en, zh),
            run=run,
            needs_incident=needs_incident,
            wants_incident=wants_incident,
            permission=permission,
        )

    return describe
