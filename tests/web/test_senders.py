"""Bodies as senders really write them, from the wire to the record."""

import asyncio
import hashlib
import hmac
import json

import pytest

from bot.domain.alert import AlertStatus
from bot.domain.instant import to_rfc3339
from bot.domain.text import Locale
from bot.slack.render import Renderer
from tests.web.door import DATA, opened, payload


@pytest.fixture
async def door(redis_url):
    async with opened(redis_url) as door:
        yield door


async def test_a_group_with_a_resolved_alert_stays_open_and_shows_each_alerts_own_state(door):
    taken = await door.take("alertmanager", payload("firing_and_resolved.json"))
    assert taken == {"incident": "INC-1", "outcome": "opened"}
    incident = await door.incident()
    assert incident.status.value == "open"
    by_pod = {alert.labels["pod"]: alert for alert in incident.alerts.values()}
    states = {pod: alert.status.value for pod, alert in by_pod.items()}
    assert states == {
        "atlas-chat-0": "firing",
        "atlas-chat-1": "resolved",
        "atlas-chat-2": "firing",
    }
    over = by_pod["atlas-chat-1"]
    assert to_rfc3339(over.ends_at) == "2026-03-04T01:18:30Z"
    assert (over.ends_at - over.starts_at).total_seconds() == 480
    assert over.labels["status"] == "firing"
    assert await door.ids() == ["INC-1"]


async def test_gos_zero_time_is_no_end_and_offsets_become_utc(door):
    await door.take("alertmanager", payload("zero_time_and_offsets.json"))
    alerts = (await door.incident()).alerts
    first, second = alerts["2eb0473134e2cb35"], alerts["2bb0d28ce093eb0b"]
    assert first.ends_at is None
    assert to_rfc3339(first.starts_at).startswith("2026-03-04T01:12:55.123")
    assert (second.ends_at - second.starts_at).total_seconds() == pytest.approx(899.5)
    assert "0001-01-01" not in " ".join(await door.store.text.keys("*"))
    stored = await door.store.text.xrange("rca:inc:INC-1:timeline")
    assert "0001-01-01" not in str(stored)


async def test_a_zero_time_with_an_offset_is_no_crash(door):
    body = payload("zero_time_and_offsets.json")
    body["alerts"][0]["endsAt"] = "0001-01-01T00:00:00+08:00"
    assert (await door.post("alertmanager", body)).status_code == 200


async def test_without_names_fingerprint_and_group_key_a_repeat_finds_its_incident(door):
    for outcome in ("opened", "joined"):
        taken = await door.take("alertmanager", payload("no_names.json"))
        assert taken == {"incident": "INC-1", "outcome": outcome}
    incident = await door.incident()
    assert incident.title == "GPU scheduler unreachable"
    assert incident.severity.value == "sev2"
    assert incident.labels["severity"] == "critical"
    [alert] = incident.alerts.values()
    assert alert.url is None


async def test_a_pair_of_senders_and_a_retry_open_one_incident_and_say_nothing_twice(door):
    for name in ("pair_first.json", "pair_second.json", "pair_first.json"):
        assert (await door.take("alertmanager", payload(name)))["incident"] == "INC-1"
        door.pass_time(seconds=15)
    incident = await door.incident()
    assert incident.alert_notifications == 3
    kinds = [e.kind.value for e in (await door.services.journal.load("INC-1")).entries]
    assert kinds.count("alert") == 2
    assert await door.ids() == ["INC-1"]


async def test_a_pair_that_delivers_at_the_same_moment_opens_one_incident(door):
    bodies = [payload("pair_first.json"), payload("pair_second.json")] * 6
    answers = await asyncio.gather(*(door.take("alertmanager", body) for body in bodies))
    assert {answer["incident"] for answer in answers} == {answers[0]["incident"]}
    assert len(await door.ids()) == 1


async def test_after_a_restart_the_pair_is_still_known(redis_url):
    for outcome in ("opened", "joined"):
        async with opened(redis_url) as door:
            taken = await door.take("alertmanager", payload("pair_second.json"))
            assert taken["outcome"] == outcome


async def test_left_out_alerts_are_counted_and_said(door):
    await door.take("alertmanager", payload("truncated.json"))
    incident = await door.incident()
    assert incident.alerts_left_out == 37
    assert "39 alerts, 2 delivered" in incident.title
    said = [text for text in await door.texts() if "others are unknown" in text]
    assert said == [
        "The sender reports 39 alerts, of which 2 were delivered; the others are unknown."
    ]
    assert incident.symptoms[0].scope is None
    posts = [job["payload"]["message"] for job in await door.jobs("slack.post")]
    notes = [n["zh-CN"] for post in posts for n in post["context"].get("notes", ())]
    assert any("39" in note and "2" in note for note in notes)


async def test_broken_templates_are_shown_as_they_came_and_said(door):
    await door.take("alertmanager", payload("broken_templates.json"))
    incident = await door.incident()
    [alert] = incident.alerts.values()
    assert alert.labels["team"] == "{{ 7*7 }}"
    assert alert.labels["owner"] == "{0.__class__}"
    assert incident.title.startswith("<error expanding template")
    [note] = [text for text in await door.texts() if "template failed" in text]
    assert all(name in note for name in ("summary", "description", "runbook_url", "team"))
    renderer = Renderer(door.services.knowledge, door.services.settings.zone)
    shown = renderer.render("step_symptom", {"incident": incident, "alerts": [alert]}, Locale.EN)
    assert "[no value] on &lt;no value&gt; at {{ $value | humanizePercentage }}" in shown
    assert "49" not in shown
    assert "rb/ttft|" not in shown


async def test_grafanas_missing_value_is_no_zero_and_its_zero_is_not_missing(door):
    await door.take("grafana", payload("grafana_values.json"))
    said = [text for text in await door.texts() if "GPU memory ratio node" in text]
    assert said == [
        "GPU memory ratio node gpu-node-17 gpu 3: A: no value (NaN), C = 1",
        "GPU memory ratio node gpu-node-17 gpu 4: no value sent",
        "GPU memory ratio node gpu-node-17 gpu 5: B = 0",
    ]


async def test_a_bare_nan_of_grafana_is_taken_as_no_value_and_stored_as_strict_json(door):
    body = (DATA / "grafana_bare_nan.json.txt").read_bytes()
    answer = await door.post("grafana", body)
    assert answer.status_code == 200
    [alert] = (await door.incident()).alerts.values()
    assert [(v.number, v.said) for v in alert.values] == [(None, "NaN")]

    def refuse(name):
        raise AssertionError(f"{name} was stored")

    for _, fields in await door.store.text.xrange("rca:inc:INC-1:timeline"):
        json.loads(fields["entry"], parse_constant=refuse)


async def test_pagerdutys_ping_opens_nothing(door):
    taken = await door.take("pagerduty", payload("pagerduty_ping.json"))
    assert taken == {"incident": None, "outcome": "ignored"}
    assert await door.ids() == []


async def test_pagerdutys_incident_is_found_by_its_id_though_its_key_is_null(door):
    await door.take("pagerduty", payload("pagerduty_triggered.json"))
    other = payload("pagerduty_triggered.json")
    other["event"]["data"]["id"] = "Q3OTHER"
    other["event"]["data"]["title"] = "another one"
    assert (await door.take("pagerduty", other))["incident"] == "INC-2"
    over = await door.take("pagerduty", payload("pagerduty_resolved.json"))
    assert over == {"incident": "INC-1", "outcome": "joined"}
    first, second = await door.incident("INC-1"), await door.incident("INC-2")
    assert (first.status.value, second.status.value) == ("recovered", "open")
    assert (first.service, first.severity.value) == ("atlas-chat", "sev2")
    assert "None" not in " ".join(await door.texts())


async def test_an_acknowledgement_at_pagerduty_counts_as_one(door):
    await door.take("pagerduty", payload("pagerduty_triggered.json"))
    assert (await door.incident()).acknowledged_at is None
    body = payload("pagerduty_triggered.json")
    body["event"] |= {"event_type": "incident.acknowledged", "agent": {"summary": "Ana"}}
    await door.take("pagerduty", body)
    assert (await door.incident()).acknowledged_at is not None
    assert any("by Ana" in text for text in await door.texts())


async def test_pagerduty_signs_the_raw_bytes_and_may_send_several_signatures(redis_url):
    raw = json.dumps(payload("pagerduty_ping.json"), indent=3).encode()
    good = "v1=" + hmac.new(b"pd", raw, hashlib.sha256).hexdigest()
    again = json.dumps(json.loads(raw)).encode()
    async with opened(redis_url, RCA_PAGERDUTY_SECRET="pd") as door:
        for body, signature, status in (
            (raw, good, 200),
            (raw, f"v1={'0' * 64},{good}", 200),
            (again, good, 401),
            (raw, f"v1={'0' * 64}", 401),
            (raw, good.removeprefix("v1="), 401),
            (raw, "v1=é", 401),
            (raw, "", 401),
        ):
            headers = {b"x-pagerduty-signature": signature.encode("latin-1")}
            answer = await door.http.post(
                "/webhooks/pagerduty",
                content=body,
                headers=[(b"authorization", b"Bearer hook"), *headers.items()],
            )
            assert answer.status_code == status, (signature, answer.text)


async def test_the_watchdog_is_recorded_and_opens_nothing(door):
    taken = await door.take("alertmanager", payload("watchdog.json"))
    assert taken == {"incident": None, "outcome": "heartbeat"}
    assert await door.ids() == []
    [timer] = await door.jobs("followup.heartbeat")
    assert timer["due_at"] == "2026-11-30T13:00:00Z"


async def test_a_watchdog_among_real_alerts_takes_none_of_them_along(door):
    body = payload("firing_and_resolved.json")
    body["alerts"].append(payload("watchdog.json")["alerts"][0])
    await door.take("alertmanager", body)
    incident = await door.incident()
    assert {alert.name for alert in incident.alerts.values()} == {"TTFTHigh"}
    assert AlertStatus.FIRING in {alert.status for alert in incident.alerts.values()}
