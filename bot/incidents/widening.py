"""Has changes searched further back than the engine does by itself: the guilty one may be old."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.domain.incident import Incident
from bot.domain.timeline import Draft, EntryKind
from bot.incidents.journal import Recorded
from bot.incidents.responding import Responding, Via
from bot.locales import say
from bot.store.queue import Job


async def widen_changes(
    responding: Responding,
    incident_id: str,
    seconds: float,
    via: Via,
    *,
    jobs: Callable[[Incident], Sequence[Job]],
) -> Recorded:
    """Records how far back changes are to be searched from now on, once where that is further than before.

    jobs: what must follow, in the same step.
    """

    def make(incident: Incident) -> list[Draft]:
        if seconds <= (incident.changes_back_seconds or 0.0):
            return []
        return [
            Draft(
                kind=EntryKind.CHANGE,
                at=via.at,
                text=say("guards.widened", days=f"{seconds / 86_400:.4g}"),
                author=via.by,
                source=via.source,
                permalink=via.permalink,
                data={"op": "widened", "back_s": seconds},
            )
        ]

    return await responding.write(incident_id, via, make, step="widen", jobs=jobs)
