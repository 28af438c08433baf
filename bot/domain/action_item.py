"""Something to do after the incident, with an owner and a date."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.text import Localized


class ActionStatus(StrEnum):
    """The closed set of the JSON export."""

    OPEN = "open"
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionItem:
    """`n` counts from 1 within the incident; `owner` is a user id, `due` an ISO date; text None once withheld."""

    n: int
    text: Localized | None
    owner: str | None = None
    due: str | None = None
    status: ActionStatus = ActionStatus.OPEN
