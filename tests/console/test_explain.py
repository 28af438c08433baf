"""`rca-bot explain` prints what a fingerprint stands for and which rule took the alert, without writing anything."""

import json
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from bot.console.explain import app
from tests.web.door import DATA, opened, payload


@pytest.fixture
def explain(redis_url, monkeypatch):
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("RCA_ALERT_CHANNEL", "C1")

    def run(argument):
        # A thread of its own: the command runs a loop of its own.
        import concurrent.futures

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            result = pool.submit(CliRunner().invoke, app, [str(argument)]).result()
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


@pytest.fixture
async def door(redis_url):
    async with opened(redis_url) as door:
        yield door


async def test_a_body_is_explained_before_and_after_it_was_taken(door, explain):
    path = DATA / "pair_first.json"
    said = explain(path)
    assert "rule: opened: " in said
    assert "fingerprint 84d2098a39021144: given by the sender; from alertname=GpuXidError" in said
    assert await door.ids() == []
    await door.take("alertmanager", payload("pair_second.json"))
    assert "rule: joined: joined INC-1" in explain(path)


@pytest.mark.parametrize(
    ("name", "sender", "rule"),
    [
        ("watchdog.json", "alertmanager", "heartbeat"),
        ("grafana_values.json", "grafana", "opened"),
        ("grafana_bare_nan.json.txt", "grafana", "opened"),
        ("pagerduty_ping.json", "pagerduty", "ignored"),
        ("pagerduty_resolved.json", "pagerduty", "over: ignored"),
        ("no_names.json", "alertmanager", "opened"),
    ],
)
async def test_each_senders_body_is_told_by_its_shape(explain, name, sender, rule):
    said = explain(DATA / name)
    assert f"sender: {sender}" in said
    assert f"rule: {rule}" in said


async def test_a_fingerprint_tells_its_labels_and_all_that_became_of_it(door, explain):
    await door.take("alertmanager", payload("pair_first.json"))
    await door.take("alertmanager", payload("pair_second.json"))
    said = explain("84d2098a39021144")
    assert (
        "stands for alertname=GpuXidError, gpu=3, node=gpu-node-17, severity=page, xid=79" in said
    )
    assert said.index("joined INC-1") < said.index("INC-1: opened")


async def test_a_heartbeat_tells_when_it_came_last(door, explain):
    await door.take("alertmanager", payload("watchdog.json"))
    said = explain("fe846ceaf830183d")
    assert "heartbeat Watchdog: last came 2026-11-30T12:00:00" in said
    assert "reported after 3600 s of silence" in said


async def test_recurrence_late_and_silenced_are_told_by_name(door, explain, tmp_path):
    body = payload("pair_first.json")
    await door.take("alertmanager", body)
    await door.resolve()
    path = tmp_path / "body.json"

    def ask():
        path.write_text(json.dumps(body))
        return explain(path)

    assert "rule: late: late, noted with INC-1" in ask()
    for alert in body["alerts"]:
        alert["startsAt"] = (door.now[0] + timedelta(hours=2)).isoformat()
    assert "rule: recurrence: opened as a recurrence of INC-1" in ask()
    body["groupKey"] = "other"
    for alert in body["alerts"]:
        alert["status"] = {"state": "suppressed", "silencedBy": ["s-9"]}
    assert "rule: silenced: silenced at its sender: silencedBy s-9" in ask()


async def test_what_never_came_is_one_line_that_says_what_to_do(explain):
    from bot.errors import BotError

    with pytest.raises(BotError, match="never received"):
        explain("0000")
