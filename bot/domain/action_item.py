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
    """`n` counts from 1 within the incident; `owner` is a user id, `due` an ISO date; text None once withheld.

    issue_url: of the issue that it became in a tracker; issue_status: the status that the tracker was last told.
    """

    n: int
    text: Localized | None
    owner: str | None = None
    due: str | None = None
    status: ActionStatus = ActionStatus.OPEN
    issue_url: str | None = None
    issue_status: ActionStatus | None = None

    @property
    def is_in_step(self) -> bool:
        """Whether the tracker knows how it stands; an item that is over before it had an issue needs none."""
        if self.issue_url is None:
            return self.status is not ActionStatus.OPEN
        return self.issue_status is self.status
