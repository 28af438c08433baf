"""What is broken around the bot is said in one clear line to the person who can act on it; nothing is lost."""

import asyncio
import json
import socket
import threading

import pytest

from bot.workspace.client import WorkspaceClient
from tests.conftest import free_port
from tests.scenarios.rig import CHANNEL, TOKEN, Deployment
from tests.scenarios.test_crash import notification
from tests.waiting import PATIENCE_SECONDS, until


@pytest.fixture
def hanging_agent():
    """A port that takes connections and never answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []
    stop = threading.Event()
    listener.settimeout(0.2)

    def hold():
        while not stop.is_set():
            try:
                held.append(listener.accept()[0])
            except TimeoutError:
                continue

    thread = threading.Thread(target=hold)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    stop.set()
    thread.join()
    for connection in held:
        connection.close()
    listener.close()


@pytest.fixture
async def broken(tmp_path, hanging_agent):
    """A deployment whose Prometheus is not there and whose only agent hangs."""
    from bot.agent.keys import write_key_pair

    key, _ = write_key_pair(tmp_path)
    inventory = tmp_path / "nodes.yaml"
    inventory.write_text(
        json.dumps(
            {
                "nodes": [{"name": "gpu-1", "url": hanging_agent}],
                "services": [{"name": "translate-api", "nodes": ["gpu-1"]}],
            }
        )
    )
    rig = Deployment(
        tmp_path,
        PROMETHEUS_URL=f"http://127.0.0.1:{free_port()}",
        RCA_NODES=str(inventory),
        RCA_AGENT_KEY=str(key),
    )
    try:
        await rig.start_redis()
        await rig.start_workspace()
        await rig.start_bot()
        yield rig
    finally:
        await rig.close()


async def test_sources_that_are_down_are_named_and_the_ranking_comes_anyway(broken):
    await broken.http.post(
        f"{broken.bot_url}/webhooks/alertmanager", json=notification(), headers=TOKEN
    )
    async with WorkspaceClient(broken.workspace_url) as workspace:
        evidence = await workspace.wait_for(
            lambda m: m.is_reply and "Evidence collected" in m.all_text, channel=CHANNEL
        )
        lines = evidence.all_text.splitlines()
        metrics = next(line for line in lines if "Metrics" in line)
        probes = next(line for line in lines if "Node probes" in line)
        assert "unreachable" in metrics
        assert "cannot be reached" in metrics
        assert "unreachable" in probes
        ranked = await workspace.wait_for(
            lambda m: m.is_reply and "most likely first" in m.all_text, channel=CHANNEL
        )
        assert "not established" in ranked.all_text.splitlines()[1]
    report = (await broken.report("INC-1")).json()
    assert report["hypotheses"][0]["cause"] == "not_established"
    assert any(spot["what"] for spot in report["blind_spots"])


async def test_redis_that_dies_under_way_costs_nothing_but_time(deployment):
    rig = deployment
    await rig.start_bot()
    body = notification()
    rig.processes["redis"].kill()
    rig.processes["redis"].wait()

    async def refused():
        answer = await rig.http.post(
            f"{rig.bot_url}/webhooks/alertmanager", json=body, headers=TOKEN
        )
        return answer.status_code == 503 and "Redis" in answer.json()["error"]

    await until(refused, "the sender is told to repeat")
    health = await rig.http.get(f"{rig.bot_url}/readyz")
    assert health.status_code == 503
    assert "Redis" in health.json()["redis"]
    await rig.start_redis()

    async def accepted():
        answer = await rig.http.post(
            f"{rig.bot_url}/webhooks/alertmanager", json=body, headers=TOKEN
        )
        return answer.status_code == 200

    await until(accepted, "the same alert is taken once Redis is back")
    async with WorkspaceClient(rig.workspace_url) as workspace:
        await workspace.wait_for(lambda m: "INC-" in m.all_text and not m.is_reply, channel=CHANNEL)
    assert len(await rig.incidents()) == 1


async def test_slack_that_is_down_delays_what_is_said_and_loses_none_of_it(deployment):
    rig = deployment
    await rig.start_bot()
    rig.processes["workspace"].terminate()
    rig.processes["workspace"].wait(PATIENCE_SECONDS)
    answer = await rig.http.post(
        f"{rig.bot_url}/webhooks/alertmanager", json=notification(), headers=TOKEN
    )
    assert answer.status_code == 200

    async def collected():
        report = await rig.report("INC-1")
        return report.status_code == 200 and report.json()["hypotheses"]

    await until(collected, "evidence is collected without Slack")
    assert (await rig.http.get(f"{rig.bot_url}/readyz")).status_code == 200
    await rig.start_workspace()
    async with WorkspaceClient(rig.workspace_url) as workspace:
        await workspace.wait_for(
            lambda m: m.is_reply and "most likely first" in m.all_text, channel=CHANNEL
        )
        roots = [m for m in await workspace.messages(CHANNEL) if not m.is_reply]
    assert len(roots) == 1


async def test_a_stop_in_the_middle_finishes_what_is_in_hand(deployment):
    rig = deployment
    process = await rig.start_bot()
    await rig.http.post(f"{rig.bot_url}/webhooks/alertmanager", json=notification(), headers=TOKEN)
    process.terminate()
    code = await asyncio.to_thread(process.wait, PATIENCE_SECONDS)
    assert code == 0, rig.log("bot")
    await rig.start_bot()
    async with WorkspaceClient(rig.workspace_url) as workspace:
        await workspace.wait_for(
            lambda m: m.is_reply and "most likely first" in m.all_text, channel=CHANNEL
        )
        texts = [m.all_text for m in await workspace.messages(CHANNEL)]
    assert len(texts) == len(set(texts))
