"""Kubernetes events: null times of both API generations, repeats, and whose they are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx

from bot.domain.instant import Window
from bot.source import Connection
from bot.sources.kubernetes import Kubernetes, read_events

WINDOW = Window(datetime(2026, 3, 4, 0, 30, tzinfo=UTC), datetime(2026, 3, 4, 1, 30, tzinfo=UTC))


def event(name: str, pod: str = "embed-0", **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "prod", "creationTimestamp": "2026-03-04T01:05:00Z"},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "prod"},
        "reason": "Unhealthy", "message": "probe failed", "type": "Warning",
        "firstTimestamp": None, "lastTimestamp": None, "eventTime": None, "series": None, "count": None,
        **fields,
    }  # fmt: skip


EVENTS = [
    event("old", firstTimestamp="2026-03-04T00:58:00Z", lastTimestamp="2026-03-04T01:11:30Z", count=27),
    event("new", eventTime="2026-03-04T01:12:00.482913Z"),
    event(
        "series", eventTime="2026-03-04T01:02:00.000001Z",
        series={"count": 14, "lastObservedTime": "2026-03-04T01:13:10.250000Z"},
    ),
    event("created"),
    event("past", pod="batch-1", firstTimestamp="2026-03-03T22:00:00Z", lastTimestamp="2026-03-03T22:00:00Z", count=1),
]  # fmt: skip


def client(*pages: dict[str, Any]) -> tuple[Kubernetes, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=pages[len(seen) - 1])

    http = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    return Kubernetes(Connection(url="https://cluster:6443", http=http, token="t")), seen


def test_events_without_a_time_of_their_own_are_ordered_by_what_they_have() -> None:
    found = read_events({"items": list(reversed(EVENTS))}, "cluster")
    assert [item.uid.rpartition("/")[2] for item in found] == [
        "past",
        "created",
        "old",
        "new",
        "series",
    ]
    assert [f"{item.at:%d %H:%M:%S}" for item in found] == [
        "03 22:00:00", "04 01:05:00", "04 01:11:30", "04 01:12:00", "04 01:13:10",
    ]  # fmt: skip


def test_repeats_are_told_with_their_count_and_start() -> None:
    told = {
        item.uid.rpartition("/")[2]: item.summary for item in read_events({"items": EVENTS}, "c")
    }
    assert told["old"].endswith("(27 times since 00:58)")
    assert told["series"].endswith("(14 times since 01:02)")
    assert "times" not in told["new"]


def test_an_event_without_any_time_is_left_out_and_hurts_nobody() -> None:
    timeless = event("timeless")
    timeless["metadata"]["creationTimestamp"] = None
    assert len(read_events({"items": [timeless, event("created")]}, "c")) == 1


async def test_only_the_window_is_told_and_every_page_is_read() -> None:
    source, seen = client(
        {"metadata": {"continue": "more"}, "items": EVENTS[:2]},
        {"metadata": {}, "items": EVENTS[2:]},
    )
    answer = await source.changes(WINDOW, timeout_seconds=1)
    assert len(answer.items) == 4, "what was three hours earlier is outside"
    assert [request.url.params.get("continue") for request in seen] == [None, "more"]
