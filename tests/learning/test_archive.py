"""What is remembered is what the timelines say now, read anew only where one has moved."""

from __future__ import annotations

from datetime import timedelta

from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.incidents.opening import Opening
from bot.incidents.responding import Via
from bot.learning.members import NobodyKnown, readable_by, readable_in
from bot.learning.search import search
from tests.learning.written import NOW, past
from tests.web.door import Door, opened


async def start(door: Door, title: str, hours: float = 1.0) -> str:
    opening = Opening(
        title=title, channel="C1", severity=Severity.SEV3, locale=Locale.EN, services=("translate-api",),
        at=NOW - timedelta(hours=hours),
    )  # fmt: skip
    return (await door.services.openings.open(opening, once=title)).incident_id


async def found(door: Door, text: str) -> list[str]:
    return [hit.past.id for hit in search(text, await door.services.archive.pasts())]


async def test_a_note_is_found_at_once_and_gone_once_it_is_withdrawn(redis_url: str) -> None:
    async with opened(redis_url) as door:
        one = await start(door, "P99 is high")
        assert await found(door, "tokenizer") == []
        via = Via(by="U1", at=NOW, key="n", message_ts="5.5")
        await door.services.responding.note(one, "the tokenizer waits", via)
        assert await found(door, "tokenizer") == [one]
        await door.services.journal.withhold(one, "5.5")
        assert await found(door, "tokenizer") == []


async def test_an_edit_is_found_by_its_newer_words_only(redis_url: str) -> None:
    async with opened(redis_url) as door:
        one = await start(door, "P99 is high")
        via = Via(by="U1", at=NOW, key="n", message_ts="5.5")
        await door.services.responding.note(one, "the tokenizer waits", via)
        await found(door, "tokenizer")
        entries = (await door.services.journal.load(one)).entries
        note = next(item for item in entries if item.data.get("person"))
        await door.services.journal.reword(one, note.seq, Localized.verbatim("分词服务在等待"))
        assert await found(door, "tokenizer") == []
        assert await found(door, "分词服务") == [one]


async def test_only_what_moved_is_read_again(redis_url: str) -> None:
    async with opened(redis_url) as door:
        ids = [await start(door, f"incident {n}", hours=n) for n in range(1, 6)]
        before = {item.id: item for item in await door.services.archive.pasts()}
        await door.services.responding.note(ids[2], "news", Via(by="U1", at=NOW, key="n"))
        after = {item.id: item for item in await door.services.archive.pasts()}
        moved = [name for name in ids if after[name] is not before[name]]
        assert moved == [ids[2]]
        assert [item.id for item in await door.services.archive.pasts()] == list(reversed(ids))


async def test_without_slack_only_ones_own_channel_is_readable() -> None:
    pasts = [past("INC-1", channel="C1"), past("INC-2", channel="C2")]
    assert [item.id for item in await readable_in("C1", pasts, NobodyKnown())] == ["INC-1"]
    assert [item.id for item in await readable_by("U1", "C2", pasts, NobodyKnown())] == ["INC-2"]
