"""Announced changes and the cluster's own events, together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.diagnosis.collect_events import collect_events
from bot.diagnosis.collect_metrics import Progress
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.change import Change, ChangeKind
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.inventory import Inventory
from bot.source import Answer
from tests.diagnosis.worlds import AT, CATALOGUE, NODE, SERVICE, WINDOW, change


def event(name: str, target: str, minutes: int) -> Change:
    return Change(
        id=name, kind=ChangeKind.INFRA, service=None, summary="BackOff", at=AT - timedelta(minutes=minutes),
        details={"object": target},
    )  # fmt: skip


class Cluster:
    def __init__(self, *events: Change, down: bool = False) -> None:
        self._events, self._down = events, down

    async def changes(self, window: Window, *, timeout_seconds: float) -> Answer[Change]:
        if self._down:
            raise EvidenceError("kubernetes: refused", reason=Reason.REFUSED)
        return Answer(items=self._events, query="events", window=window)


class Store:
    async def between(self, start: datetime, end: datetime) -> Sequence[Change]:
        return [change("deploy", "new image", AT - timedelta(minutes=30))]


async def collected(cluster: Cluster) -> Progress:
    progress = Progress(window=WINDOW)
    ports = DiagnosisPorts(
        inventory=Inventory(services={SERVICE.name: SERVICE}), catalogue=CATALOGUE, clock=lambda: AT,
        changes=Store(), cluster=cluster,
    )  # fmt: skip
    await collect_events(DiagnosisRequest(service=SERVICE.name, at=AT), ports, progress)
    return progress


async def test_only_events_of_the_services_pods_and_nodes_are_kept_in_order() -> None:
    found = await collected(
        Cluster(
            event("own", f"Pod {SERVICE.name}-7f-x2", 40), event("node", f"Node {NODE}", 20),
            event("other", "Pod billing-0", 25), event("alike", f"Pod {SERVICE.name}er-0", 25),
        )
    )  # fmt: skip
    assert [(item.id, item.service) for item in found.changes] == [
        ("own", SERVICE.name), ("deploy", SERVICE.name), ("node", None),
    ]  # fmt: skip


async def test_a_cluster_that_is_down_hides_no_announced_change() -> None:
    found = await collected(Cluster(down=True))
    assert [item.id for item in found.changes] == ["deploy"]
    assert [gap.plugin for gap in found.gaps] == ["kubernetes"]
