"""Lanes keep order, leases keep jobs, coalescing keeps the newest only."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.store import queue
from bot.store.queue import Job, Queue
from bot.store.transaction import Batch, Outcome, Store

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
async def store(redis_url):
    store = Store(redis_url)
    yield store
    await store.close()


async def put(store, *jobs):
    for job in jobs:
        await store.commit(queue.enqueue(job, NOW), doing="test")


async def test_jobs_of_one_lane_run_in_order_and_never_together(store):
    jobs = Queue(store)
    first, second = Job(kind="k", lane="a"), Job(kind="k", lane="a")
    await put(store, first, second)
    held = await jobs.claim(NOW)
    assert held.job == first
    assert await jobs.claim(NOW) is None
    await jobs.settle(queue.finish(held, NOW), doing="test")
    assert (await jobs.claim(NOW)).job == second


async def test_a_dead_workers_job_comes_back_and_the_late_worker_cannot_finish_it(store):
    jobs = Queue(store, lease_seconds=10)
    job = Job(kind="k", lane="a")
    await put(store, job)
    dead = await jobs.claim(NOW)
    later = NOW + timedelta(seconds=11)
    heir = await jobs.claim(later)
    assert heir.job == job and heir.attempt == 2
    late = await jobs.settle(queue.finish(dead, later), doing="test")
    assert late.outcome is Outcome.MOVED
    assert (await jobs.settle(queue.finish(heir, later), doing="test")).is_done
    assert await jobs.claim(later) is None


async def test_a_kept_lease_is_not_taken_over(store):
    jobs = Queue(store, lease_seconds=10)
    await put(store, Job(kind="k", lane="a"))
    held = await jobs.claim(NOW)
    assert await jobs.renew(held, NOW + timedelta(seconds=8))
    assert await jobs.claim(NOW + timedelta(seconds=12)) is None


async def test_a_timer_waits_for_its_time_and_can_be_dropped(store):
    jobs = Queue(store)
    due = NOW + timedelta(minutes=5)
    kept, dropped = queue.timer("t", "kept", due, {}), queue.timer("t", "dropped", due, {})
    await put(store, kept, dropped)
    await store.commit(queue.cancel_timer("dropped"), doing="test")
    assert await jobs.claim(NOW) is None
    assert (await jobs.claim(due)).job.id == "kept"
    assert await jobs.claim(due) is None


async def test_coalesced_jobs_become_one_until_it_is_claimed(store):
    jobs = Queue(store)
    make = lambda: Job(kind="card", lane="a", coalesce="card:1")  # noqa: E731
    await put(store, make(), make(), make())
    held = await jobs.claim(NOW)
    await put(store, make())
    await jobs.settle(queue.finish(held, NOW), doing="test")
    assert await jobs.claim(NOW) is not None
    assert await jobs.depth() == 1


async def test_a_guard_that_does_not_hold_writes_nothing(store):
    await store.commit(Batch().write("SET", "k", "1"), doing="test")
    answer = await store.commit(Batch().absent("k").write("SET", "other", "x"), doing="test")
    assert answer.outcome is Outcome.EXISTS and answer.value == "1"
    assert await store.text.get("other") is None


async def test_a_higher_rank_goes_first_and_equal_ones_keep_their_order_beside_the_job_in_hand(
    store,
):
    jobs = Queue(store)
    await put(store, Job(kind="in hand", lane="a"))
    held = await jobs.claim(NOW)
    await put(
        store, *(Job(kind=f"{rank}{n}", lane="a", rank=rank) for n in "xy" for rank in (0, 1, 2))
    )
    order = []
    while held is not None:
        order.append(held.job.kind)
        await jobs.settle(queue.finish(held, NOW), doing="test")
        held = await jobs.claim(NOW)
    assert order == ["in hand", "2x", "2y", "1x", "1y", "0x", "0y"]
