"""Replicas that open incidents at the same time give each a number of its own, and count a storm as one."""

import asyncio

from bot.incidents.storms import MOST_NEW_GROUPS
from bot.store import alert_memory
from bot.store.transaction import Batch
from tests.scenarios.alert_load import body
from tests.web.door import opened


async def test_two_replicas_open_every_group_once_and_list_what_is_beyond_the_storm(redis_url):
    groups = MOST_NEW_GROUPS + 6
    async with opened(redis_url) as one, opened(redis_url) as two:
        doors = [one, two]
        answers = await asyncio.gather(
            *(doors[n % 2].take("alertmanager", body(f"g{n}", [n])) for n in range(groups))
        )
        named = [answer["incident"] for answer in answers]
        assert len(set(named)) == groups
        incidents = [await one.incident(name) for name in named]
        assert sum(item.is_only_listed for item in incidents) == groups - MOST_NEW_GROUPS
        again = await two.take("alertmanager", body("g0", [0]))
        assert again["incident"] == named[0]


async def test_a_count_that_was_overtaken_writes_nothing(redis_url):
    async with opened(redis_url) as door:
        await door.take("alertmanager", body("g0", [0]))
        now, store = door.now[0], door.store
        seen = await alert_memory.foresee(store, "C1", "alertmanager:new", now)
        assert (seen.count, seen.free_id) == (2, "INC-2")
        await door.take("alertmanager", body("g1", [1]))
        assert not (await store.commit(Batch().extend(seen.step), doing="test")).is_done
        later = await alert_memory.foresee(store, "C1", "alertmanager:new", now)
        assert (later.count, later.free_id) == (3, "INC-3")
        count, free_id = await alert_memory.new_group(store, "C1", "alertmanager:new", now)
        assert (count, free_id) == (3, "INC-3")
