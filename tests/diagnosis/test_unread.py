"""A node that did not let a probe run says so; a probe that ran and broke is another thing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from bot.agent.keys import write_key_pair
from bot.diagnosis.engine import Diagnosis, diagnose
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.hypothesis import Layer
from bot.inventory import Inventory, Node
from bot.sources.node_agent import NodeAgents
from tests.diagnosis.worlds import AT, CATALOGUE, NODE, SERVICE

_BUSY = httpx.Response(429, json={"error": "more than 9 requests a minute"})
_FULL = httpx.Response(503, json={"error": "the audit cannot be written"})


async def _diagnose(folder: Path, answer: httpx.Response, *, only: str) -> Diagnosis:
    """A pass over one node that gives `answer` to the probe `only`, or to all, and a clean one to the others."""

    def handle(request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        if only in ("", name):
            headers = {"Retry-After": "7", "Content-Type": "application/json"}
            return httpx.Response(answer.status_code, content=answer.content, headers=headers)
        found = {"probe": name, "node": NODE, "status": "ok", "duration_s": 0.1, "findings": []}
        return httpx.Response(200, text=json.dumps(found | {"started_at": "2026-11-30T20:30:00Z"}))

    private, _ = write_key_pair(folder)
    inventory = Inventory(
        nodes={NODE: Node(name=NODE, url="http://agent.example:9477")},
        services={SERVICE.name: SERVICE},
    )
    agents = NodeAgents(inventory, private.read_text(), transport=httpx.MockTransport(handle))
    ports = DiagnosisPorts(
        inventory=inventory,
        catalogue=CATALOGUE,
        clock=lambda: datetime.now(UTC),
        probes=agents,
    )
    try:
        request = DiagnosisRequest(service=SERVICE.name, at=AT, deadline_seconds=30.0)
        return await diagnose(request, ports)
    finally:
        await agents.aclose()


@pytest.mark.parametrize(
    ("answer", "reason", "en", "zh"),
    [
        (_BUSY, "rate_limited", "the agent took no more requests", "代理暂不接受更多请求"),
        (_FULL, "refused", "could not be reached or answered with an error", "或返回错误"),
    ],
    ids=["429", "503"],
)
@pytest.mark.parametrize("only", ["", "host_memory"], ids=["all", "one"])
async def test_node_that_refuses_did_not_run_the_probe(
    tmp_path: Path, answer: httpx.Response, reason: str, en: str, zh: str, only: str
) -> None:
    diagnosis = await _diagnose(tmp_path, answer, only=only)
    [host] = [item for item in diagnosis.layers if item.layer is Layer.HOST]
    assert en in host.why.en
    assert zh in host.why.zh
    spots = [item.why for item in diagnosis.blind_spots]
    assert any(en in why.en and zh in why.zh for why in spots)
    for why in (host.why, *spots):
        assert "the probe failed" not in why.en
        # No word of English where nothing was asked at all.
        assert "configured" not in why.zh
    gaps = [gap for gap in diagnosis.gaps if gap.plugin == "host_memory"]
    assert [gap.reason for gap in gaps] == [reason]
    said = json.loads(answer.content)["error"]
    # What the agent said stands there once, without words of ours that say the same.
    assert gaps[0].detail == (
        f"agent of {NODE}: answered HTTP {answer.status_code}: {said}; ask again in 7 s"
    )
