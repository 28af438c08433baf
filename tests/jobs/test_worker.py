"""Background work survives what its handlers do, and ends in order."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from bot.errors import BotError, DeliveryError, Reason
from bot.jobs import worker as worker_module
from bot.jobs.worker import Done, Worker
from bot.store import queue
from bot.store.queue import Job, Queue
from bot.store.transaction import Batch, Store
from tests.waiting import PATIENCE_SECONDS


def now():
    return datetime.now(UTC)


@pytest.fixture
async def store(redis_url):
    store = Store(redis_url)
    yield store
    await store.close()


async def put(store, *jobs):
    for job in jobs:
        await store.commit(queue.enqueue(job, now()), doing="test")


async def work(store, handlers, until, **more):
    worker = Worker(Queue(store), handlers, now, **more)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await until.wait()
    worker.stop()
    await running


async def test_a_handlers_own_step_is_written_with_the_end_of_its_job(store):
    finished = asyncio.Event()

    async def handle(claim):
        finished.set()
        return Done(step=Batch().write("SET", "done", claim.job.payload["n"]))

    await put(store, Job(kind="k", lane="a", payload={"n": 7}))
    await work(store, {"k": handle}, finished)
    assert await store.text.get("done") == "7"
    assert await store.text.keys("rca:q:job:*") == []


async def test_a_failing_job_is_tried_again_and_what_comes_behind_it_in_the_lane_waits(
    store, monkeypatch
):
    monkeypatch.setattr(worker_module, "FIRST_RETRY_SECONDS", 0.05)
    order, finished = [], asyncio.Event()

    async def handle(claim):
        order.append((claim.job.payload["n"], claim.attempt))
        if claim.job.payload["n"] == 1 and claim.attempt < 3:
            raise BotError("not yet", reason=Reason.REFUSED)
        if claim.job.payload["n"] == 2:
            finished.set()
        return Done()

    await put(store, *(Job(kind="k", lane="a", payload={"n": n}) for n in (1, 2)))
    await work(store, {"k": handle}, finished)
    assert order == [(1, 1), (1, 2), (1, 3), (2, 1)]


async def test_a_receiver_that_says_when_to_come_back_is_obeyed(store):
    times, finished = [], asyncio.Event()

    async def handle(claim):
        times.append(now())
        if claim.attempt == 1:
            raise DeliveryError("slow down", reason=Reason.RATE_LIMITED, retry_after_seconds=0.7)
        finished.set()
        return Done()

    await put(store, Job(kind="k", lane="a"))
    await work(store, {"k": handle}, finished)
    assert times[1] - times[0] >= timedelta(seconds=0.65)


async def test_a_job_that_never_succeeds_is_given_up_loudly_and_its_lane_goes_on(
    store, monkeypatch
):
    monkeypatch.setattr(worker_module, "FIRST_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(worker_module, "MAX_ATTEMPTS", 3)
    told, finished = [], asyncio.Event()

    async def handle(claim):
        if claim.job.payload["n"] == 1:
            raise ValueError("a bug")
        finished.set()
        return Done()

    async def gave_up(claim, error):
        told.append((claim.attempt, str(error)))

    await put(store, *(Job(kind="k", lane="a", payload={"n": n}) for n in (1, 2)))
    await work(store, {"k": handle}, finished, gave_up=gave_up)
    assert told == [(3, "a bug")]


async def test_lanes_run_beside_one_another(store):
    both, waiting = asyncio.Event(), set()

    async def handle(claim):
        waiting.add(claim.job.lane)
        if len(waiting) == 2:
            both.set()
        await both.wait()
        return Done()

    await put(store, Job(kind="k", lane="a"), Job(kind="k", lane="b"))
    await work(store, {"k": handle}, both)
