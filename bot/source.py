"""What an evidence source is: it answers found, empty or unreachable, and never guesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import httpx

from bot.domain.change import Change
from bot.domain.evidence import EvidenceSource, Series, SourceState
from bot.domain.finding import ProbeResult
from bot.domain.instant import Window
from bot.domain.silence import SentAlert
from bot.errors import EvidenceError, Reason

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """What one question brought.

    items: what was found; empty when nothing matched.
    partial: the source's own warnings, kept word for word; not empty means that items are not the whole truth.
    dropped: non-finite values that became gaps.
    """

    items: tuple[T, ...]
    query: str
    window: Window
    partial: tuple[str, ...] = ()
    dropped: int = 0

    @property
    def state(self) -> SourceState:
        """`OK` when something was found, else `EMPTY`."""
        return SourceState.OK if self.items else SourceState.EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line; `at_ns` keeps all 19 digits, which a float would lose."""

    at_ns: int
    labels: Mapping[str, str]
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)


UNFINISHED = "rca.unfinished"
"""Tag of a span that has no end: what it was doing hung or was killed, and how long it took nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One unit of work of a trace; `parent` is None for a root, `parent_missing` marks one whose parent is lost."""

    trace_id: str
    span_id: str
    parent: str | None
    service: str
    operation: str
    start_us: int
    duration_us: int
    tags: Mapping[str, str]
    follows: bool = False
    parent_missing: bool = False


class MetricsSource(Protocol):
    """Answers PromQL."""

    async def names(self, window: Window, *, timeout_seconds: float) -> frozenset[str]:
        """Names of the metrics that have samples in `window`."""
        ...

    async def range(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        """The series of a query over a window; the effective step is in each series."""
        ...

    async def instant(self, query: str, at: datetime, *, timeout_seconds: float) -> Answer[Series]:
        """The value of a query at one moment, or the raw samples of a range selector."""
        ...


class LogsSource(Protocol):
    """Answers LogQL."""

    async def lines(
        self, query: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[LogLine]:
        """The newest `limit` lines, oldest first."""
        ...

    async def volume(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        """A metric query over logs."""
        ...


class TracesSource(Protocol):
    """Answers with the spans of whole traces."""

    async def spans(
        self, service: str, window: Window, *, limit: int, timeout_seconds: float
    ) -> Answer[Span]:
        """All spans of up to `limit` traces that touch `service`."""
        ...


class EventsSource(Protocol):
    """Answers with what somebody changed."""

    async def changes(self, window: Window, *, timeout_seconds: float) -> Answer[Change]:
        """Changes in `window`, oldest first."""
        ...


class ChangeStore(Protocol):
    """Where change events are kept."""

    async def between(self, start: datetime, end: datetime) -> Sequence[Change]:
        """The changes from `start` to `end`, both included."""
        ...


class SilencesSource(Protocol):
    """Answers which alerts are silenced where they are sent from."""

    async def alerts(self, *, timeout_seconds: float) -> tuple[SentAlert, ...]:
        """The alerts there with the silences that cover them; nothing at all while no silence is on."""
        ...


class ProbeRunner(Protocol):
    """Runs probes on nodes; what went wrong is in the result, never an exception."""

    async def run(
        self,
        node: str,
        probe: str,
        args: Mapping[str, Any],
        *,
        subject: str,
        timeout_seconds: float,
        approved_by: str | None = None,
    ) -> ProbeResult:
        """One run; `subject` is who asked, `approved_by` who approved a heavy one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How to reach a source over HTTP. `token` is sent as a bearer and never printed."""

    url: str
    http: httpx.AsyncClient
    token: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """Request headers."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSource:
    """One kind of source that is reached over HTTP; `name` is its file's name.

    setting: the field of `Settings` that holds its address.
    connect: makes the client.
    """

    name: str
    source: EvidenceSource
    summary: str
    setting: str
    connect: Callable[[Connection], MetricsSource | LogsSource | TracesSource | EventsSource]


def host_of(url: str) -> str:
    """Host and port of a URL, the only part of it that may stand in a message."""
    parts = httpx.URL(url)
    return f"{parts.host}:{parts.port}" if parts.port else parts.host


def reason_of_status(status: int) -> Reason:
    """The closed reason of an HTTP status that is no success."""
    match status:
        case 401 | 403:
            return Reason.UNAUTHORISED
        case 404:
            return Reason.NOT_FOUND
        case 429:
            return Reason.RATE_LIMITED
        case 400 | 422:
            return Reason.MALFORMED
        case _:
            return Reason.REFUSED


def advice_of_status(status: int) -> str:
    """What to do about an HTTP status that is no success.

    >>> advice_of_status(503)
    'it is not available now; check its health and ask again'
    """
    match status:
        case 401 | 403:
            return "check the credentials"
        case 404:
            return "check that the address is its own"
        case 429:
            return "it limits requests; ask again later"
        case 400 | 422:
            return "check the query"
        case _ if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            return "it is not available now; check its health and ask again"
        case _:
            return "check the address and what stands before it"


def without_answer(
    error: httpx.HTTPError, where: str, *, seconds: float, late: str
) -> tuple[str, Reason]:
    """The line and the reason of a request that got no answer; `late` is what to do where it took too long."""
    if isinstance(error, httpx.TimeoutException):
        return f"{where}: no answer within {seconds:g} s; {late}", Reason.TIMEOUT
    why = f"cannot be reached: {type(error).__name__}; check address and network"
    return f"{where}: {why}", Reason.REFUSED


async def get_json(
    connection: Connection,
    name: str,
    path: str,
    params: Mapping[str, str | int],
    *,
    timeout_seconds: float,
) -> Any:
    """One GET; the decoded body.

    Raises:
        EvidenceError: refused, late, not authorised, rate limited, or no JSON; says which source and host.
    """
    where = f"{name} at {host_of(connection.url)}"
    try:
        response = await connection.http.get(
            connection.url.rstrip("/") + path,
            params=dict(params),
            headers=connection.headers,
            timeout=timeout_seconds,
        )
    except httpx.HTTPError as error:
        late = "check its load or ask for less"
        line, reason = without_answer(error, where, seconds=timeout_seconds, late=late)
        raise EvidenceError(line, reason=reason) from error
    if response.status_code != httpx.codes.OK:
        raise EvidenceError(
            f"{where}: answered {response.status_code}; {advice_of_status(response.status_code)}",
            reason=reason_of_status(response.status_code),
        )
    try:
        return response.json()
    except ValueError as error:
        raise EvidenceError(
            f"{where}: the answer is no JSON; check that the address is {name}'s own",
            reason=Reason.MALFORMED,
        ) from error
