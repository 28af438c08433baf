"""Timelines in Redis Streams, their texts beside them.

`rca:inc:<id>:timeline` holds one record per entry (without its text) and one per amendment; it is never trimmed.
`rca:inc:<id>:texts` holds per seq the wordings, newest last, or `null` once the author deleted the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.domain.text import Localized
from bot.domain.timeline import Entry, Revision
from bot.store.connection import store_faults
from bot.store.transaction import Batch, Store

_WITHHELD = "null"


def stream_key(incident_id: str) -> str:
    """The stream of one incident."""
    return f"rca:inc:{incident_id}:timeline"


def texts_key(incident_id: str) -> str:
    """The texts of one incident."""
    return f"rca:inc:{incident_id}:texts"


def _wording(text: Localized, at: datetime) -> dict[str, object]:
    return {"text": text.to_json(), "at": to_rfc3339(at)}


def append(incident_id: str, length: int, entries: Sequence[Entry]) -> Batch:
    """The step that adds `entries` to a timeline that has `length` records, and to no other."""
    batch = Batch().length(stream_key(incident_id), length)
    for entry in entries:
        body = json.dumps(entry.body_json(), ensure_ascii=False)
        batch.write("XADD", stream_key(incident_id), "*", "entry", body)
        if entry.text is not None:
            wordings = json.dumps([_wording(entry.text, entry.at)], ensure_ascii=False)
            batch.write("HSET", texts_key(incident_id), entry.seq, wordings)
    return batch


def reword(incident_id: str, entry: Entry, text: Localized, at: datetime) -> Batch:
    """The step that gives an entry a newer wording and keeps the earlier ones."""
    wordings = [_wording(revision.text, revision.replaced_at) for revision in entry.history]
    if entry.text is not None:
        wordings.append(_wording(entry.text, at))
    wordings.append(_wording(text, at))
    return (
        Batch()
        .write("HSET", texts_key(incident_id), entry.seq, json.dumps(wordings, ensure_ascii=False))
        .write("XADD", stream_key(incident_id), "*", "amend", entry.seq)
    )


def withhold(incident_id: str, seqs: Iterable[int]) -> Batch:
    """The step that erases every wording of these entries; the entries stay."""
    batch = Batch()
    for seq in seqs:
        batch.write("HSET", texts_key(incident_id), seq, _WITHHELD)
        batch.write("XADD", stream_key(incident_id), "*", "amend", seq)
    return batch


Wordings = dict[int, tuple[Localized | None, tuple[Revision, ...]]]
"""Newest wording and earlier ones by seq; None for one that is withheld."""


def repeats_key(incident_id: str) -> str:
    """Where notifications that said nothing new are counted: an entry each would bury what happened."""
    return f"rca:inc:{incident_id}:repeats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is new in a stream: `bodies` of entries, `amended` seqs, records read, and where to go on.

    wordings: of all entries, read in the same moment, where the page begins at the beginning; else None.
    repeats: how many notifications of the incident said nothing new.
    """

    bodies: tuple[dict[str, object], ...]
    amended: frozenset[int]
    count: int
    cursor: str
    wordings: Wordings | None
    repeats: int


async def read(store: Store, incident_id: str, cursor: str) -> Page:
    """All records after `cursor` (`0` for the beginning).

    Raises:
        StoreError: Redis is not reachable.
    """
    is_whole = cursor == "0"
    async with (
        store_faults(f"read the timeline of {incident_id}"),
        store.text.pipeline(transaction=is_whole) as pipeline,
    ):
        pipeline.xrange(stream_key(incident_id), min="-" if is_whole else f"({cursor}", max="+")
        pipeline.get(repeats_key(incident_id))
        if is_whole:
            pipeline.hgetall(texts_key(incident_id))
        records, repeats, *words = await pipeline.execute()
    bodies: list[dict[str, object]] = []
    amended: set[int] = set()
    for record_id, fields in records or []:
        cursor = str(record_id)
        if fields is None:
            continue
        if "entry" in fields:
            bodies.append(json.loads(fields["entry"]))
        elif "amend" in fields:
            amended.add(int(fields["amend"]))
    wordings: Wordings | None = None
    if is_whole:
        seqs = [int(str(body["seq"])) for body in bodies]
        wordings = {seq: _wordings(words[0].get(str(seq))) for seq in seqs}
    return Page(
        bodies=tuple(bodies),
        amended=frozenset(amended),
        count=len(records or []),
        cursor=cursor,
        wordings=wordings,
        repeats=int(repeats or 0),
    )


async def tips(store: Store, incident_ids: Sequence[str]) -> dict[str, str]:
    """The id of the last record of each timeline, in one round trip; it moves with every entry and every amendment.

    Raises:
        StoreError: Redis is not reachable.
    """
    if not incident_ids:
        return {}
    async with (
        store_faults("look at the timelines"),
        store.text.pipeline(transaction=False) as pipe,
    ):
        for incident_id in incident_ids:
            pipe.xrevrange(stream_key(incident_id), count=1)
        found = await pipe.execute()
    return {
        incident_id: str(records[0][0])
        for incident_id, records in zip(incident_ids, found, strict=True)
        if records
    }


async def texts(store: Store, incident_id: str, seqs: Sequence[int]) -> Wordings:
    """Newest wording and earlier ones of each seq; None for one that is withheld.

    Raises:
        StoreError: Redis is not reachable.
    """
    if not seqs:
        return {}
    async with store_faults(f"read the timeline of {incident_id}"):
        values = await store.text.hmget(texts_key(incident_id), [str(seq) for seq in seqs])
    return {seq: _wordings(value) for seq, value in zip(seqs, values, strict=True)}


def _wordings(value: str | bytes | None) -> tuple[Localized | None, tuple[Revision, ...]]:
    held = json.loads(value) if value is not None else None
    if not held:
        return None, ()
    history = tuple(
        Revision(text=Localized.from_json(item["text"]), replaced_at=parse_rfc3339(item["at"]))
        for item in held[:-1]
    )
    return Localized.from_json(held[-1]["text"]), history
