"""Events of the Kubernetes API: restarts, evictions, failed scheduling, as changes that nobody announced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.change import Change, ChangeKind
from bot.domain.evidence import EvidenceSource
from bot.domain.instant import Window, parse_rfc3339, to_rfc3339
from bot.errors import EvidenceError, Reason
from bot.source import Answer, Connection, HttpSource, get_json, host_of

_PAGE = 500
_PAGES = 10
"""Pages of 500 that are read at most; a cluster keeps events for an hour by default. Source: kube-apiserver --event-ttl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesEvent:
    """One event, repeats folded.

    at: when it was last seen. since: when first. count: how often.
    workload: kind and name of the object that it is about.
    """

    uid: str
    at: datetime
    since: datetime
    count: int
    namespace: str
    workload: str
    reason: str
    message: str
    is_warning: bool

    @property
    def summary(self) -> str:
        """What happened to what, and how often since when.

        A repeated event reads `Pod api-0: BackOff: … (14 times since 01:02)`.
        """
        times = f" ({self.count} times since {self.since:%H:%M})" if self.count > 1 else ""
        return f"{self.workload}: {self.reason}: {self.message}{times}"


class Kubernetes:
    """A client of one cluster's API server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def changes(self, window: Window, *, timeout_seconds: float) -> Answer[Change]:
        """Events last seen in `window`, oldest first, as changes of the infrastructure.

        Raises:
            EvidenceError: refused, late, not authorised, or no event list.
        """
        items: list[KubernetesEvent] = []
        token = ""
        partial: tuple[str, ...] = ()
        for page in range(_PAGES):
            params: dict[str, str | int] = {"limit": _PAGE}
            if token:
                params["continue"] = token
            body = await get_json(
                self._connection, "kubernetes", "/api/v1/events", params,
                timeout_seconds=timeout_seconds,
            )  # fmt: skip
            items.extend(read_events(body, host_of(self._connection.url)))
            metadata = body.get("metadata")
            token = str(metadata.get("continue") or "") if isinstance(metadata, Mapping) else ""
            if not token:
                break
            if page == _PAGES - 1:
                partial = (f"only the first {_PAGES * _PAGE} events were read",)
        inside = [event for event in items if window.start <= event.at <= window.end]
        return Answer(
            items=tuple(_change(event) for event in sorted(inside, key=lambda e: (e.at, e.uid))),
            query="events of all namespaces",
            window=window,
            partial=partial,
        )


def read_events(body: Any, host: str) -> tuple[KubernetesEvent, ...]:
    """The events of an API answer, by when they were last seen; those without any time are left out.

    Raises:
        EvidenceError: the answer is no event list.
    """
    items = body.get("items") if isinstance(body, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise EvidenceError(
            f"kubernetes at {host}: the answer is no event list; check that the address is the API server's",
            reason=Reason.MALFORMED,
        )
    found = [event for item in items if (event := _event(item)) is not None]
    return tuple(sorted(found, key=lambda event: (event.at, event.uid)))


def _event(item: Mapping[str, Any]) -> KubernetesEvent | None:
    metadata, target = _mapping(item.get("metadata")), _mapping(item.get("involvedObject"))
    series = _mapping(item.get("series"))
    created = metadata.get("creationTimestamp")
    # Old and new event APIs leave different times null.
    at = _first_time(
        series.get("lastObservedTime"), item.get("lastTimestamp"), item.get("eventTime"),
        item.get("firstTimestamp"), created,
    )  # fmt: skip
    if at is None:
        return None
    since = _first_time(item.get("firstTimestamp"), item.get("eventTime"), created) or at
    count = series.get("count") or item.get("count") or 1
    return KubernetesEvent(
        uid=str(metadata.get("uid") or f"{metadata.get('namespace')}/{metadata.get('name')}"),
        at=at,
        since=min(since, at),
        count=count if isinstance(count, int) else 1,
        namespace=str(target.get("namespace") or metadata.get("namespace") or ""),
        workload=f"{target.get('kind') or 'Object'} {target.get('name') or '?'}",
        reason=str(item.get("reason") or ""),
        message=" ".join(str(item.get("message") or "").split()),
        is_warning=item.get("type") == "Warning",
    )


def _change(event: KubernetesEvent) -> Change:
    return Change(
        id=f"kubernetes:{event.uid}",
        kind=ChangeKind.INFRA,
        service=None,
        summary=event.summary,
        at=event.at,
        by="kubernetes",
        details={
            "namespace": event.namespace, "object": event.workload, "reason": event.reason,
            "count": event.count, "since": to_rfc3339(event.since), "warning": event.is_warning,
        },
    )  # fmt: skip


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first_time(*values: Any) -> datetime | None:
    for value in values:
        if isinstance(value, str):
            try:
                return parse_rfc3339(value)
            except ValueError:
                continue
    return None


SOURCE = HttpSource(
    name="kubernetes",
    source=EvidenceSource.EVENTS,
    summary="Kubernetes events, read with a token that may list them.",
    setting="kubernetes_url",
    connect=Kubernetes,
)
