"""The variants of the demo: what is wrong from the start, what happens in the evening, and what puts it right."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from bot.demo.neighbour import NAME as NEIGHBOUR
from bot.demo.pinned_pool import PoolMode
from bot.demo.processes import Program
from bot.demo.service import SERVICE
from bot.domain.instant import to_rfc3339

_NEIGHBOUR_THREADS_PER_CPU = 4
"""Source: our own runs on two CPUs, 2026-11-30: P99 at the gateway 0.07 s without, above 0.5 s with four per CPU."""


class Fault(StrEnum):
    """Which fault the demo carries."""

    PINNED = "pinned"
    NONE = "none"
    CPU = "cpu"

    @property
    def initial_pool(self) -> PoolMode:
        """How the service stages its input when the demo starts."""
        return PoolMode.PER_REQUEST if self is Fault.PINNED else PoolMode.PREALLOCATED

    @property
    def raises_alert(self) -> bool:
        """Whether the evening peak brings the symptom."""
        return self is not Fault.NONE

    @property
    def expected_cause(self) -> str:
        """The cause that a right diagnosis ends with; used by tests and never shown to the bot."""
        return {
            Fault.PINNED: "pinned_memory_contention",
            Fault.NONE: "not_established",
            Fault.CPU: "cpu_contention",
        }[self]


def neighbour(log: Path) -> Program:
    """The re-indexing job that takes the CPU in the variant `cpu`."""
    threads = _NEIGHBOUR_THREADS_PER_CPU * len(os.sched_getaffinity(0))
    return Program(
        name=NEIGHBOUR,
        command=(sys.executable, "-m", "bot.demo.neighbour", "--threads", str(threads)),
        log=log,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A change event in the shape of `POST /webhooks/changes`."""

    id: str
    kind: str
    service: str
    summary: str
    at: datetime
    by: str

    def to_json(self) -> dict[str, object]:
        """The wire shape."""
        return {
            "id": self.id,
            "kind": self.kind,
            "service": self.service,
            "summary": self.summary,
            "at": to_rfc3339(self.at),
            "by": self.by,
            "url": f"https://changes.example.com/{self.id}",
            "details": {},
        }


def recorded_changes(fault: Fault, now: datetime) -> Iterator[RecordedChange]:
    """What the delivery system knows: a fresh deploy of somebody else, and with the fault its old change."""
    yield RecordedChange(
        id="deploy-8841",
        kind="deploy",
        service="web-frontend",
        summary="release 4.2.1: new page footer",
        at=now - timedelta(minutes=25),
        by="ci",
    )
    if fault is Fault.PINNED:
        yield RecordedChange(
            id="config-2207",
            kind="config",
            service=SERVICE,
            summary="staging buffers: allocate pinned host memory per request, to give back 64 MiB at idle",
            at=now - timedelta(days=3, hours=2),
            by="chen.siyuan",
        )
