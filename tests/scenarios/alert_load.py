"""Many alerts at once, as senders deliver them, and what the bot has on record of them."""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.scenarios.rig import TOKEN, Deployment

SENDERS = 16
READ = {"Authorization": "Bearer read", "Accept": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one delivery got."""

    status: int
    incident: str
    milliseconds: float


def body(
    key: str, alerts: Sequence[int], *, service: str = "translate-api", status: str = "firing"
) -> dict[str, Any]:
    """One notification of the group `key` about the alerts of these numbers."""
    common = {"alertname": "GpuXidError", "service": service, "severity": "page", "group": key}
    return {
        "version": "4",
        "status": status,
        "groupKey": f'{{}}:{{alertname="GpuXidError", group="{key}"}}',
        "groupLabels": {"group": key},
        "commonLabels": common,
        "commonAnnotations": {"summary": f"XID 79 in {key}"},
        "alerts": [
            {
                "status": status,
                "labels": {**common, "instance": f"node-{number}"},
                "annotations": {"summary": f"XID 79 on node-{number}"},
                "startsAt": "2026-03-04T01:10:00Z",
                "endsAt": "0001-01-01T00:00:00Z" if status == "firing" else "2026-03-04T01:20:00Z",
                "fingerprint": f"{number:016x}",
            }
            for number in alerts
        ],
    }


def distinct(number: int) -> dict[str, Any]:
    """One alert in a group of its own."""
    return body(f"g{number}", [number])


async def fire(rig: Deployment, bodies: Sequence[dict[str, Any]]) -> list[Answer]:
    """Posts all bodies over `SENDERS` connections; the answers in the order of the bodies."""
    left = collections.deque(enumerate(bodies))
    answers: dict[int, Answer] = {}
    limits = httpx.Limits(max_connections=SENDERS)
    async with httpx.AsyncClient(timeout=60, trust_env=False, limits=limits) as http:

        async def sender() -> None:
            while left:
                place, one = left.popleft()
                began = time.perf_counter()
                answer = await http.post(
                    f"{rig.bot_url}/webhooks/alertmanager", json=one, headers=TOKEN
                )
                taken = (time.perf_counter() - began) * 1000
                named = answer.json().get("incident") or "" if answer.is_success else ""
                answers[place] = Answer(
                    status=answer.status_code, incident=named, milliseconds=taken
                )

        await asyncio.gather(*(sender() for _ in range(SENDERS)))
    return [answers[place] for place in range(len(bodies))]


async def incidents(rig: Deployment) -> dict[str, dict[str, Any]]:
    """All of `/incidents`, page by page, by id."""
    found: dict[str, dict[str, Any]] = {}
    path: str | None = "/incidents"
    while path:
        answer = (await rig.http.get(f"{rig.bot_url}{path}", headers=READ)).json()
        found |= {item["id"]: item for item in answer["incidents"]}
        path = answer["next"]
    return found


def in_order(report: dict[str, Any], summaries: Sequence[str]) -> bool:
    """Whether a report's timeline has each of these alerts once, in this order, and no number is left out."""
    entries = report["timeline"]
    said = [entry["text"] for entry in entries if entry["kind"] == "alert"]
    found = [next((one for one in said if one.endswith(text)), None) for text in summaries]
    seqs = sorted(entry["seq"] for entry in entries)
    return (
        None not in found
        and len(said) == len(summaries)
        and [said.index(str(one)) for one in found] == list(range(len(said)))
        and seqs == list(range(1, len(seqs) + 1))
    )


def resident_mib(pid: int) -> float:
    """How much memory a process holds now."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} is gone")


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile, nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
