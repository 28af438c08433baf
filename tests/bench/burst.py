"""A burst of distinct alerts with the channel limiter on: each is durable, listed, and counted on one storm anchor."""

import asyncio
import collections
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.bench.node_stub import NodeStub
from tests.scenarios.rig import CHANNEL, TOKEN, Deployment, until

ALERTS = 2_000
SENDERS = 16
READ = {"Authorization": "Bearer read", "Accept": "application/json"}


def distinct(number: int, service: str = "translate-api") -> dict[str, Any]:
    """One alert in a group of its own, as Alertmanager sends it with `group_by: [...]`."""
    labels = {
        "alertname": "GpuXidError",
        "service": service,
        "instance": f"node-{number}",
        "severity": "page",
    }
    return {
        "version": "4",
        "status": "firing",
        "groupKey": f'{{}}:{{alertname="GpuXidError", instance="node-{number}"}}',
        "commonLabels": labels,
        "commonAnnotations": {"summary": f"XID 79 on node-{number}"},
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": {"summary": f"XID 79 on node-{number}"},
                "startsAt": "2026-03-04T01:10:00Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "fingerprint": f"{number:016x}",
            }
        ],
    }


async def fire(rig: Deployment, bodies: list[dict[str, Any]]) -> list[tuple[int, str, float]]:
    """Posts all bodies over `SENDERS` connections: status, incident, milliseconds of each."""
    left = collections.deque(enumerate(bodies))
    answers: list[tuple[int, str, float]] = [(0, "", 0.0)] * len(bodies)
    limits = httpx.Limits(max_connections=SENDERS)
    async with httpx.AsyncClient(timeout=60, trust_env=False, limits=limits) as http:

        async def sender() -> None:
            while left:
                place, body = left.popleft()
                began = time.perf_counter()
                answer = await http.post(
                    f"{rig.bot_url}/webhooks/alertmanager", json=body, headers=TOKEN
                )
                taken = (time.perf_counter() - began) * 1000
                incident = answer.json().get("incident") if answer.is_success else ""
                answers[place] = (answer.status_code, str(incident), taken)

        await asyncio.gather(*(sender() for _ in range(SENDERS)))
    return answers


async def listed(rig: Deployment) -> dict[str, dict[str, Any]]:
    """All incidents of `/incidents`, page by page."""
    found: dict[str, dict[str, Any]] = {}
    path: str | None = "/incidents"
    while path:
        answer = (await rig.http.get(f"{rig.bot_url}{path}", headers=READ)).json()
        found |= {item["id"]: item for item in answer["incidents"]}
        path = answer["next"]
    return found


async def messages(rig: Deployment) -> list[dict[str, Any]]:
    """All messages of the channel, oldest first."""
    answer = await rig.http.get(
        f"{rig.workspace_url}/control/messages", params={"channel": CHANNEL}
    )
    return list(answer.json()["messages"])


@contextmanager
def agent(root: Path) -> Iterator[tuple[NodeStub, dict[str, str]]]:
    """A node that counts what it is asked, and the settings that point the bot at it."""
    with NodeStub() as stub:
        yield stub, stub.environment(root)


def percentile(values: list[float], share: float) -> float:
    """A percentile, nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
