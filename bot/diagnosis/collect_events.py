"""Reads what people announced as changed, and what the cluster itself recorded of the service and its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.diagnosis.collect_metrics import Progress
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.change import Change
from bot.domain.evidence import EvidenceSource, Gap
from bot.domain.instant import Window
from bot.errors import EvidenceError


async def collect_events(
    request: DiagnosisRequest, ports: DiagnosisPorts, progress: Progress
) -> None:
    """Fills the changes of the last days, by time; a cluster that is down is a gap and hides none of the others."""
    if ports.changes is None:
        return
    window = Window.before(request.at, request.changes_back_seconds)
    found = list(await ports.changes.between(window.start, window.end))
    if ports.cluster is not None:
        try:
            seen = await ports.cluster.changes(window, timeout_seconds=request.deadline_seconds / 2)
            found.extend(_of_service(request, ports, seen.items))
        except EvidenceError as error:
            # What people announced is still worth reading.
            progress.gaps.append(
                Gap(
                    source=EvidenceSource.EVENTS, plugin="kubernetes", query="events",
                    reason=error.reason.value, detail=str(error),
                )
            )  # fmt: skip
    progress.changes.extend(sorted(found, key=lambda change: (change.at, change.id)))
    progress.answered.add("events")


def _of_service(
    request: DiagnosisRequest, ports: DiagnosisPorts, events: Sequence[Change]
) -> list[Change]:
    """Events of the service's own objects and of its nodes; another workload's trouble is not its own."""
    service = ports.service(request.service)
    found: list[Change] = []
    for event in events:
        name = str(event.details.get("object", "")).partition(" ")[2]
        if name == service.name or name.startswith(f"{service.name}-"):
            found.append(replace(event, service=service.name))
        elif name in service.nodes:
            found.append(event)
    return found
