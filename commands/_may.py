"""How somebody who may not is told so, and who may instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bot.command import Permission
from bot.domain.text import Localized
from bot.locales import say
from bot.settings import PolicySettings

_MOST_NAMED = 10
_WORDS: Mapping[Permission, str] = MappingProxyType(
    {
        Permission.APPROVE_HEAVY: "commands.may_not_approve",
        Permission.CONFIRM_CAUSE: "commands.may_not_confirm",
        Permission.RESOLVE: "commands.may_not_resolve",
        Permission.REVIEW: "review.may_not",
    }
)


def refused(policy: PolicySettings, permission: Permission | None) -> Localized:
    """What somebody reads who lacks a permission."""
    if permission is None or permission not in _WORDS:
        return say("commands.not_allowed")
    return _both(say(_WORDS[permission]), who_may(policy, permission))


def who_may(policy: PolicySettings, permission: Permission) -> Localized:
    """Whom the policy lists, as mentions; whoever shows the text turns them into names."""
    listed: tuple[str, ...] = getattr(policy, permission.value)
    if "*" in listed:
        return Localized("", "")
    if not listed:
        return say("commands.nobody_may", setting=permission.value)
    names = [f"<@{user}>" for user in listed[:_MOST_NAMED]]
    return say("commands.who_may", people=", ".join(names))


def _both(first: Localized, second: Localized) -> Localized:
    return Localized(f"{first.en} {second.en}".strip(), f"{first.zh}{second.zh}")


def with_who_may(text: Localized, policy: PolicySettings, permission: Permission) -> Localized:
    """A text, and behind it whom the policy lists."""
    return _both(text, who_may(policy, permission))
