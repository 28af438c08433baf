"""Bodies that no sender should write and some do: what can be read is taken, what cannot is said, nothing is guessed."""

import gzip
import json
from datetime import UTC, datetime

import pytest

from tests.web.door import NOW, TOKEN, opened, payload


@pytest.fixture
async def door(redis_url):
    async with opened(redis_url) as door:
        yield door


def alert(number=1, **more):
    return {
        "status": "firing",
        "labels": {"alertname": f"A{number}", "service": "translate-api"},
        "annotations": {"summary": f"summary {number}"},
        "startsAt": "2026-11-30T11:55:00Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": f"f{number}",
        **more,
    }


def body(*alerts, **more):
    return {"version": "4", "status": "firing", "groupKey": "g", "alerts": list(alerts), **more}


async def test_null_everywhere_is_an_alert_without_a_name_and_no_text_says_none(door):
    nothing = body(dict.fromkeys(alert()))
    nothing |= dict.fromkeys(("commonLabels", "groupLabels", "commonAnnotations", "externalURL"))
    await door.take("alertmanager", nothing)
    incident = await door.incident()
    assert incident.title == "alert"
    assert "None" not in " ".join(await door.texts())
    [one] = incident.alerts.values()
    assert one.starts_at.year > 2020
    assert (await door.take("alertmanager", nothing))["outcome"] == "joined"


@pytest.mark.parametrize(
    ("root", "own", "wanted"),
    [
        ("resolved", "firing", "firing"),
        ("unknown", "firing", "firing"),
        ("resolved", None, "resolved"),
        (None, None, "firing"),
        ("firing", "", "firing"),
    ],
)
async def test_an_alerts_own_status_decides_and_the_groups_only_where_it_has_none(
    door, root, own, wanted
):
    first = body(alert(2), alert(1, status=own), status=root)
    await door.take("alertmanager", first)
    assert (await door.incident()).alerts["f1"].status.value == wanted


async def test_one_alert_that_cannot_be_read_takes_none_of_the_others_along_and_is_said(door):
    odd = ["x", None, {"labels": [1]}, {"status": "sad"}, {"startsAt": "soon"}]
    await door.take("alertmanager", body(alert(1), *odd, alert(2)))
    assert set((await door.incident()).alerts) == {"f1", "f2"}
    [said] = [text for text in await door.texts() if "could not be read" in text]
    assert said.startswith("5 alerts of the notification")
    assert "alerts[1]: must be an object" in said


async def test_the_newer_of_two_notices_of_one_alert_counts_in_whatever_order_they_stand(door):
    over = alert(1, status="resolved", endsAt="2026-11-30T11:58:00Z")
    again = alert(1, startsAt="2026-11-30T11:59:00Z")
    await door.take("alertmanager", body(again, over, alert(1), alert(2)))
    known = (await door.incident()).alerts
    assert known["f1"].status.value == "firing"
    assert known["f1"].starts_at.minute == 59
    assert len(known) == 2


async def test_one_fingerprint_under_two_label_sets_is_two_alerts(door):
    other = alert(1, labels={"alertname": "A1", "service": "translate-api", "pod": "b"})
    await door.take("alertmanager", body(alert(1), other))
    assert len((await door.incident()).alerts) == 2
    assert (await door.take("alertmanager", body(alert(1), other)))["outcome"] == "joined"
    assert len((await door.incident()).alerts) == 2


async def test_dates_out_of_this_world_are_dates_that_were_not_set(door):
    strange = (
        alert(1, startsAt="9999-12-31T23:59:59Z"),
        alert(2, startsAt="0002-01-01T00:00:00+08:00"),
        alert(3, startsAt="1970-01-01T00:00:00Z", endsAt="9999-12-31T23:59:59Z"),
        alert(4, status="resolved", endsAt="9999-12-31T23:59:59Z"),
    )
    await door.take("alertmanager", body(*strange))
    incident = await door.incident()
    assert [incident.alerts[f"f{n}"].starts_at.year for n in (1, 2, 3)] == [
        datetime.now(UTC).year
    ] * 3
    assert incident.alerts["f4"].ends_at.year < 2200
    assert incident.symptoms[0].since.year == NOW.year
    assert "9999" not in " ".join(await door.texts())


async def test_texts_are_bounded_on_one_line_and_without_what_nobody_can_see(door):
    name = "推理延迟\u202egnp.exe\u0007\x1b[31m" + "H" * 100_000
    labels = {f"l{n}": "v" * 5_000 for n in range(400)}
    long = alert(
        1, labels={"alertname": name, **labels}, annotations={"summary": f"a\nb\r\n{name}"}
    )
    await door.take("alertmanager", body(long))
    incident = await door.incident()
    assert len(incident.title) <= 300
    assert incident.title.startswith("a b 推理延迟\ufffdgnp.exe\ufffd\ufffd[31m")
    [one] = incident.alerts.values()
    assert len(one.labels) <= 200


async def test_nested_values_are_shown_as_what_they_are(door):
    nested = {"summary": {"a": [1, {"b": "<!channel>"}]}, "value": 3, "ok": True}
    await door.take("alertmanager", body(alert(1, annotations=nested)))
    [one] = (await door.incident()).alerts.values()
    assert one.annotations == {
        "summary": '{"a": [1, {"b": "<!channel>"}]}',
        "value": "3",
        "ok": "true",
    }


async def test_thousands_of_alerts_in_one_body_are_all_kept(door):
    many = [alert(n, labels={"alertname": "K", "pod": f"p{n}"}) for n in range(3_000)]
    await door.take("alertmanager", body(*many))
    assert len((await door.incident()).alerts) == 3_000


ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "bom": lambda text: text.encode("utf-8-sig"),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-32": lambda text: text.encode("utf-32"),
}


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
async def test_every_unicode_encoding_of_json_is_read_whatever_its_content_type_says(
    door, encoding
):
    raw = ENCODINGS[encoding](
        json.dumps(body(alert(1, annotations={"summary": "延迟"})), ensure_ascii=False)
    )
    answer = await door.post("alertmanager", raw, **{"content-type": "text/plain"})
    assert answer.status_code == 200
    assert (await door.incident()).title == "延迟"


async def test_a_body_in_chunks_is_read_and_cut_off_at_the_limit(door):
    async def chunks(size):
        raw = json.dumps(body(alert(1))).encode()
        yield raw[:20]
        yield raw[20:]
        for _ in range(size // 65_536):
            yield b" " * 65_536

    for size, status in ((0, 200), (65_536, 200), (5 * 1024 * 1024, 413)):
        url = "/webhooks/alertmanager"
        answer = await door.http.post(url, content=chunks(size), headers=TOKEN)
        assert answer.status_code == status, size


async def test_exactly_the_limit_is_taken_and_one_byte_more_is_not(door):
    raw = json.dumps(body(alert(1))).encode()
    limit = 4 * 1024 * 1024
    assert (await door.post("alertmanager", raw.ljust(limit))).status_code == 200
    assert (await door.post("alertmanager", raw.ljust(limit + 1))).status_code == 413


async def test_a_compressed_body_is_refused_by_name(door):
    raw = gzip.compress(json.dumps(body(alert(1))).encode())
    answer = await door.post("alertmanager", raw, **{"content-encoding": "gzip"})
    assert answer.status_code == 415
    assert "gzip" in answer.json()["error"]


@pytest.mark.parametrize(
    "kind", ["pagey.ping", "incident.annotated", "service.updated", "incident.from.tomorrow"]
)
async def test_pagerdutys_other_events_are_2xx_and_nothing(door, kind):
    event = payload("pagerduty_triggered.json")
    event["event"]["event_type"] = kind
    assert await door.take("pagerduty", event) == {"incident": None, "outcome": "ignored"}
    assert await door.ids() == []


async def test_pagerdutys_incident_with_nothing_but_its_id_has_a_title(door):
    event = {"event": {"event_type": "incident.triggered", "data": {"id": "Q1", "title": None}}}
    await door.take("pagerduty", event)
    assert (await door.incident()).title == "PagerDuty incident Q1"
