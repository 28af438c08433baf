"""Follow-ups come when they are wanted, once, and stop when somebody says so."""

import asyncio
from datetime import timedelta

import pytest

from bot.cause import Catalogue
from bot.diagnosis.request import DiagnosisPorts
from bot.domain.evidence import SourceState
from bot.domain.instant import Window
from bot.domain.responder import Role
from bot.errors import CommandError, EvidenceError, Reason
from bot.incidents.responding import Via
from bot.inventory import Inventory
from bot.jobs import followups
from bot.jobs.auditing import Auditor
from bot.jobs.followups import snooze, stop
from bot.jobs.worker import Done, Worker
from bot.settings import FollowupSettings
from bot.source import Answer
from bot.store import queue
from bot.store.queue import Queue
from bot.store.transaction import Batch
from tests.waiting import until
from tests.web.door import NOW, opened, payload


@pytest.fixture
async def door(redis_url):
    async with opened(redis_url, toml={"on_call_group": "S0ONCALL"}) as door:
        yield door


async def run_due(door):
    """Runs the timers that are due now, as a worker does; everything else stays queued."""
    handlers = followups.handlers(door.services)
    for _ in range(200):
        claim = await door.services.queue.claim(door.now[0])
        if claim is None:
            return
        handler = handlers.get(claim.job.kind)
        outcome = await handler(claim) if handler else Done()
        step = queue.finish(claim, door.now[0]).extend(outcome.step or Batch())
        assert (await door.services.queue.settle(step, doing="test")).is_done
    raise AssertionError("timers go round in circles")


async def entries(door, op="due", incident="INC-1"):
    found = (await door.services.journal.load(incident)).entries
    return [e.data["followup"] for e in found if e.kind.value == "followup" and e.op == op]


async def open_incident(door):
    await door.take("alertmanager", payload("firing_and_resolved.json"))
    await run_due(door)


def via(door, key="k", by="U0LEAD"):
    return Via(by=by, at=door.now[0], key=key)


async def test_an_incident_that_nobody_takes_calls_the_on_call_group_at_growing_distances(door):
    await open_incident(door)
    sent = []
    for minute in range(120):
        door.now[0] = NOW + timedelta(minutes=minute, seconds=1)
        sent += [(minute, item["context"]["group"]) for item in await one_timer(door)]
    assert sent == [(5, "S0ONCALL"), (15, "S0ONCALL"), (35, "S0ONCALL")]


async def one_timer(door):
    """Runs the due timers and gives the posts that they queued."""
    before = {job["id"] for job in await door.jobs("slack.post")}
    handlers = followups.handlers(door.services)
    claims = []
    while (claim := await door.services.queue.claim(door.now[0])) is not None:
        claims.append(claim)
        handler = handlers.get(claim.job.kind)
        outcome = await handler(claim) if handler else Done()
        if handler is None:
            await door.services.queue.settle(queue.finish(claim, door.now[0]), doing="test")
            continue
        fresh = [j for j in await door.jobs("slack.post") if j["id"] not in before]
        step = queue.finish(claim, door.now[0]).extend(outcome.step or Batch())
        await door.services.queue.settle(step, doing="test")
        if fresh:
            return [job["payload"]["message"] for job in fresh]
    return []


async def test_an_acknowledged_incident_calls_nobody_but_an_idle_step_is_said_with_what_is_missing(
    door,
):
    await open_incident(door)
    await door.services.responding.set_role("INC-1", Role.LEAD, "U0LEAD", via(door))
    await run_due(door)
    door.pass_time(seconds=301)
    await run_due(door)
    assert await entries(door) == []
    door.pass_time(seconds=600)
    [message] = await one_timer(door)
    assert await entries(door) == ["step_idle"]
    assert message["context"]["ask"] == "U0LEAD"
    assert message["context"]["asks_step"] is True
    names = [button["action_id"] for button in message["buttons"]]
    assert names == ["rca.followup.snooze", "rca.followup.stop"]
    assert message["buttons"][0]["payload"] == {"incident": "INC-1", "followup": "step_idle"}


async def test_activity_moves_the_reminder_of_an_idle_step(door):
    await open_incident(door)
    for number in range(4):
        door.pass_time(seconds=600)
        await door.services.responding.note("INC-1", "still at it", via(door, key=f"n{number}"))
        await run_due(door)
    assert await entries(door) == []
    waiting = [
        j for j in await door.jobs("followup.incident") if j["payload"]["followup"] == "step_idle"
    ]
    assert len(waiting) == 1


async def test_snooze_waits_stop_ends_and_both_are_on_record(door):
    await open_incident(door)
    words = await snooze(door.services, "INC-1", "unacknowledged", via(door, by="rca-bot"))
    assert "13:00" in words.en
    door.pass_time(minutes=50)
    await run_due(door)
    assert await entries(door) == []
    door.pass_time(minutes=11)
    await run_due(door)
    assert await entries(door) == ["unacknowledged"]
    await stop(door.services, "INC-1", "unacknowledged", via(door, key="s", by="rca-bot"))
    door.pass_time(days=2)
    await run_due(door)
    assert await entries(door) == ["unacknowledged"]
    assert await entries(door, "snoozed") == await entries(door, "stopped") == ["unacknowledged"]
    with pytest.raises(CommandError):
        await stop(door.services, "INC-1", "nonsense", via(door, key="x"))


async def test_a_kind_that_is_switched_off_never_comes(redis_url):
    off = {"followup": FollowupSettings(unacknowledged_s=0, step_idle_s=0)}
    async with opened(redis_url, toml=off) as door:
        await open_incident(door)
        door.pass_time(days=1)
        await run_due(door)
        assert await entries(door) == []


async def test_a_timer_survives_a_restart_and_two_replicas_send_it_once(redis_url):
    async with opened(redis_url) as door:
        await open_incident(door)
    async with opened(redis_url) as one, opened(redis_url) as other:
        one.pass_time(seconds=301)
        other.pass_time(seconds=301)
        workers = [
            Worker(Queue(door.store), followups.handlers(door.services), door.services.clock)
            for door in (one, other)
        ]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        await until(lambda: entries(one), "the follow-up is sent")

        async def is_idle():
            return await one.services.queue.depth(one.now[0]) == 0

        await until(is_idle, "the queue is empty")
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)
        assert await entries(one) == ["unacknowledged"]


async def test_below_sev2_waits_for_the_end_of_the_quiet_hours(redis_url):
    quiet = {"quiet_hours": "12:00-13:00"}
    async with opened(redis_url, toml=quiet) as door:
        body = payload("firing_and_resolved.json")
        for alert in body["alerts"]:
            alert["labels"]["severity"] = "warning"
        body["commonLabels"]["severity"] = "warning"
        await door.take("alertmanager", body)
        door.pass_time(minutes=59)
        await run_due(door)
        assert await entries(door) == []
        door.pass_time(minutes=2)
        await run_due(door)
        assert await entries(door) == ["unacknowledged"]


async def test_a_channel_takes_only_so_many_follow_ups_an_hour(redis_url):
    limit = {"posts_per_channel_per_hour": 2, "followup": FollowupSettings(step_idle_s=0)}
    async with opened(redis_url, toml=limit) as door:
        for number in range(4):
            body = payload("firing_and_resolved.json")
            body["groupKey"] = f"g{number}"
            await door.take("alertmanager", body)
        ids = await door.ids()

        async def sent():
            return sum([len(await entries(door, incident=item)) for item in ids])

        door.pass_time(seconds=301)
        await run_due(door)
        assert await sent() == 2
        door.pass_time(minutes=55)
        await run_due(door)
        assert await sent() == 2
        door.pass_time(minutes=6)
        await run_due(door)
        assert await sent() == 4


class Metrics:
    """A metrics source that a test switches on and off."""

    def __init__(self):
        self.is_up = False

    async def instant(self, query, at, *, timeout_seconds):
        if not self.is_up:
            raise EvidenceError("down", reason=Reason.REFUSED)
        return Answer(query=query, window=Window(at, at), items=())

    async def range(self, query, window, *, step_seconds, timeout_seconds):
        return await self.instant(query, window.end, timeout_seconds=timeout_seconds)

    async def names(self, window, *, timeout_seconds):
        await self.instant("", window.end, timeout_seconds=timeout_seconds)
        return frozenset()


def with_metrics(now):
    metrics = Metrics()
    ports = DiagnosisPorts(
        inventory=Inventory(),
        catalogue=Catalogue(causes={}),
        clock=lambda: now[0],
        metrics=metrics,
    )
    return metrics, ports


async def test_a_source_that_came_back_is_said_and_searched_again(redis_url):
    now = [NOW]
    metrics, ports = with_metrics(now)
    off = {"followup": FollowupSettings(unacknowledged_s=0, step_idle_s=0)}
    async with opened(redis_url, ports, toml=off) as door:
        now = door.now
        await open_incident(door)
        await door.services.responding.record_evidence(
            "INC-1",
            Via(by="rca-bot", at=door.now[0], key="e"),
            evidence=(),
            gaps=(),
            sources={"metrics": SourceState.UNREACHABLE, "logs": SourceState.OK},
            layers=(),
            blind_spots=(),
            changes=(),
            hypotheses=(),
        )
        for _ in range(3):
            door.pass_time(seconds=301)
            await run_due(door)
        assert await entries(door) == []
        metrics.is_up = True
        door.pass_time(seconds=301)
        [message] = await one_timer(door)
        assert "metrics" in message["context"]["text"]["en"]
        assert await entries(door) == ["source_back"]
        assert [j for j in await door.jobs("incident.collect") if j["payload"]["reason"] == "asked"]
        door.pass_time(days=1)
        await run_due(door)
        assert await entries(door) == ["source_back"]


async def test_after_a_fix_whether_the_symptom_is_gone_is_looked_at_and_never_guessed(door):
    await open_incident(door)
    await door.services.responding.record_fix("INC-1", "bigger pool", via(door))
    await run_due(door)
    door.pass_time(seconds=601)
    [message] = await one_timer(door)
    assert "could not be seen" in message["context"]["text"]["en"]
    assert "symptom" in await entries(door)
    assert (await door.incident()).fix.verified is None


async def test_hours_after_the_resolve_a_recurrence_is_seen_in_the_alerts(door):
    await open_incident(door)
    await door.resolve()
    await run_due(door)
    door.pass_time(hours=4, seconds=1)
    [message] = await one_timer(door)
    text = message["context"]["text"]["en"]
    assert "4 h after INC-1 was resolved: it is back" in text
    assert "TTFTHigh" in text


async def test_a_report_that_nobody_exported_is_asked_for(door):
    await open_incident(door)
    await door.resolve()
    door.pass_time(hours=47)
    await run_due(door)
    assert "report_due" not in await entries(door)
    door.pass_time(hours=2)
    await run_due(door)
    assert (await entries(door)).count("report_due") == 1


async def test_open_action_items_are_said_when_they_are_due(door):
    await open_incident(door)
    await door.services.responding.add_action_item(
        "INC-1", "alert on retry rate", via(door), owner="U1", due="2026-12-01"
    )
    await door.resolve()
    door.now[0] = NOW + timedelta(hours=21, minutes=1)
    texts = []
    for _ in range(4):
        texts += [item["context"]["text"]["zh-CN"] for item in await one_timer(door)]
    assert any("alert on retry rate（2026-12-01）" in text for text in texts)


async def test_a_silent_heartbeat_is_reported_as_an_incident_and_its_return_ends_it(door):
    await door.take("alertmanager", payload("watchdog.json"))
    door.pass_time(minutes=50)
    await door.take("alertmanager", payload("watchdog.json"))
    door.pass_time(minutes=30)
    await run_due(door)
    assert await door.ids() == []
    over = payload("watchdog.json")
    over["alerts"][0] |= {"status": "resolved", "endsAt": "2026-11-30T13:00:00Z"}
    await door.take("alertmanager", over)
    door.pass_time(minutes=31)
    await run_due(door)
    incident = await door.incident()
    assert "Alert path may be down: no Watchdog since 2026-11-30 12:50" in incident.title
    assert incident.severity.value == "sev2"
    door.pass_time(minutes=5)
    await door.take("alertmanager", payload("watchdog.json"))
    assert (await door.incident()).status.value == "recovered"
    for _ in range(3):
        await door.take("alertmanager", payload("watchdog.json"))
    assert await door.ids() == ["INC-1"]


async def test_heartbeats_can_be_switched_off(redis_url):
    off = {"followup": FollowupSettings(heartbeat_s=0)}
    async with opened(redis_url, toml=off) as door:
        await door.take("alertmanager", payload("watchdog.json"))
        door.pass_time(days=9)
        await run_due(door)
        assert await door.ids() == []


async def test_an_overdue_timer_is_reported_and_a_lost_one_is_set_again(door):
    await open_incident(door)
    auditor = Auditor(door.services)
    assert await auditor.overdue() == 0
    door.pass_time(minutes=10)
    assert await auditor.overdue() > 0
    await run_due(door)
    assert await auditor.overdue() == 0
    for key in await door.store.text.keys("rca:q:*"):
        await door.store.text.delete(key)
    await auditor.sweep()
    door.pass_time(minutes=11)
    await run_due(door)
    assert await entries(door) == ["unacknowledged", "unacknowledged"]


async def test_recovery_asks_for_step_six_once_while_an_alert_flaps(door):
    body = payload("firing_and_resolved.json")
    await door.take("alertmanager", body)
    for start in ("2026-03-04T01:20:00Z", "2026-03-04T01:40:00Z"):
        for alert in body["alerts"]:
            alert |= {"status": "resolved", "endsAt": start}
        await door.take("alertmanager", body)
        for alert in body["alerts"]:
            alert |= {"status": "firing", "startsAt": start}
        await door.take("alertmanager", body)
    asked = [
        note["en"]
        for post in [job["payload"]["message"] for job in await door.jobs("slack.post")]
        for note in post["context"].get("notes", ())
        if "Step 6" in note["en"]
    ]
    assert len(asked) == 1
    assert asked[0].startswith("All alerts of INC-1 are over")
