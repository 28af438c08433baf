"""A change to the team's checklist that an incident justifies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ProposalStatus(StrEnum):
    """The closed set of the JSON export."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    DECLINED = "declined"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistChange:
    """A proposed change: `diff` is a unified diff of the checklist's YAML, `reason` why (or why not)."""

    n: int
    checklist: str
    diff: str
    reason: str | None = None
    status: ProposalStatus = ProposalStatus.PROPOSED
