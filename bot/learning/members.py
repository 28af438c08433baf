"""Who may read what happened in a channel: asked wherever an incident is shown outside its own channel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from bot.errors import DeliveryError
from bot.learning.past import Past


class Members(Protocol):
    """Knows which channels everybody can read, and who is in the others."""

    async def is_public(self, channel: str) -> bool:
        """Whether everybody of the workspace can read the channel.

        Raises:
            DeliveryError: it cannot be found out just now; what is refused for ever because of that would be a mistake.
        """
        ...

    async def is_member(self, channel: str, user: str) -> bool:
        """Whether this person is in the channel; what cannot be found out is a no."""
        ...


class NobodyKnown:
    """Without Slack no channel is known to be public and nobody to be in it."""

    async def is_public(self, channel: str) -> bool:
        """No."""
        del channel
        return False

    async def is_member(self, channel: str, user: str) -> bool:
        """No."""
        del channel, user
        return False


async def readable_in(channel: str, pasts: Sequence[Past], members: Members) -> tuple[Past, ...]:
    """What may be shown to everybody in `channel`: its own incidents, and those of public channels."""
    open_ones = await _public({past.channel for past in pasts} - {channel}, members)
    return tuple(past for past in pasts if past.channel == channel or past.channel in open_ones)


async def readable_by(
    user: str, here: str, pasts: Sequence[Past], members: Members
) -> tuple[Past, ...]:
    """What may be shown to one person: incidents of public channels, and of those that the person is in.

    here: the channel that the person asks in.
    """
    channels = {past.channel for past in pasts}
    allowed = {here} | await _public(channels - {here}, members)
    for channel in sorted(channels - allowed):
        if await members.is_member(channel, user):
            allowed.add(channel)
    return tuple(past for past in pasts if past.channel in allowed)


async def _public(channels: Iterable[str], members: Members) -> set[str]:
    return {channel for channel in sorted(channels) if await is_surely_public(channel, members)}


async def is_surely_public(channel: str, members: Members) -> bool:
    """Whether everybody can read the channel; what cannot be found out is a no."""
    try:
        return await members.is_public(channel)
    except DeliveryError:
        return False
