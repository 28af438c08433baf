"""Reads and appends timelines; the state of an incident is the fold of what is read here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.domain.incident import Incident
from bot.domain.projection import apply, opened
from bot.domain.text import Localized
from bot.domain.timeline import Draft, Entry
from bot.errors import BotError, Reason
from bot.store import index, queue, timeline
from bot.store.blobs import blob_key, report_files
from bot.store.queue import Job
from bot.store.transaction import Batch, Outcome, Store

_CACHE_SIZE = 256
_ATTEMPTS = 50

Clock = Callable[[], datetime]


class UnknownIncidentError(BotError):
    """There is no incident of this id."""

    def __init__(
        self, incident_id: str, why: str = "no such incident; list them with /rca status"
    ) -> None:
        super().__init__(f"{incident_id}: {why}", reason=Reason.NOT_FOUND)


class DamagedIncidentError(UnknownIncidentError):
    """The beginning of a timeline is gone: somebody or Redis itself trimmed it, and no state can be read from the rest."""

    def __init__(self, incident_id: str, first: int) -> None:
        super().__init__(
            incident_id,
            f"entries 1 to {first - 1} of its timeline are gone from Redis; restore them from a "
            "backup, and keep maxmemory-policy at noeviction",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A timeline as far as it was read: its entries, their fold, and where to read on."""

    entries: tuple[Entry, ...]
    incident: Incident
    length: int
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The incident after an append; `is_new` is False when the same step had been taken before."""

    incident: Incident
    entries: tuple[Entry, ...]
    is_new: bool


class Journal:
    """The door to all timelines. Holds recent ones in memory, so that a read costs only what is new."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cache: OrderedDict[str, Ledger] = OrderedDict()

    async def load(self, incident_id: str) -> Ledger:
        """The newest state.

        Raises:
            UnknownIncidentError: no entry under this id.
            StoreError: Redis is not reachable.
        """
        held = self._cache.get(incident_id)
        page = await timeline.read(self._store, incident_id, held.cursor if held else "0")
        if held is not None and page.amended & {entry.seq for entry in held.entries}:
            # An earlier wording may be folded in: read it all again, so that nothing withheld survives.
            self._cache.pop(incident_id, None)
            return await self.load(incident_id)
        if held is None and not page.bodies:
            raise UnknownIncidentError(incident_id)
        if held is None and (first := int(str(page.bodies[0]["seq"]))) != 1:
            raise DamagedIncidentError(incident_id, first)
        wordings = page.wordings
        if wordings is None:
            seqs = [int(str(body["seq"])) for body in page.bodies]
            wordings = await timeline.texts(self._store, incident_id, seqs)
        fresh = [Entry.from_json(body, *wordings[int(str(body["seq"]))]) for body in page.bodies]
        incident = held.incident if held else None
        for entry in fresh:
            incident = apply(incident, entry) if incident else opened(incident_id, entry)
        if incident is None:
            raise UnknownIncidentError(incident_id)
        ledger = Ledger(
            entries=(*(held.entries if held else ()), *fresh),
            incident=incident,
            length=(held.length if held else 0) + page.count,
            cursor=page.cursor,
        )
        self._cache[incident_id] = ledger
        self._cache.move_to_end(incident_id)
        while len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        if not page.repeats:
            return ledger
        count = incident.alert_notifications + page.repeats
        return replace(ledger, incident=replace(incident, alert_notifications=count))

    async def begin(
        self, incident_id: str, drafts: Sequence[Draft], step: Batch, jobs: Sequence[Job]
    ) -> tuple[Outcome, str]:
        """Writes the first entries of an incident together with `step` (its guards decide) and its first jobs.

        Returns the outcome and, for EXISTS, the value under the guarded key.

        Raises:
            StoreError: Redis is not reachable.
        """
        entries = self._entries(drafts, 0)
        incident = _fold(incident_id, None, entries)
        batch = step.extend(timeline.append(incident_id, 0, entries))
        batch.extend(index.summarise(_summary(incident)))
        for job in jobs:
            batch.extend(queue.enqueue(job, self._clock()))
        committed = await self._store.commit(batch, doing=f"open {incident_id}")
        return committed.outcome, committed.value

    async def record(
        self,
        incident_id: str,
        make: Callable[[Ledger], Sequence[Draft]],
        *,
        once: str | None = None,
        jobs: Callable[[Incident], Sequence[Job]] = lambda _: (),
        extra: Batch | None = None,
    ) -> Recorded:
        """Appends what `make` says, given the newest state; asks again when another writer was faster.

        once: a name under which this step happens at most once, however often it is tried.
        jobs: what is to be done because of it, queued in the same transaction.
        extra: further writes of the same transaction.

        Raises:
            UnknownIncidentError: no such incident.
            StoreError: Redis is not reachable; it is safe to try again with the same `once`.
        """
        if once is not None and await self._was_taken(incident_id, once):
            # Asked before `make`, which may refuse now what it allowed when the step was taken.
            newest = await self.load(incident_id)
            return Recorded(incident=newest.incident, entries=(), is_new=False)
        for attempt in range(_ATTEMPTS):
            if attempt:
                # Perhaps not a faster writer, but a stream that was cut: then what is held here is not what is there.
                self._cache.pop(incident_id, None)
            ledger = await self.load(incident_id)
            drafts = make(ledger)
            batch = Batch()
            if once is not None:
                batch.extend(index.once(f"{incident_id}:{once}", "1"))
            entries = self._entries(drafts, ledger.incident.last_seq)
            incident = _fold(incident_id, ledger.incident, entries)
            batch.extend(timeline.append(incident_id, ledger.length, entries))
            batch.extend(index.summarise(_summary(incident)))
            for job in jobs(incident):
                batch.extend(queue.enqueue(job, self._clock()))
            if extra is not None:
                batch.extend(extra)
            committed = await self._store.commit(batch, doing=f"write to {incident_id}")
            match committed.outcome:
                case Outcome.DONE:
                    return Recorded(incident=incident, entries=entries, is_new=True)
                case Outcome.EXISTS:
                    newest = await self.load(incident_id)
                    return Recorded(incident=newest.incident, entries=(), is_new=False)
                case Outcome.MOVED:
                    continue
        raise BotError(
            f"{incident_id}: {_ATTEMPTS} writers were faster; try again", reason=Reason.CONFLICT
        )

    async def _was_taken(self, incident_id: str, once: str) -> bool:
        key = index.once_key(f"{incident_id}:{once}")
        return await index.incident_of(self._store, key) is not None

    async def reword(self, incident_id: str, seq: int, text: Localized) -> None:
        """Gives an entry its author's newer wording; earlier ones stay readable in its history.

        Raises:
            UnknownIncidentError: no such incident.
            StoreError: Redis is not reachable.
        """
        ledger = await self.load(incident_id)
        entry = next((item for item in ledger.entries if item.seq == seq), None)
        if entry is None or entry.is_withheld or entry.text == text:
            return
        step = timeline.reword(incident_id, entry, text, self._clock())
        await self._store.commit(step, doing=f"edit an entry of {incident_id}")

    async def withhold(self, incident_id: str, message_ts: str) -> int:
        """Erases every text that came from a message its author deleted; returns how many entries that were.

        Raises:
            UnknownIncidentError: no such incident.
            StoreError: Redis is not reachable.
        """
        ledger = await self.load(incident_id)
        seqs = [
            entry.seq
            for entry in ledger.entries
            if entry.data.get("ts") == message_ts and not entry.is_withheld
        ]
        if seqs:
            step = timeline.withhold(incident_id, seqs)
            # Reports that were handed over before hold the words too; they are compiled anew when asked for.
            step.write("DEL", *(blob_key(incident_id, name) for name in report_files(incident_id)))
            await self._store.commit(step, doing=f"withhold a message of {incident_id}")
        return len(seqs)

    def _entries(self, drafts: Sequence[Draft], last_seq: int) -> tuple[Entry, ...]:
        return tuple(
            Entry(
                seq=last_seq + place,
                kind=draft.kind,
                at=draft.at,
                author=draft.author,
                source=draft.source,
                text=draft.text,
                permalink=draft.permalink,
                corrects=draft.corrects,
                data=draft.data,
            )
            for place, draft in enumerate(drafts, start=1)
        )


def _fold(incident_id: str, incident: Incident | None, entries: Sequence[Entry]) -> Incident:
    for entry in entries:
        incident = apply(incident, entry) if incident else opened(incident_id, entry)
    if incident is None:
        raise UnknownIncidentError(incident_id)
    return incident


def _summary(incident: Incident) -> index.Summary:
    return index.Summary(
        id=incident.id,
        title=incident.title,
        status=incident.status.value,
        severity=incident.severity.value,
        channel=incident.channel,
        thread_ts=incident.thread_ts,
        opened_at=incident.opened_at,
        services=incident.services,
    )
