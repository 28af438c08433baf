"""Acknowledgements go first, and work goes on all the same."""

import asyncio

import pytest

from bot.jobs.doorway import HOLD_SECONDS, MOST_SECONDS, Doorway


class Clock:
    """Stands still until a test moves it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def doorway(clock):
    return Doorway(clock)


async def still_waits(task):
    """Whether it does after many turns of the loop, and more looks than it takes to see that the way is free."""
    for _ in range(5):
        await asyncio.sleep(HOLD_SECONDS)
    return not task.done()


async def test_work_begins_at_once_when_nobody_waits(doorway):
    with pytest.raises(StopIteration):
        doorway.quiet().send(None)


async def test_work_waits_while_somebody_is_acknowledged_and_for_the_next_of_a_burst(
    doorway, clock
):
    with doorway.entered():
        waiting = asyncio.create_task(doorway.quiet())
        assert await still_waits(waiting)
    assert await still_waits(waiting)
    clock.now += HOLD_SECONDS
    await waiting


async def test_work_is_not_held_up_for_ever(doorway, clock):
    with doorway.entered():
        waiting = asyncio.create_task(doorway.quiet())
        assert await still_waits(waiting)
        clock.now += MOST_SECONDS
        await waiting
