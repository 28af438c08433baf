"""Acknowledgements go first, and work goes on all the same."""

import asyncio

from bot.jobs.doorway import HOLD_SECONDS, MOST_SECONDS, Doorway


async def test_work_begins_at_once_when_nobody_waits():
    async with asyncio.timeout(HOLD_SECONDS):
        await Doorway().quiet()


async def test_work_waits_while_somebody_is_acknowledged():
    doorway = Doorway()
    with doorway.entered():
        waiting = asyncio.create_task(doorway.quiet())
        await asyncio.sleep(HOLD_SECONDS)
        assert not waiting.done()
    await waiting


async def test_work_is_not_held_up_for_ever():
    doorway = Doorway()
    with doorway.entered():
        async with asyncio.timeout(MOST_SECONDS * 100):
            await doorway.quiet()
