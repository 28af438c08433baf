"""Who may do what in Slack: every word, button, form, shortcut and reaction passes here; a refusal is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

import structlog

from bot.command import Call, Permission, allowed
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.incidents.journal import UnknownIncidentError
from bot.jobs.services import Services
from bot.locales import say
from commands._may import refused

log = structlog.get_logger(__name__)


class Door(StrEnum):
    """The ways in which people act."""

    WORD = "word"
    BUTTON = "button"
    FORM = "form"
    SHORTCUT = "shortcut"
    REACTION = "reaction"


# What is not named is open to everybody; a test walks through all there is and finds each behind this gate.
_NEEDS: Mapping[tuple[Door, str], Permission] = MappingProxyType(
    {
        (Door.BUTTON, "rca.hypothesis.confirm"): Permission.CONFIRM_CAUSE,
        (Door.BUTTON, "rca.layer.waive"): Permission.CONFIRM_CAUSE,
        (Door.BUTTON, "rca.probe.approve"): Permission.APPROVE_HEAVY,
        (Door.BUTTON, "rca.resolve"): Permission.RESOLVE,
        (Door.BUTTON, "rca.report.review"): Permission.REVIEW,
        (Door.BUTTON, "rca.report.final"): Permission.REVIEW,
        (Door.BUTTON, "rca.report.reopen"): Permission.REVIEW,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, when, in which incident; `key` names the act."""

    user: str
    at: datetime
    key: str
    incident: str | None

    @classmethod
    def of(cls, call: Call) -> Actor:
        """Who makes a call."""
        return cls(user=call.user, at=call.at, key=call.key, incident=call.incident)


class Gate:
    """Asks the policy for the Slack surface, and writes into the record whom it turned away."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def refusal(
        self, door: Door, name: str, actor: Actor, permission: Permission | None = None
    ) -> Localized | None:
        """What to say to somebody who may not; None where they may.

        permission: what a word asks for; all else is in the table here.

        Raises:
            StoreError: Redis is not reachable.
        """
        needed = permission or _NEEDS.get((door, name))
        if allowed(self._services.settings.policy, actor.user, needed):
            return None
        await self.note(actor, f"{door.value} {name}")
        return refused(self._services.settings.policy, needed)

    async def note(self, actor: Actor, what: str) -> None:
        """Puts a refusal into the log and, where it was about an incident, into its timeline."""
        log.warning("policy.refused", user=actor.user, what=what, incident=actor.incident)
        if actor.incident is None:
            return
        draft = Draft(
            kind=EntryKind.SYSTEM,
            at=actor.at,
            text=say("slack.refused", what=what),
            author=actor.user,
            source="slack",
            data={"op": "note", "refused": what},
        )
        try:
            await self._services.journal.record(
                actor.incident, lambda _: [draft], once=f"{actor.key}:refused"
            )
        except UnknownIncidentError:
            return
