"""How anything is written into an open incident: by somebody, once, with the jobs that must follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.domain.timeline import SYSTEM_AUTHOR, Draft, EntryKind
from bot.incidents.journal import Journal, Ledger, Recorded
from bot.store.queue import Job
from bot.store.transaction import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """Who acts, when, through what, and under which name the step happens at most once.

    message_ts: the Slack message whose words these are; deleting it withholds them.
    """

    by: str
    at: datetime
    key: str
    source: str = "slack"
    permalink: str | None = None
    message_ts: str | None = None


class Writing:
    """Writes entries. `jobs_for_news` says what must follow every change."""

    def __init__(
        self, journal: Journal, jobs_for_news: Callable[[Incident], Sequence[Job]]
    ) -> None:
        self._journal = journal
        self._jobs = jobs_for_news

    async def write(
        self,
        incident_id: str,
        via: Via,
        make: Callable[[Incident], Sequence[Draft]],
        *,
        step: str = "",
        jobs: Callable[[Incident], Sequence[Job]] = lambda _: (),
        extra: Batch | None = None,
    ) -> Recorded:
        """Any entries, once per `via.key` and `step`; `jobs` and `extra` writes go with them.

        Raises:
            UnknownIncidentError: no such incident.
            CommandError: `make` refuses.
            StoreError: Redis is not reachable; try again with the same key.
        """

        def drafts(ledger: Ledger) -> Sequence[Draft]:
            return make(ledger.incident)

        def all_jobs(incident: Incident) -> Sequence[Job]:
            return (*self._jobs(incident), *jobs(incident))

        return await self._journal.record(
            incident_id, drafts, once=f"{via.key}:{step}", jobs=all_jobs, extra=extra
        )

    def _draft(self, kind: EntryKind, text: Localized, via: Via, data: Mapping[str, Any]) -> Draft:
        carried = dict(data)
        if via.message_ts is not None and via.by != SYSTEM_AUTHOR:
            carried["ts"] = via.message_ts
        return Draft(
            kind=kind,
            at=via.at,
            text=text,
            author=via.by,
            source=via.source,
            permalink=via.permalink,
            data=carried,
        )
