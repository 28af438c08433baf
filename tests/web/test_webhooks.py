"""A webhook answers 2xx only for what is durable, and says in one line why it did not."""

import asyncio
import hashlib
import hmac
import json
from datetime import UTC, datetime
from urllib.parse import urlencode

import httpx
import pytest
from starlette.applications import Starlette

from bot.incidents.journal import Journal
from bot.incidents.opening import Openings
from bot.incidents.responding import Responding, Via
from bot.inventory import Inventory
from bot.settings import load_settings
from bot.store import index
from bot.store.index import ChangeLog
from bot.store.transaction import Store
from bot.web.metrics import Metrics
from bot.web.webhooks import Webhooks

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TOKEN = {"Authorization": "Bearer hook"}


def none(*_):
    return ()


def environment(**more):
    return {
        "RCA_WEBHOOK_TOKEN": "hook",
        "RCA_ALERT_CHANNEL": "C1",
        "RCA_GITHUB_SECRET": "gh",
        **more,
    }


def door(store, settings):
    journal = Journal(store, lambda: NOW)
    openings = Openings(store, journal, Inventory(), settings, lambda: NOW, none, none)
    hooks = Webhooks(settings, openings, ChangeLog(store), Metrics(), lambda: None)
    transport = httpx.ASGITransport(Starlette(routes=hooks.routes()))
    return httpx.AsyncClient(transport=transport, base_url="http://bot"), journal


@pytest.fixture
async def store(redis_url):
    store = Store(redis_url)
    yield store
    await store.close()


def notification(status="firing", start="2026-11-30T11:55:00Z", key="g1", fingerprint="f1"):
    return {
        "version": "4",
        "groupKey": key,
        "status": status,
        "alerts": [
            {
                "status": status,
                "labels": {"alertname": "P99High", "service": "translate-api"},
                "annotations": {"summary": "P99 is 600 ms"},
                "startsAt": start,
                "endsAt": "0001-01-01T00:00:00Z" if status == "firing" else "2026-11-30T11:59:00Z",
                "fingerprint": fingerprint,
            }
        ],
    }


async def post(client, body, **more):
    return await client.post("/webhooks/alertmanager", json=body, headers=TOKEN, **more)


async def test_an_alert_opens_one_incident_however_often_and_at_once_it_comes(store):
    client, journal = door(store, load_settings(environment()))
    answers = await asyncio.gather(*(post(client, notification()) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["incident"] for answer in answers} == {answers[0].json()["incident"]}
    assert len(await index.summaries(store, before=None, limit=50)) == 1
    entries = (await journal.load(answers[0].json()["incident"])).entries
    assert [entry.kind.value for entry in entries] == ["system", "alert", "symptom", "step"]


async def test_a_resolve_recovers_the_incident_and_a_new_fire_reopens_it(store):
    client, journal = door(store, load_settings(environment()))
    first = (await post(client, notification())).json()["incident"]
    await post(client, notification(status="resolved"))
    assert (await journal.load(first)).incident.status.value == "recovered"
    again = await post(client, notification(start="2026-11-30T12:30:00Z"))
    assert again.json() == {"incident": first, "outcome": "joined"}
    assert (await journal.load(first)).incident.status.value == "open"


async def test_after_a_person_resolved_it_a_late_notification_joins_and_a_new_episode_opens(store):
    client, journal = door(store, load_settings(environment()))
    first = (await post(client, notification())).json()["incident"]
    via = Via(by="U1", at=NOW, key="k")
    await Responding(journal, none).resolve(first, "done", via)
    late = await post(client, notification(status="resolved"))
    assert late.json()["incident"] == first
    repeated = await post(client, notification())
    assert repeated.json()["incident"] == first
    anew = await post(client, notification(start="2026-11-30T12:30:00Z"))
    assert anew.json()["outcome"] == "opened"
    assert anew.json()["incident"] != first


async def test_a_resolve_of_nothing_opens_nothing(store):
    client, _ = door(store, load_settings(environment()))
    answer = await post(client, notification(status="resolved"))
    assert answer.json() == {"incident": None, "outcome": "ignored"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"{", "no JSON", id="no-json"),
        pytest.param(b"[1]", "no JSON object", id="list"),
        pytest.param(b'{"alerts": []}', "alerts", id="no-alerts"),
        pytest.param(b'{"alerts": [3]}', "alerts[0]", id="alert-is-a-number"),
        pytest.param(b'{"alerts": [{"status": "sad"}]}', "alerts[0].status", id="status"),
        pytest.param(b'{"alerts": [{"startsAt": "soon"}]}', "alerts[0].startsAt", id="time"),
        pytest.param(b'{"alerts": [{"labels": {"a": NaN}}]}', "NaN", id="bare-nan"),
        pytest.param(b"[" * 200_000, "no JSON", id="deep"),
    ],
)
async def test_a_body_that_will_never_do_is_400_with_the_reason(store, content, says):
    client, _ = door(store, load_settings(environment()))
    answer = await client.post("/webhooks/alertmanager", content=content, headers=TOKEN)
    assert answer.status_code == 400
    assert says in answer.json()["error"]


async def test_without_the_token_nothing_is_read(store):
    client, _ = door(store, load_settings(environment()))
    for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic hook"}):
        answer = await client.post("/webhooks/alertmanager", json=notification(), headers=headers)
        assert answer.status_code == 401
    assert await index.summaries(store, before=None, limit=5) == ()


async def test_open_webhooks_need_a_loopback_listener(store):
    for host, status in (("127.0.0.1", 200), ("0.0.0.0", 401)):
        settings = load_settings(
            {"RCA_WEBHOOK_OPEN": "1", "RCA_ALERT_CHANNEL": "C1", "RCA_HOST": host}
        )
        client, _ = door(store, settings)
        answer = await client.post("/webhooks/alertmanager", json=notification())
        assert answer.status_code == status


async def test_too_large_a_body_is_413(store):
    client, _ = door(store, load_settings(environment()))
    answer = await client.post(
        "/webhooks/alertmanager", content=b"x" * (4 * 1024 * 1024 + 1), headers=TOKEN
    )
    assert answer.status_code == 413


async def test_a_dead_redis_is_503_so_that_the_sender_repeats():
    dead = Store("redis://127.0.0.1:1/0")
    client, _ = door(dead, load_settings(environment()))
    answer = await post(client, notification())
    assert answer.status_code == 503
    assert "Redis is not reachable" in answer.json()["error"]
    await dead.close()


async def test_a_change_is_stored_once(store):
    client, _ = door(store, load_settings(environment()))
    event = {
        "id": "c1",
        "kind": "config",
        "service": "translate-api",
        "summary": "pool mode",
        "at": "2026-11-27T09:00:00Z",
    }
    for stored in (1, 0):
        answer = await client.post("/webhooks/changes", json={"events": [event]}, headers=TOKEN)
        assert answer.json() == {"received": 1, "stored": stored}
    found = await ChangeLog(store).between(datetime(2026, 11, 27, tzinfo=UTC), NOW)
    assert [change.summary for change in found] == ["pool mode"]


async def test_github_signs_its_own_deliveries(store):
    client, _ = door(store, load_settings(environment()))
    body = json.dumps(
        {
            "deployment": {"id": 7, "ref": "v2", "created_at": "2026-11-30T10:00:00Z"},
            "repository": {"name": "ranker"},
        }
    ).encode()
    good = "sha256=" + hmac.new(b"gh", body, hashlib.sha256).hexdigest()
    for signature, status in ((good, 200), (good[:-1] + "x", 401)):
        answer = await client.post(
            "/webhooks/changes", content=body, headers={"X-Hub-Signature-256": signature}
        )
        assert answer.status_code == status
    assert "X-Hub-Signature-256" in answer.json()["error"]
    [change] = await ChangeLog(store).between(datetime(2026, 11, 30, tzinfo=UTC), NOW)
    assert (change.service, change.kind.value) == ("ranker", "deploy")


async def test_githubs_usual_form_is_read_and_an_empty_one_is_400(store):
    client, _ = door(store, load_settings(environment()))
    body = {
        "deployment": {"id": 7, "ref": "v2 & more", "created_at": "2026-11-30T10:00:00Z"},
        "repository": {"name": "排序"},
    }
    for fields, status in (({"payload": json.dumps(body)}, 200), ({"payload": ""}, 400)):
        content = urlencode(fields).encode()
        signature = hmac.new(b"gh", content, hashlib.sha256).hexdigest()
        answer = await client.post(
            "/webhooks/changes",
            content=content,
            headers={
                "X-Hub-Signature-256": f"sha256={signature}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        assert answer.status_code == status
    [change] = await ChangeLog(store).between(datetime(2026, 11, 30, tzinfo=UTC), NOW)
    assert (change.service, change.summary) == ("排序", "deploy v2 & more")


@pytest.mark.parametrize(
    "fault",
    [
        {"at": "9999-12-31T23:59:59-14:00"},
        {"at": "0001-01-01T00:00:00+14:00"},
        {"at": 1764540000},
        {"kind": ["deploy"]},
        {"id": {"a": 1}},
        {"id": "i" * 1000},
        {"service": {"a": 1}},
        {"details": [1]},
    ],
)
async def test_a_change_that_cannot_be_read_is_400_with_its_field(store, fault):
    client, _ = door(store, load_settings(environment()))
    event = {"id": "c1", "kind": "deploy", "service": "s", "summary": "x"}
    event |= {"at": "2026-11-30T10:00:00Z"} | fault
    answer = await client.post("/webhooks/changes", json={"events": [event]}, headers=TOKEN)
    assert answer.status_code == 400
    assert f"events[0].{next(iter(fault))}" in answer.json()["error"]


async def test_foreign_deploys_with_odd_members_are_read_as_far_as_they_go(store):
    client, _ = door(store, load_settings(environment()))
    github = {
        "deployment": {"id": 8, "created_at": "2026-11-30T10:00:00Z", "creator": []},
        "deployment_status": ["x"],
        "repository": "ranker",
    }
    state = {"startedAt": "2026-11-30T10:01:00Z", "phase": "Running", "syncResult": "abc"}
    running = {"app": {"metadata": {"name": "ms"}, "status": {"operationState": state}}}
    ended = state | {"finishedAt": "2026-11-30T10:02:00Z", "phase": "Succeeded"}
    through = {"app": {"metadata": {"name": "ms"}, "status": {"operationState": ended}}}
    flat = {"app": "flat", "revision": "abc", "finishedAt": "2026-11-30T10:03:00Z"}
    answers = [
        (await client.post("/webhooks/changes", json=body, headers=TOKEN)).json()
        for body in (github, running, through, flat)
    ]
    assert [answer["stored"] for answer in answers] == [1, 1, 0, 1]
    found = await ChangeLog(store).between(datetime(2026, 11, 30, tzinfo=UTC), NOW)
    assert [change.service for change in found] == [None, "ms", "flat"]
