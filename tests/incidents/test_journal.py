"""A timeline is gapless, idempotent, and forgets what its author deleted."""

import asyncio
from datetime import UTC, datetime

import pytest

from bot.domain.incident import IncidentStatus, Scope
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.incidents.journal import Journal, UnknownIncidentError
from bot.incidents.opening import Opening, Openings
from bot.incidents.responding import Responding, Via
from bot.inventory import Inventory
from bot.settings import Settings
from bot.store.transaction import Store

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def clock():
    return NOW


def none(*_):
    return ()


@pytest.fixture
async def store(redis_url):
    store = Store(redis_url)
    yield store
    await store.close()


def parts(store):
    journal = Journal(store, clock)
    openings = Openings(store, journal, Inventory(), Settings(), clock, none, none)
    return journal, openings, Responding(journal, none)


async def opened(openings, once="o"):
    opening = Opening(
        title="P99 up", channel="C1", severity=Severity.SEV2, locale=Locale.EN, by="U1"
    )
    return (await openings.open(opening, once=once)).incident_id


async def test_opening_twice_under_one_name_gives_one_incident(store):
    _, openings, _ = parts(store)
    assert await opened(openings) == await opened(openings) == "INC-1"


async def test_parallel_writers_leave_a_gapless_timeline(store):
    journal, openings, responding = parts(store)
    incident = await opened(openings)
    other = Responding(Journal(store, clock), none)
    await asyncio.gather(
        *(
            (responding if n % 2 else other).note(
                incident, f"note {n}", Via(by="U1", at=NOW, key=f"k{n}")
            )
            for n in range(20)
        )
    )
    entries = (await journal.load(incident)).entries
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert {f"note {n}" for n in range(20)} <= {entry.text.en for entry in entries}


async def test_the_same_step_tried_again_writes_nothing(store):
    journal, openings, responding = parts(store)
    incident = await opened(openings)
    via = Via(by="U1", at=NOW, key="k")
    first = await responding.note(incident, "seen once", via)
    again = await responding.note(incident, "seen once", via)
    assert first.is_new and not again.is_new
    texts = [entry.text.en for entry in (await journal.load(incident)).entries]
    assert texts.count("seen once") == 1


async def test_an_edit_keeps_seq_and_time_and_the_earlier_wording(store):
    journal, openings, responding = parts(store)
    incident = await opened(openings)
    via = Via(by="U1", at=NOW, key="k", message_ts="1.1")
    seq = (await responding.note(incident, "first", via)).entries[0].seq
    await journal.reword(incident, seq, Localized.verbatim("second"))
    for reader in (journal, Journal(store, clock)):
        entry = (await reader.load(incident)).entries[seq - 1]
        assert (entry.seq, entry.at, entry.text.en) == (seq, NOW, "second")
        assert [revision.text.en for revision in entry.history] == ["first"]


async def test_a_deleted_message_leaves_no_text_anywhere(store):
    journal, openings, responding = parts(store)
    incident = await opened(openings)
    via = Via(by="U1", at=NOW, key="k", message_ts="1.1")
    await responding.note(incident, "a secret word", via)
    assert await journal.withhold(incident, "1.1") == 1
    ledger = await journal.load(incident)
    assert ledger.entries[-1].is_withheld
    assert "a secret word" not in repr(ledger)
    for key in await store.text.keys("*"):
        assert "a secret word" not in repr(await store.text.dump(key))
        if key.endswith(":texts"):
            assert "a secret word" not in repr(await store.text.hgetall(key))


async def test_state_survives_a_fresh_reader(store):
    _, openings, responding = parts(store)
    incident = await opened(openings)
    via = Via(by="U1", at=NOW, key="k")
    await responding.mitigate(incident, "restarted", via, captured=["process_stacks"])
    state = (await Journal(store, clock).load(incident)).incident
    assert state.status is IncidentStatus.MITIGATED
    assert state.mitigations[0].captured == ("process_stacks",)


async def test_an_unknown_incident_is_said_in_one_line(store):
    journal, _, _ = parts(store)
    with pytest.raises(UnknownIncidentError, match="INC-9: no such incident"):
        await journal.load("INC-9")


async def test_a_proposed_scope_never_overtakes_a_persons_confirmation(store):
    journal, openings, responding = parts(store)
    incident = await opened(openings)
    theirs = Scope(nodes=("gpu-1",), is_confirmed=True)
    await responding.set_scope(incident, theirs, Via(by="U1", at=NOW, key="person"))
    await responding.propose_scope(
        incident, Scope(nodes=("gpu-2",)), Via(by="rca-bot", at=NOW, key="engine")
    )
    assert (await journal.load(incident)).incident.scope == theirs
