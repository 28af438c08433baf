"""Which notifications belong together, over time, between senders, and in a storm."""

import asyncio
from datetime import timedelta

import pytest

from bot.incidents import storms
from bot.intake import slack_message
from bot.jobs.storms import Storms
from bot.store import alert_memory
from bot.store.queue import Claim, Job
from tests.web.door import NOW, opened


@pytest.fixture
async def door(redis_url):
    async with opened(redis_url) as door:
        yield door


def at(minutes):
    return (NOW + timedelta(minutes=minutes)).isoformat()


def alert(*, start=-5, end=None, labels=(), fingerprint="f1", status=None):
    return {
        "status": status or ("resolved" if end is not None else "firing"),
        "labels": {"alertname": "P99High", "service": "translate-api", **dict(labels)},
        "annotations": {"summary": "P99 is 600 ms"},
        "startsAt": at(start),
        "endsAt": at(end) if end is not None else "0001-01-01T00:00:00Z",
        "fingerprint": fingerprint,
    }


def body(*alerts, key="g1"):
    return {"version": "4", "groupKey": key, "alerts": list(alerts) or [alert()]}


async def test_a_repeat_is_counted_on_the_incident_and_is_no_entry(door):
    for _ in range(4):
        await door.take("alertmanager", body())
    incident = await door.incident()
    assert incident.alert_notifications == 4
    entries = (await door.services.journal.load("INC-1")).entries
    assert [entry.kind.value for entry in entries].count("alert") == 1


async def test_a_late_firing_after_its_resolve_fires_nothing(door):
    await door.take("alertmanager", body())
    await door.take("alertmanager", body(alert(end=-1)))
    assert (await door.take("alertmanager", body()))["incident"] == "INC-1"
    assert (await door.incident()).status.value == "recovered"


async def test_a_firing_that_comes_after_its_resolve_was_ignored_opens_nothing(door):
    await door.take("alertmanager", body(alert(end=-1)))
    assert await door.take("alertmanager", body()) == {"incident": None, "outcome": "ignored"}
    newer = await door.take("alertmanager", body(alert(start=0)))
    assert newer["outcome"] == "opened"


async def test_a_resolve_of_an_older_episode_ends_no_newer_one(door):
    await door.take("alertmanager", body(alert(start=-5)))
    await door.take("alertmanager", body(alert(start=-30, end=-20)))
    assert (await door.incident()).status.value == "open"


async def test_a_flapping_alert_stays_in_its_incident(door):
    await door.take("alertmanager", body())
    await door.take("alertmanager", body(alert(end=-1)))
    assert (await door.take("alertmanager", body(alert(start=9))))["incident"] == "INC-1"
    assert (await door.incident()).status.value == "open"


@pytest.mark.parametrize("by_person", [True, False], ids=["resolved", "recovered"])
async def test_a_second_episode_is_a_recurrence_linked_both_ways(door, by_person):
    await door.take("alertmanager", body(alert(start=-300)))
    await door.take("alertmanager", body(alert(start=-300, end=-240)))
    if by_person:
        await door.resolve()
    again = body(alert(start=-10))
    assert await door.take("alertmanager", again) == {"incident": "INC-2", "outcome": "opened"}
    assert await door.take("alertmanager", again) == {"incident": "INC-2", "outcome": "joined"}
    assert (await door.incident("INC-2")).recurrence_of == "INC-1"
    assert any("INC-2" in text for text in await door.texts("INC-1"))
    [link] = [
        entry
        for entry in (await door.services.journal.load("INC-2")).entries
        if entry.data.get("recurrence_of")
    ]
    assert (link.kind.value, link.data["recurrence_of"]) == ("system", "INC-1")
    assert len((await door.incident("INC-1")).alerts) == 1


async def test_parallel_deliveries_of_a_second_episode_open_one_recurrence(door):
    await door.take("alertmanager", body(alert(start=-300)))
    await door.take("alertmanager", body(alert(start=-300, end=-240)))
    await asyncio.gather(*(door.take("alertmanager", body(alert(start=-10))) for _ in range(10)))
    assert await door.ids() == ["INC-1", "INC-2"]


async def test_two_groups_of_one_sender_stay_two_incidents_though_name_and_service_are_the_same(
    door,
):
    for number, pod in enumerate(("a", "b", "c"), start=1):
        item = alert(labels={"pod": pod}.items(), fingerprint=f"f-{pod}")
        taken = await door.take("alertmanager", body(item, key=f"g-{pod}"))
        assert taken["incident"] == f"INC-{number}"


def message(state="FIRING:1"):
    title = f"[{state}] P99High translate-api"
    return {"bot_id": "B0", "text": "", "attachments": [{"title": title, "fallback": title}]}


async def by_message(door, state="FIRING:1", minutes=-4):
    group = slack_message.parse("alertmanager", message(state), NOW + timedelta(minutes=minutes))
    return await door.services.openings.take(group, channel="C1", severity=None, thread_ts="1.1")


@pytest.mark.parametrize("webhook_first", [True, False], ids=["webhook-first", "message-first"])
async def test_the_same_alert_by_webhook_and_by_message_is_one_incident(door, webhook_first):
    async def webhook():
        return (await door.take("alertmanager", body()))["incident"]

    async def said():
        return (await by_message(door)).incident_id

    ways = [webhook, said] if webhook_first else [said, webhook]
    assert [await way() for way in ways] == ["INC-1", "INC-1"]
    assert await webhook() == "INC-1"
    assert len((await door.incident()).alerts) == 1
    await door.take("alertmanager", body(alert(end=1)))
    assert (await door.incident()).status.value == "recovered"


async def test_both_ways_at_the_same_moment_are_one_incident(door):
    await asyncio.gather(
        *(door.take("alertmanager", body()) for _ in range(3)), by_message(door), by_message(door)
    )
    assert len(await door.ids()) == 1


async def test_after_a_message_joined_another_group_of_the_webhook_still_opens_its_own(door):
    await door.take("alertmanager", body())
    await by_message(door)
    other = body(alert(labels={"pod": "b"}.items(), fingerprint="f2"), key="g2")
    assert (await door.take("alertmanager", other))["incident"] == "INC-2"


async def test_a_silenced_alert_opens_nothing_and_is_noted_once_where_it_is_known(door):
    silenced = alert(status={"state": "suppressed", "silencedBy": ["s-1"]})
    assert (await door.take("alertmanager", body(silenced)))["outcome"] == "ignored"
    await door.take("alertmanager", body())
    for _ in range(3):
        assert (await door.take("alertmanager", body(silenced)))["outcome"] == "joined"
    said = [text for text in await door.texts() if "silencedBy s-1" in text]
    assert len(said) == 1
    assert (await door.incident()).status.value == "open"


async def burst(door, count, start=0):
    for number in range(start, start + count):
        item = alert(labels={"pod": str(number)}.items(), fingerprint=f"f{number}")
        await door.take("alertmanager", body(item, key=f"g{number}"))
        door.pass_time(seconds=0.2)


async def listed(door, storm):
    claim = Claim(
        job=Job(kind="incident.storm", lane="x", payload={"incident": storm}), token="t", attempt=1
    )
    await Storms(door.services).listing(claim)


async def cards(door):
    return {job["payload"]["incident"] for job in await door.jobs("slack.card")}


async def test_over_ten_new_groups_a_minute_get_one_anchor_that_lists_the_rest(door):
    await burst(door, 30)
    ids = await door.ids()
    assert len(ids) == 31
    [storm] = [i for i in ids if (await door.incident(i)).labels == {}]
    assert len(await cards(door)) == storms.MOST_NEW_GROUPS + 1
    await listed(door, storm)
    members = [item.id for item in (await door.incident(storm)).storm]
    assert len(members) == 20
    assert set(members) == set(ids) - (await cards(door))
    for member in members:
        incident = await door.incident(member)
        assert incident.storm_of == storm
        assert len(incident.alerts) == 1
    [post] = [
        job["payload"]["message"]
        for job in await door.jobs("slack.post")
        if job["payload"]["message"]["view"] == "followup_storm"
    ]
    assert [item["id"] for item in post["context"]["members"]] == members
    assert "20 more alert groups" in (await door.incident(storm)).symptoms[0].summary.en
    followups = await door.jobs("followup.incident")
    assert not {job["payload"]["incident"] for job in followups} & set(members)


async def test_a_parallel_burst_has_one_anchor_too(door):
    items = [alert(labels={"pod": str(n)}.items(), fingerprint=f"f{n}") for n in range(60)]
    answers = await asyncio.gather(
        *(door.take("alertmanager", body(item, key=f"g{n}")) for n, item in enumerate(items))
    )
    assert len({answer["incident"] for answer in answers}) == 60
    assert len(await door.ids()) == 61
    assert len(await cards(door)) == 11


async def test_news_of_a_listed_group_stay_off_the_channel_until_somebody_takes_it_up(door):
    await burst(door, 12)
    before = await cards(door)
    [member] = [i for i in await door.ids() if (await door.incident(i)).is_only_listed][-1:]
    number = int((await door.incident(member)).labels["pod"])
    over = alert(labels={"pod": str(number)}.items(), fingerprint=f"f{number}", end=1)
    await door.take("alertmanager", body(over, key=f"g{number}"))
    assert (await door.incident(member)).status.value == "recovered"
    assert await cards(door) == before
    from bot.incidents.responding import Via

    via = Via(by="U0LEAD", at=door.now[0], key="n1")
    await door.services.responding.note(member, "I take this one", via)
    assert await cards(door) == before | {member}
    searches = {job["payload"]["incident"] for job in await door.jobs("incident.collect")}
    assert member in searches


async def test_groups_that_come_slowly_are_no_storm(door):
    for number in range(15):
        await burst(door, 1, start=number)
        door.pass_time(seconds=10)
    assert len(await cards(door)) == len(await door.ids()) == 15


async def test_what_became_of_an_alert_is_on_record_with_its_labels(door):
    await door.take("alertmanager", body())
    await door.take("alertmanager", body())
    labels = await alert_memory.labels_of(door.store, "f1")
    assert labels == {"alertname": "P99High", "service": "translate-api"}
    notes = await door.store.text.lrange("rca:seen:f1", 0, -1)
    assert "joined INC-1: its key 'alertmanager:g1'" in notes[0]
    assert "INC-1: opened" in notes[1]
