"""What Redis lost of its own accord, or somebody trimmed, is told and skipped; it stops nothing else."""

import pytest
import structlog

from bot.incidents.journal import DamagedIncidentError
from bot.jobs.auditing import Auditor
from bot.jobs.worker import Done, Worker
from bot.store import queue
from bot.store.queue import Job, Queue
from tests.web.door import opened


@pytest.fixture
async def door(redis_url):
    async with opened(redis_url) as door:
        yield door


def body(start="2026-11-30T11:55:00Z"):
    return {
        "version": "4",
        "groupKey": "g",
        "alerts": [{"labels": {"alertname": "A"}, "fingerprint": "f", "startsAt": start}],
    }


async def test_jobs_whose_body_is_gone_are_skipped_and_told_by_their_ids(door):
    jobs = [Job(kind="k", lane="a", payload={"n": n}) for n in range(3)]
    for job in jobs:
        await door.store.commit(queue.enqueue(job, door.now[0]), doing="test")
    for job in jobs[:2]:
        await door.store.text.delete(f"rca:q:job:{job.id}")
    done = []
    worker = Worker(Queue(door.store), {}, door.services.clock)

    async def handle(claim):
        done.append(claim.job.payload["n"])
        worker.stop()
        return Done()

    worker = Worker(Queue(door.store), {"k": handle}, door.services.clock)
    await worker.run()
    assert done == [2]
    with structlog.testing.capture_logs() as logs:
        assert await Auditor(door.services).lost() == 2
        assert await Auditor(door.services).lost() == 0
    [told] = logs
    assert told["count"] == 2
    assert told["jobs"] == [f"a {job.id}" for job in jobs[:2]]


@pytest.mark.parametrize("is_cached", [True, False])
async def test_a_trimmed_timeline_is_said_and_its_alert_opens_a_new_incident(redis_url, is_cached):
    async with opened(redis_url) as first:
        await first.take("alertmanager", body())
        await first.store.text.xtrim("rca:inc:INC-1:timeline", maxlen=2, approximate=False)
        if is_cached:
            again = await first.take("alertmanager", body("2026-11-30T11:58:00Z"))
            assert again["incident"] == "INC-2"
    async with opened(redis_url) as door:
        again = await door.take("alertmanager", body("2026-11-30T11:58:00Z"))
        assert again["incident"] == "INC-2"
        with pytest.raises(DamagedIncidentError, match="entries 1 to 2 of its timeline are gone"):
            await door.incident("INC-1")
        assert await door.ids() == ["INC-1", "INC-2"]
        await Auditor(door.services).sweep()


async def test_an_evicted_timeline_whose_keys_outlived_it_loses_no_alert(door):
    await door.take("alertmanager", body())
    await door.store.text.delete("rca:inc:INC-1:timeline")
    door.services.journal._cache.clear()
    door.pass_time(seconds=1)
    assert (await door.take("alertmanager", body()))["incident"] == "INC-2"
    assert (await door.take("alertmanager", body()))["outcome"] == "joined"
