"""What a person can do on the serving node, whatever the diagnosis says: only the right thing helps."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from bot.demo.faults import RecordedChange
from bot.demo.service import SERVICE


class Remedy(StrEnum):
    """One action of the operations console."""

    PREALLOCATE = "preallocate"
    STOP_NEIGHBOUR = "stop-neighbour"

    @property
    def text(self) -> str:
        """What is written into the incident and into the delivery system."""
        return {
            Remedy.PREALLOCATE: "staging buffers: rolled out the preallocated pool",
            Remedy.STOP_NEIGHBOUR: "stopped the job batch-reindex on the serving node",
        }[self]

    def as_change(self, at: datetime) -> RecordedChange:
        """The event that the delivery system records."""
        on_service = self is Remedy.PREALLOCATE
        return RecordedChange(
            id=f"{self.value}-{int(at.timestamp())}",
            kind="config" if on_service else "infra",
            service=SERVICE if on_service else "batch-reindex",
            summary=self.text,
            at=at,
            by="alex.park",
        )


_BY_CAUSE = {
    "pinned_memory_contention": Remedy.PREALLOCATE,
    "lock_contention": Remedy.PREALLOCATE,
    "cpu_contention": Remedy.STOP_NEIGHBOUR,
}


def remedy_for(cause: str) -> Remedy | None:
    """What an engineer who believes in `cause` would do here; None where nothing on this node fits it."""
    return _BY_CAUSE.get(cause)
