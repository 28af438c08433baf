"""What one incident teaches, the next one does: through a real Redis, a real agent, the workspace and signed clicks."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from bot.workspace.client import WorkspaceClient
from tests.agent.live_agent import start_agent
from tests.conftest import free_port
from tests.scenarios.rig import CHANNEL, TOKEN, Deployment
from tests.waiting import until

SERVICE = "translate-api"
PROBE = "dependency_check"


def notification(number):
    """The same signature each time; a group of its own, so that it opens an incident of its own."""
    start = (datetime.now(UTC) - timedelta(minutes=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"alertname": "P99High", "service": SERVICE, "severity": "critical"}
    alert = {
        "status": "firing",
        "labels": {**labels, "evening": str(number)},
        "annotations": {"summary": f"P99 latency of {SERVICE} is 600 ms"},
        "startsAt": start,
        "fingerprint": f"f{number}",
    }
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="P99High",evening="{number}"}}',
        "status": "firing",
        "commonLabels": labels,
        "commonAnnotations": {"summary": f"P99 latency of {SERVICE} is 600 ms"},
        "alerts": [alert],
    }


@pytest.fixture
async def site(tmp_path):
    """A deployment whose one node has an agent, and whose service has a dependency that nobody answers for."""
    peer = f"tcp://127.0.0.1:{free_port()}"
    config = f'[services.{SERVICE}]\nmatch = {{ cmdline = "*killable_bot*" }}\ndependencies = ["{peer}"]\n'
    agent = await asyncio.to_thread(start_agent, tmp_path / "agent", config)
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(
        json.dumps(
            {
                "nodes": [{"name": agent.node, "url": agent.url}],
                "services": [{"name": SERVICE, "nodes": [agent.node]}],
            }
        )
    )
    key = str(agent.folder / "rca-agent.key")
    rig = Deployment(tmp_path, RCA_NODES=str(nodes), RCA_AGENT_KEY=key)
    try:
        await rig.start_redis()
        await rig.start_workspace()
        await rig.start_bot()
        async with WorkspaceClient(rig.workspace_url) as workspace:
            yield Site(rig, workspace)
    finally:
        await rig.close()
        agent.stop()


class Site:
    """One person at work on it."""

    def __init__(self, rig, workspace):
        self.rig = rig
        self.workspace = workspace
        self.lead = workspace.person("U0LEAD")
        self.threads = {}

    async def open(self, number):
        incident = f"INC-{number}"
        answer = await self.rig.http.post(
            f"{self.rig.bot_url}/webhooks/alertmanager", json=notification(number), headers=TOKEN
        )
        assert answer.status_code == 200, answer.text
        card = await self.workspace.wait_for(
            lambda m: incident in m.all_text and not m.is_reply, channel=CHANNEL
        )
        self.threads[incident] = card.ts
        await self.report(incident, "the ranking", lambda r: r["hypotheses"])
        return incident

    async def say(self, incident, text):
        await self.lead.say(CHANNEL, f"@rca {text}", thread_ts=self.threads[incident])

    async def report(self, incident, what, holds):
        async def there():
            answer = await self.rig.report(incident)
            report = answer.json() if answer.status_code == 200 else None
            return report if report and holds(report) else None

        return await until(there, f"{incident}: {what}")

    async def message(self, incident, action_id):
        """The newest message of the thread with such a button."""
        await self.workspace.wait_for(
            lambda m: m.button(action_id) is not None,
            channel=CHANNEL,
            thread_ts=self.threads[incident],
        )
        thread = await self.lead.thread(CHANNEL, self.threads[incident])
        return [m for m in thread if m.button(action_id)][-1]

    async def press(self, incident, action_id):
        message = await self.message(incident, action_id)
        button = message.button(action_id)
        done = await self.lead.click(
            CHANNEL, message.ts, action_id, button.value, block_id=button.block_id
        )
        assert done.is_good, done.error

    async def first_incident(self):
        """A's cause is confirmed; its proposals are in the thread."""
        incident = await self.open(1)
        await self.say(incident, "hypothesis confirm dependency_failure")
        await self.report(
            incident,
            "the confirmed cause",
            lambda r: r["root_cause"]["cause"] == "dependency_failure",
        )
        await self.say(incident, "checklist show")
        report = await self.report(incident, "the proposals", lambda r: r["checklist_changes"])
        assert f"probe: {PROBE}" in report["checklist_changes"][0]["diff"]
        return incident

    async def decided(self, incident, status):
        await self.report(
            incident,
            f"the first change is {status}",
            lambda r: r["checklist_changes"][0]["status"] == status,
        )
        others = (await self.rig.report(incident)).json()["checklist_changes"][1:]
        for number in range(2, 2 + len(others)):
            await self.say(incident, f"checklist accept {number}")
        await self.report(
            incident,
            "every change of the checklist is decided",
            lambda r: all(item["status"] != "proposed" for item in r["checklist_changes"]),
        )
        await self.say(incident, "resolve the dependency is back")
        await self.report(incident, "the end", lambda r: r["incident"]["status"] == "resolved")

    async def second_incident(self):
        """B has looked at its checklist, and says so."""
        incident = await self.open(2)

        def is_checked(report):
            return any("Checks of the list inference-latency" in text for text in texts(report))

        return incident, await self.report(incident, "the checks", is_checked)


def texts(report):
    return [entry["text"] or "" for entry in report["timeline"] if entry["kind"] == "checklist"]


async def test_accepted_change_is_run_by_the_next_incident_which_says_where_it_comes_from(site):
    first = await site.first_incident()
    await site.press(first, "rca.checklist.accept")
    await site.decided(first, "accepted")

    second, report = await site.second_incident()
    learned = [text for text in texts(report) if f"(learned from {first})" in text]
    assert learned, texts(report)
    assert f"probe-{PROBE} (learned from {first}): found something" in learned[0]
    assert "127.0.0.1" in learned[0]
    purposes = [entry["text"] for entry in report["timeline"] if entry["kind"] == "probe"]
    assert purposes, "the check's probe is in the record"
    page = (await site.rig.report(second, "md")).text
    assert "Checks of inference-latency, version" in page
    row = next(line for line in page.splitlines() if line.startswith("| Run the probe"))
    assert "found something" in row and f"| {first} |" in row
    chinese = await site.rig.http.get(
        f"{site.rig.bot_url}/incidents/{second}/report.md?locale=zh-CN",
        headers={"Authorization": "Bearer read"},
    )
    row = next(line for line in chinese.text.splitlines() if line.startswith("| 尽早运行探针"))
    assert "有发现" in row and f"| {first} |" in row
    said = await site.workspace.wait_for(
        lambda m: f"learned from {first}" in m.all_text,
        channel=CHANNEL,
        thread_ts=site.threads[second],
    )
    assert "Learned checks" in said.all_text


async def test_declined_change_is_in_no_later_incident(site):
    first = await site.first_incident()
    await site.press(first, "rca.checklist.decline")
    await site.lead.wait_for_view(lambda view: view.get("callback_id") == "rca_reason")
    done = await site.lead.submit({"reason": "we watch that port elsewhere"})
    assert done.is_good and not done.errors
    await site.decided(first, "declined")

    second, report = await site.second_incident()
    page = (await site.rig.report(second, "md")).text
    assert "Checks of inference-latency, version" in page
    assert "Run the probe" not in page
    assert not [text for text in texts(report) if "(learned from" in text]
    assert not [text for text in texts(report) if f"probe-{PROBE}" in text]
