"""Incidents that open together look at a node once; what a person wants to see now is asked anew."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import pytest

from bot.argument import args_digest
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.jobs import passes as passes_module
from bot.jobs.passes import SHARED, SharedPasses
from bot.store import shared_runs
from bot.store.transaction import Store
from tests.waiting import PATIENCE_SECONDS, until

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Runner:
    """Answers when it is told to."""

    def __init__(self):
        self.asked = []
        self.go = asyncio.Event()

    async def run(self, node, probe, args, *, subject, timeout_seconds, approved_by=None):
        self.asked.append((node, probe, dict(args)))
        await self.go.wait()
        return ProbeResult(
            probe=probe, node=node, status=ProbeStatus.OK, started_at=NOW, duration_seconds=0.1
        )


@pytest.fixture
def now():
    return [NOW]


@pytest.fixture
def runner():
    return Runner()


@pytest.fixture
async def store(redis_url):
    store = Store(redis_url)
    yield store
    await store.close()


@pytest.fixture
def passes(runner, now, store):
    return SharedPasses(runner, lambda: now[0], store)


async def reached(check):
    await until(check, "the node is asked")


def ask(passes, node="gpu-1", probe="host_cpu", **more):
    args = more.pop("args", {})
    return asyncio.create_task(
        passes.run(node, probe, args, subject="system", timeout_seconds=PATIENCE_SECONDS, **more)
    )


async def test_runs_under_way_and_just_done_are_shared_by_node_probe_and_arguments(
    passes, runner, now, store
):
    tasks = [ask(passes) for _ in range(5)]
    tasks += [ask(passes, node="gpu-2"), ask(passes, args={"service": "a"})]
    await reached(lambda: len(runner.asked) == 3)
    runner.go.set()
    answers = await asyncio.gather(*tasks)
    assert len(runner.asked) == 3
    assert len({id(answer) for answer in answers[:5]}) == 1
    now[0] += SHARED
    assert await ask(passes) is answers[0]
    now[0] += timedelta(seconds=1)
    # The store counts real seconds; its half of the memory ends with them.
    await store.text.flushdb()
    await ask(passes)
    assert len(runner.asked) == 4


async def test_one_that_gives_up_waiting_takes_nothing_from_the_others(passes, runner):
    first, second = ask(passes), ask(passes)
    await reached(lambda: runner.asked)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    runner.go.set()
    assert (await second).status is ProbeStatus.OK
    assert len(runner.asked) == 1


async def test_an_approved_run_is_never_shared(passes, runner):
    runner.go.set()
    await asyncio.gather(*(ask(passes, approved_by="U0LEAD") for _ in range(2)))
    assert len(runner.asked) == 2


async def test_two_replicas_ask_a_node_once_and_see_the_same_answer(runner, now, redis_url):
    stores = [Store(redis_url), Store(redis_url)]
    replicas = [SharedPasses(runner, lambda: now[0], store) for store in stores]
    tasks = [ask(replica) for replica in replicas for _ in range(3)]
    await reached(lambda: runner.asked)
    runner.go.set()
    answers = await asyncio.gather(*tasks)
    assert len(runner.asked) == 1
    assert {answer.to_json()["started_at"] for answer in answers} == {"2026-11-30T12:00:00Z"}
    # What another replica brought is as old here as it is there.
    now[0] += SHARED + timedelta(seconds=1)
    await stores[0].text.flushdb()
    await ask(replicas[1])
    assert len(runner.asked) == 2
    for store in stores:
        await store.close()


async def test_a_replica_that_dies_in_a_run_is_replaced_once_its_lease_is_over(
    passes, runner, store, monkeypatch
):
    name = ":".join(("gpu-1", "host_cpu", args_digest({})))
    monkeypatch.setattr(shared_runs, "LEASE_SECONDS", 0.3)
    assert await shared_runs.look(store, name, "the dead one") is True
    monkeypatch.undo()
    runner.go.set()
    assert (await ask(passes)).status is ProbeStatus.OK
    assert len(runner.asked) == 1
    # Its late answer is nobody's any more.
    late = shared_runs.Ran(began=NOW, answer={"probe": "wrong"})
    await shared_runs.publish(store, name, "the dead one", late, seconds=30)
    there = await shared_runs.look(store, name, "another")
    assert there.answer["probe"] == "host_cpu"


async def test_a_run_longer_than_the_lease_is_not_begun_twice(runner, now, store, monkeypatch):
    # Renewed so often that a busy machine does not lose it, and seen to be: without that it only runs down.
    monkeypatch.setattr(shared_runs, "LEASE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(passes_module, "LEASE_SECONDS", 0.3)
    replicas = [SharedPasses(runner, lambda: now[0], store) for _ in range(2)]
    first = ask(replicas[0])
    await reached(lambda: runner.asked)
    second = ask(replicas[1])
    name = shared_runs._key(":".join(("gpu-1", "host_cpu", args_digest({}))))
    left = [await store.text.pttl(name)]

    async def renewals():
        left.append(await store.text.pttl(name))
        return sum(later > earlier for earlier, later in itertools.pairwise(left)) >= 3

    await until(renewals, "the holder is alive and renews")
    assert not second.done()
    assert len(runner.asked) == 1
    runner.go.set()
    assert (await first).to_json() == (await second).to_json()
    assert len(runner.asked) == 1


async def test_without_the_store_a_replica_asks_for_itself(runner, now):
    store = Store("redis://127.0.0.1:1/0")
    runner.go.set()
    answer = await ask(SharedPasses(runner, lambda: now[0], store))
    assert answer.status is ProbeStatus.OK
    await store.close()
