"""The file of an approved profile gets into the incident: fetched, checked, stored, named and attached, once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from bot.cause import Catalogue
from bot.diagnosis.request import DiagnosisPorts
from bot.inventory import Inventory, Node
from bot.jobs import probing, requests
from bot.jobs.artefacts import seconds_for
from bot.sources.node_agent import NodeAgents
from bot.store import queue
from bot.store.blobs import blob_key
from tests.agent.live_agent import LiveAgent, start_agent
from tests.agent.live_service import start_service
from tests.web.door import NOW, Door, opened, payload

ARGS = {"service": "svc", "seconds": 1, "tool": "py-spy"}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAgent]:
    folder = tmp_path_factory.mktemp("node")
    service = start_service(folder / "svc", "contended")
    started = start_agent(folder / "agent", f'[probes]\nheavy = ["profile"]\n{service.config()}')
    yield started
    started.stop()
    service.stop()


def _ports(agents: NodeAgents, inventory: Inventory) -> DiagnosisPorts:
    return DiagnosisPorts(
        inventory=inventory, catalogue=Catalogue(causes={}), clock=lambda: NOW, probes=agents
    )


def _agents(agent: LiveAgent, handler: Any = None) -> tuple[NodeAgents, Inventory]:
    inventory = Inventory(nodes={agent.node: Node(name=agent.node, url=agent.url)})
    transport = httpx.MockTransport(handler) if handler else None
    return NodeAgents(inventory, agent.key_pem, transport=transport), inventory


@pytest.fixture
async def door(redis_url: str, agent: LiveAgent) -> AsyncIterator[Door]:
    agents, inventory = _agents(agent)
    async with opened(redis_url, _ports(agents, inventory)) as door:
        await door.take("alertmanager", payload("firing_and_resolved.json"))
        yield door
    await agents.aclose()


async def _run(door: Door, node: str, times: int = 1) -> None:
    """Runs one approved profile as the worker does; more `times` are a worker that died before it could settle."""
    job = requests.probe(
        "INC-1", probes=["profile"], nodes=[node], args=ARGS, by="U0SRE", approved_by="U0LEAD"
    )
    await door.store.commit(queue.enqueue(job, door.now[0]), doing="test")
    handler = probing.handlers(door.services)[requests.PROBE]
    while (claim := await door.services.queue.claim(door.now[0])) is not None:
        if claim.job.kind == requests.PROBE:
            for _ in range(times):
                await handler(claim)
        await door.services.queue.settle(queue.finish(claim, door.now[0]), doing="test")


async def _artefacts(door: Door) -> list[dict[str, Any]]:
    entries = (await door.services.journal.load("INC-1")).entries
    return [
        {**entry.data, "text": entry.text.en, "zh": entry.text.zh}
        for entry in entries
        if entry.data.get("purpose") == "artefact" and entry.text
    ]


async def _posts(door: Door) -> list[dict[str, Any]]:
    return [job["payload"]["message"] for job in await door.jobs("slack.post")]


async def test_profile_is_stored_named_in_the_timeline_and_attached_to_the_thread(
    door: Door, agent: LiveAgent
) -> None:
    before = len(agent.audit())
    await _run(door, agent.node)
    [entry] = await _artefacts(door)
    name, digest = entry["artefact"]["blob"], entry["artefact"]["sha256"]
    content = await door.store.blob(blob_key("INC-1", name))
    assert content is not None
    assert hashlib.sha256(content).hexdigest() == digest
    assert "shared" in json.loads(content)  # a speedscope profile
    assert name.startswith("gpu-1-")
    assert name.endswith(".speedscope.json")
    for text in (entry["text"], entry["zh"]):
        assert name in text
        assert digest in text
    accepted = [line for line in agent.audit()[before:] if line["outcome"] == "accepted"]
    assert accepted[0]["approved_by"] == "U0LEAD"
    assert {line["subject"] for line in accepted} == {"U0SRE"}


async def test_profile_of_a_job_that_ran_twice_is_in_the_record_once(
    door: Door, agent: LiveAgent
) -> None:
    await _run(door, agent.node, times=2)
    assert len(await _artefacts(door)) == 1


async def test_post_of_the_file_is_queued_with_its_entry(redis_url: str, agent: LiveAgent) -> None:
    agents, inventory = _agents(agent)
    async with opened(redis_url, _ports(agents, inventory)) as door:
        await door.take("alertmanager", payload("firing_and_resolved.json"))
        job = requests.probe(
            "INC-1",
            probes=["profile"],
            nodes=[agent.node],
            args=ARGS,
            by="U0SRE",
            approved_by="U0L",
        )
        await door.store.commit(queue.enqueue(job, door.now[0]), doing="test")
        while (claim := await door.services.queue.claim(door.now[0])) is not None:
            if claim.job.kind == requests.PROBE:
                await probing.handlers(door.services)[requests.PROBE](claim)
                break
        [entry] = await _artefacts(door)
        files = [file for post in await _posts(door) for file in post["files"]]
    await agents.aclose()
    assert files == [blob_key("INC-1", entry["artefact"]["blob"])]


async def test_file_that_cannot_be_fetched_is_said_and_the_reading_stands(
    redis_url: str, agent: LiveAgent
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/v1/artefacts/"):
            return httpx.Response(404, json={"error": "no such profile here, or it ended before"})
        told = {"id": "0" * 32, "name": "x.json", "bytes": 5, "sha256": "0" * 64}
        result = {
            "probe": "profile", "node": agent.node, "status": "ok",
            "started_at": "2026-11-30T08:15:00Z", "duration_s": 1.0, "data": {"artefact": told},
            "findings": [{"id": "profile.captured", "severity": "info", "summary": "taken"}],
            "truncated": False, "error": None,
        }  # fmt: skip
        return httpx.Response(200, json=result)

    agents, inventory = _agents(agent, answer)
    async with opened(redis_url, _ports(agents, inventory)) as door:
        await door.take("alertmanager", payload("firing_and_resolved.json"))
        await _run(door, agent.node)
        [entry] = await _artefacts(door)
        assert entry["artefact"] == {}
        assert "could not be fetched" in entry["text"]
        texts = await door.texts()
    assert any("profile" in text and "ok" in text for text in texts)
    await agents.aclose()


@pytest.mark.parametrize(
    ("probe", "args", "seconds"),
    [
        ("host_cpu", {}, 8.0),
        ("host_cpu", {"window_s": 30}, 38.0),
        ("burst_sample", {"seconds": 20}, 28.0),
        ("profile", {"seconds": 60, "tool": "nsys"}, 105.0),
        ("golden_set", {"service": "svc"}, 65.0),
        ("profile", {"seconds": 1e9}, 300.0),
        ("profile", {"seconds": 10**400}, 300.0),
        ("profile", {"seconds": "soon"}, 45.0),
    ],
)
def test_run_is_given_the_time_that_it_needs(
    probe: str, args: dict[str, Any], seconds: float
) -> None:
    assert seconds_for(probe, args, 8.0) == seconds
