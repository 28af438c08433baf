"""Incidents that open together look at a node once; what a person wants to see now is asked anew."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.finding import ProbeResult, ProbeStatus
from bot.jobs.passes import SHARED, SharedPasses

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
def passes(runner, now):
    return SharedPasses(runner, lambda: now[0])


def ask(passes, node="gpu-1", probe="host_cpu", **more):
    args = more.pop("args", {})
    return asyncio.create_task(
        passes.run(node, probe, args, subject="system", timeout_seconds=5.0, **more)
    )


async def test_runs_under_way_and_just_done_are_shared_by_node_probe_and_arguments(
    passes, runner, now
):
    tasks = [ask(passes) for _ in range(5)]
    tasks += [ask(passes, node="gpu-2"), ask(passes, args={"service": "a"})]
    await asyncio.sleep(0)
    runner.go.set()
    answers = await asyncio.gather(*tasks)
    assert len(runner.asked) == 3
    assert len({id(answer) for answer in answers[:5]}) == 1
    now[0] += SHARED
    assert await ask(passes) is answers[0]
    now[0] += timedelta(seconds=1)
    await ask(passes)
    assert len(runner.asked) == 4


async def test_one_that_gives_up_waiting_takes_nothing_from_the_others(passes, runner):
    first, second = ask(passes), ask(passes)
    await asyncio.sleep(0)
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
