"""What a real Alertmanager says of silences is on record, holds reminders back, and is unknown when it does not answer."""

import concurrent.futures
import subprocess
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from typer.testing import CliRunner

from bot.cause import Catalogue
from bot.console.explain import app as explain_app
from bot.diagnosis.request import DiagnosisPorts
from bot.inventory import Inventory
from bot.jobs import followups, silencing
from bot.jobs.worker import Done
from bot.source import Connection
from bot.sources.alertmanager import Alertmanager
from bot.store import queue
from bot.store.transaction import Batch
from tests.conftest import free_port
from tests.waiting import wait_until
from tests.web.door import opened

CONFIG = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"
LABELS = {"alertname": "TTFTHigh", "service": "translate-api", "severity": "page"}


class Server:
    """A real Alertmanager on a free port."""

    def __init__(self, root):
        (root / "am.yml").write_text(CONFIG)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [
                "prometheus-alertmanager",
                f"--config.file={root / 'am.yml'}",
                f"--storage.path={root / 'am'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
                "--log.level=error",
            ],
            cwd=root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(
            lambda: httpx.get(f"{self.url}/-/ready", trust_env=False).is_success,
            "Alertmanager is up",
        )

    def stop(self):
        self.process.kill()
        self.process.wait()

    def call(self, method, path, body=None):
        answer = httpx.request(method, f"{self.url}{path}", json=body, trust_env=False)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def fire(self, *sets):
        self.call("POST", "/api/v2/alerts", [{"labels": labels} for labels in sets])
        found = self.call("GET", "/api/v2/alerts")
        prints = {tuple(sorted(item["labels"].items())): item["fingerprint"] for item in found}
        return [prints[tuple(sorted(labels.items()))] for labels in sets]

    def silence(self, **matchers):
        now = datetime.now(UTC)
        body = {
            "matchers": [
                {"name": name, "value": value, "isRegex": False, "isEqual": True}
                for name, value in matchers.items()
            ],
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=2)).isoformat(),
            "createdBy": "alice",
            "comment": "<!channel> known, pool is being grown",
        }
        return self.call("POST", "/api/v2/silences", body)["silenceID"]


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.stop()


@pytest.fixture
async def door(redis_url, server):
    now = [datetime.now(UTC)]
    async with httpx.AsyncClient(trust_env=False) as http:
        ports = DiagnosisPorts(
            inventory=Inventory(),
            catalogue=Catalogue(causes={}),
            clock=lambda: now[0],
            silences=Alertmanager(Connection(url=server.url, http=http)),
        )
        async with opened(redis_url, ports, ALERTMANAGER_URL=server.url) as door:
            door.now[0] = datetime.now(UTC)
            yield door


async def take(door, prints, *sets, status="firing"):
    alerts = [
        {
            "status": status,
            "labels": labels,
            "annotations": {},
            "startsAt": (door.now[0] - timedelta(seconds=1)).isoformat(),
            "fingerprint": name,
        }
        for name, labels in zip(prints, sets, strict=True)
    ]
    body = {"version": "4", "status": status, "groupKey": "g", "alerts": alerts}
    await door.take("alertmanager", body)


async def run_due(door):
    """Runs what is due of looks and follow-ups; gives the texts that went to the thread because of it."""
    services = door.services
    handlers = {**followups.handlers(services), **silencing.handlers(services)}
    said = []
    for _ in range(200):
        claim = await services.queue.claim(door.now[0])
        if claim is None:
            return said
        if claim.job.kind == "slack.post":
            said.append(claim.job.payload["message"])
        handler = handlers.get(claim.job.kind)
        outcome = await handler(claim) if handler else Done()
        step = queue.finish(claim, door.now[0]).extend(outcome.step or Batch())
        assert (await services.queue.settle(step, doing="test")).is_done
    raise AssertionError("jobs go round in circles")


def notes(said):
    return [n["en"] for m in said if m["view"] == "followup_note" for n in m["context"]["notes"]]


def reminders(said):
    return [message for message in said if message["view"] == "followup_due"]


async def pass_minutes(door, minutes):
    said = []
    for _ in range(minutes):
        door.pass_time(minutes=1)
        said += await run_due(door)
    return said


async def test_a_silenced_alert_is_said_to_be_and_reminds_nobody_until_its_silence_is_taken_off(
    door, server
):
    prints = server.fire(LABELS)
    silence = server.silence(alertname="TTFTHigh")
    await take(door, prints, LABELS)
    door.pass_time(seconds=1)
    [note] = notes(await run_due(door))
    assert note.startswith("Silenced in Alertmanager until 20")
    assert "by alice (<!channel> known, pool is being grown): TTFTHigh." in note
    assert note.endswith("Nothing is reminded of while that lasts.")
    assert (await door.incident()).hearing.silenced[prints[0]].id == silence
    said = await pass_minutes(door, 30)
    assert reminders(said) == []
    assert notes(said) == []
    server.call("DELETE", f"/api/v2/silence/{silence}")
    said = await pass_minutes(door, 6)
    assert notes(said) == ["None of its alerts is silenced in Alertmanager now."]
    assert len(reminders(said)) == 1
    assert (await door.incident()).alert_notifications == 1


async def test_where_one_alert_is_still_heard_reminders_come(door, server):
    other = {**LABELS, "alertname": "QueueGrowing"}
    prints = server.fire(LABELS, other)
    server.silence(alertname="TTFTHigh")
    await take(door, prints, LABELS, other)
    said = await pass_minutes(door, 6)
    assert any("1 more alerts of this incident are not silenced." in note for note in notes(said))
    assert len(reminders(said)) == 1


async def test_an_alertmanager_that_does_not_answer_makes_it_unknown_and_holds_nothing_back(
    door, server
):
    prints = server.fire(LABELS)
    server.silence(alertname="TTFTHigh")
    server.stop()
    await take(door, prints, LABELS)
    said = await pass_minutes(door, 6)
    assert (await door.incident()).hearing.is_known is False
    assert notes(said) == []
    assert len(reminders(said)) == 1
    assert any("is not known" in text for text in await door.texts())


async def test_a_known_silence_outlasts_a_short_outage_only(door, server):
    prints = server.fire(LABELS)
    server.silence(alertname="TTFTHigh")
    await take(door, prints, LABELS)
    await pass_minutes(door, 1)
    server.stop()
    await pass_minutes(door, 2)
    assert prints[0] in (await door.incident()).hearing.silenced
    await pass_minutes(door, 1)
    assert (await door.incident()).hearing.is_known is False


async def test_looks_end_with_the_alert(door, server):
    prints = server.fire(LABELS)
    await take(door, prints, LABELS)
    await pass_minutes(door, 1)
    assert len(await door.jobs(silencing.SILENCES)) == 1
    await take(door, prints, LABELS, status="resolved")
    await pass_minutes(door, 2)
    assert await door.jobs(silencing.SILENCES) == []


def explained(argument):
    # A thread of its own: the command runs a loop of its own.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        result = pool.submit(CliRunner().invoke, explain_app, [str(argument)]).result()
    assert result.exit_code == 0, result.output
    return result.output


async def test_explain_says_silenced_heard_or_unknown(door, server, redis_url, monkeypatch):
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("ALERTMANAGER_URL", server.url)
    prints = server.fire(LABELS)
    await take(door, prints, LABELS)
    assert f"silence: {prints[0]}: none in Alertmanager covers it" in explained(prints[0])
    server.silence(alertname="TTFTHigh")
    assert f"silence: {prints[0]}: silenced in Alertmanager until 20" in explained(prints[0])
    server.stop()
    assert "silence: unknown: Alertmanager at 127.0.0.1" in explained(prints[0])
