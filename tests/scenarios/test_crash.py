"""Kill -9 at every named point of the durable path: nothing is lost, nothing is said twice."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from bot.workspace.client import WorkspaceClient
from tests.scenarios.rig import CHANNEL, TOKEN
from tests.waiting import until

# Which point, and the how-many-th time it is reached: each lands inside another window of the same story.
DEATHS = [
    ("webhook.durable", 1),
    ("job.claimed", 1),
    ("post.before_send", 1),
    ("post.sent", 3),
    ("post.recorded", 2),
    ("evidence.collected", 1),
    ("slack.received", 1),
    ("slack.durable", 2),
    ("report.compiled", 1),
    ("file.uploaded", 1),
]
# Further windows, for `make chaos`.
MORE_DEATHS = [
    ("webhook.received", 1),
    ("post.sent", 1),
    ("job.done", 2),
    ("evidence.recorded", 1),
]
PLACES = [
    *(pytest.param(point, count, id=f"{point}-{count}") for point, count in DEATHS),
    *(
        pytest.param(point, count, id=f"{point}-{count}", marks=pytest.mark.chaos)
        for point, count in MORE_DEATHS
    ),
]


def notification():
    start = (datetime.now(UTC) - timedelta(minutes=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"alertname": "P99High", "service": "translate-api", "severity": "critical"}
    return {
        "version": "4",
        "groupKey": '{}:{alertname="P99High"}',
        "status": "firing",
        "commonLabels": labels,
        "commonAnnotations": {"summary": "P99 of translate-api is 600 ms"},
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": {"summary": "P99 of translate-api is 600 ms"},
                "startsAt": start,
                "fingerprint": "f1",
            }
        ],
    }


class Story:
    """One short incident, told by a sender and a person who repeat what was not acknowledged, as real ones do."""

    def __init__(self, rig, workspace):
        self.rig = rig
        self.workspace = workspace
        self.lead = workspace.person("U0LEAD")

    async def tell(self):
        await self._send_alert(notification())
        card = await self._until_seen(lambda m: "INC-1" in m.all_text and not m.is_reply)
        self.root = card.ts
        await self._until_seen(lambda m: m.is_reply and "P99" in m.all_text)
        said = await self.lead.say(CHANNEL, "seen since the evening peak", thread_ts=card.ts)
        note = await self.lead.say(CHANNEL, "@rca note copies take 40 ms", thread_ts=card.ts)
        self.spoken = (said, note)
        await self._recorded("evidence", "copies take 40 ms")
        await self._recorded("message", "seen since the evening peak")
        await self._recorded("hypothesis")
        await self.lead.say(CHANNEL, "@rca export md", thread_ts=card.ts)
        await self._recorded("report")
        await self._until_seen(
            lambda m: any(f.get("name") == "INC-1.md" for f in m.raw.get("files", []))
        )

    async def _send_alert(self, body):
        async def accepted():
            answer = await self.rig.http.post(
                f"{self.rig.bot_url}/webhooks/alertmanager", json=body, headers=TOKEN
            )
            return answer.status_code == 200

        await until(accepted, "the alert is accepted")

    async def _until_seen(self, holds):
        async def seen():
            messages = await self.workspace.messages(CHANNEL)
            return next((m for m in messages if holds(m)), None)

        return await until(seen, "the message is seen")

    async def _recorded(self, kind, words=""):
        async def there():
            # Slack sends again what was not acknowledged, after 0, 60 and 300 s: let that time pass, but only while
            # the bot is up, or a slow restart would outlast the last of these.
            answer = await self.rig.report("INC-1")
            if answer.status_code != 200:
                return False
            await self.workspace.advance_clock(5)
            return any(
                entry["kind"] == kind and words in (entry["text"] or "")
                for entry in answer.json()["timeline"]
            )

        await until(there, f"{kind} {words!r} is recorded")


async def keep_alive(rig, process, died):
    """Restarts the bot once it was killed, without the hook; a supervisor does no more."""
    while process.poll() is None:
        await asyncio.sleep(0.02)
    died.append(process.returncode)
    await rig.start_bot()


def settled_texts(messages):
    """What stands in the channel, by the key that each message carries; foreign messages have none."""
    keys = [
        (m.raw.get("metadata") or {}).get("event_payload", {}).get("key")
        for m in messages
        if (m.raw.get("bot_id") == "B0RCABOT")
    ]
    return Counter(key for key in keys if key)


@pytest.mark.parametrize(("point", "count"), PLACES)
async def test_a_bot_killed_anywhere_loses_nothing_and_says_nothing_twice(deployment, point, count):
    rig = deployment
    died = []
    process = await rig.start_bot(point, count)
    async with WorkspaceClient(rig.workspace_url) as workspace:
        supervisor = asyncio.create_task(keep_alive(rig, process, died))
        story = Story(rig, workspace)
        try:
            await story.tell()
        except (AssertionError, httpx.HTTPError):
            print(rig.log("bot"))  # noqa: T201
            raise
        finally:
            supervisor.cancel()
        assert died == [-9], f"the bot never came to {point} {count} times"
        await workspace.settle()
        messages = await workspace.messages(CHANNEL)
        report = (await rig.report("INC-1")).json()

    timeline = report["timeline"]
    assert [entry["seq"] for entry in sorted(timeline, key=lambda e: e["seq"])] == list(
        range(1, len(timeline) + 1)
    )
    kinds = Counter(entry["kind"] for entry in timeline)
    assert kinds["alert"] == 1
    texts = Counter((entry["kind"], entry["text"]) for entry in timeline)
    assert texts[("message", "seen since the evening peak")] == 1
    assert texts[("evidence", "copies take 40 ms")] == 1
    assert kinds["report"] == 1
    assert len(await rig.incidents()) == 1

    twice = {key: n for key, n in settled_texts(messages).items() if n > 1}
    assert not twice
    bot_roots = [m for m in messages if m.raw.get("bot_id") == "B0RCABOT" and not m.is_reply]
    assert len(bot_roots) == 1
    ours = [m.all_text for m in messages if m.raw.get("bot_id") == "B0RCABOT" and m.is_reply]
    same = {text: n for text, n in Counter(ours).items() if n > 1 and text}
    assert not same, same
    files = [f["name"] for m in messages for f in m.raw.get("files", [])]
    assert files.count("INC-1.md") == 1
