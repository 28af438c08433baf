"""Metrics from Prometheus; the only importer of `prometheus_api_client`.

The library keeps only `data.result`, retries on its own and rounds times; so it is given a session that keeps the
warnings, no retries, and explicit times.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import requests
from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect
from urllib3.util.retry import Retry

from bot.device.field import is_wide_blank
from bot.domain.evidence import EvidenceSource, Sample, Series
from bot.domain.instant import Window
from bot.errors import EvidenceError, Reason
from bot.source import Answer, Connection, HttpSource, advice_of_status, host_of, reason_of_status

MOST_POINTS = 11_000
"""Points per series that the server gives at most. Source: Prometheus' query_range handler."""

_PARALLEL = 8
_HTTP_OK = 200


class Prometheus:
    """A client of one Prometheus; calls run in its own few threads, each with its own session."""

    def __init__(self, connection: Connection) -> None:
        self._url = connection.url.rstrip("/")
        self._where = f"Prometheus at {host_of(connection.url)}"
        self._headers = connection.headers
        self._threads = ThreadPoolExecutor(_PARALLEL, thread_name_prefix="prometheus")
        self._local = threading.local()
        self._sessions: list[requests.Session] = []

    async def aclose(self) -> None:
        """Lets the threads and their connections go; calls that are under way end by their own deadline."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for session in self._sessions:
            session.close()

    async def names(self, window: Window, *, timeout_seconds: float) -> frozenset[str]:
        """Names of the metrics that have samples in `window`.

        Raises:
            EvidenceError: the server did not answer.
        """
        params = {"start": window.start.timestamp(), "end": window.end.timestamp()}
        values, _ = await self._call(
            lambda client: client.get_label_values("__name__", params=params), timeout_seconds
        )
        return frozenset(str(value) for value in values)

    async def range(
        self, query: str, window: Window, *, step_seconds: float, timeout_seconds: float
    ) -> Answer[Series]:
        """The series of `query`; the step is raised, never lowered, to stay within the server's point limit.

        Raises:
            EvidenceError: the server did not answer, or the query is not understood.
        """
        step = effective_step(window, step_seconds)
        # The library rounds to whole seconds; a start on the step's grid makes equal questions equal.
        start = math.floor(window.start.timestamp())
        end = math.ceil(window.end.timestamp())
        result, warnings = await self._call(
            lambda client: client.custom_query_range(
                query,
                datetime.fromtimestamp(start, UTC),
                datetime.fromtimestamp(end, UTC),
                f"{step:g}",
            ),
            timeout_seconds,
        )
        return _answer(result, query, window, step, warnings)

    async def instant(self, query: str, at: datetime, *, timeout_seconds: float) -> Answer[Series]:
        """The value of `query` at `at`; a range selector gives its raw samples.

        Raises:
            EvidenceError: the server did not answer, or the query is not understood.
        """
        params = {"time": at.timestamp()}
        result, warnings = await self._call(
            lambda client: client.custom_query(query, params=params), timeout_seconds
        )
        return _answer(result, query, Window(at, at), 0.0, warnings)

    async def _call(
        self, ask: Callable[[PrometheusConnect], Any], timeout_seconds: float
    ) -> tuple[Any, tuple[str, ...]]:
        loop = asyncio.get_running_loop()
        # The thread has its own deadline; the outer one covers the wait for a free thread.
        work = loop.run_in_executor(self._threads, self._ask, ask, timeout_seconds)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await work
        except TimeoutError as error:
            raise EvidenceError(
                f"{self._where}: no answer within {timeout_seconds:g} s; ask for less or check its load",
                reason=Reason.TIMEOUT,
            ) from error

    def _ask(
        self, ask: Callable[[PrometheusConnect], Any], timeout_seconds: float
    ) -> tuple[Any, tuple[str, ...]]:
        local = self._local
        if not hasattr(local, "client"):
            session = requests.Session()
            session.trust_env = False
            self._sessions.append(session)
            session.hooks["response"].append(self._keep)
            local.client = PrometheusConnect(
                url=self._url,
                headers=self._headers,
                session=session,
                retry=Retry(total=0, redirect=0, raise_on_status=False),
            )
        local.client._timeout = timeout_seconds  # noqa: SLF001 - the only door to a per-call timeout of every call
        local.status = None
        local.warnings = ()
        try:
            return ask(local.client), local.warnings
        except requests.Timeout as error:
            raise EvidenceError(
                f"{self._where}: no answer within {timeout_seconds:g} s; ask for less or check its load",
                reason=Reason.TIMEOUT,
            ) from error
        except PrometheusApiClientException as error:
            status = local.status or 0
            raise EvidenceError(
                f"{self._where}: answered {status}{_said(error)}; {advice_of_status(status)}",
                reason=reason_of_status(status),
            ) from error
        except requests.ConnectionError as error:
            raise EvidenceError(
                f"{self._where}: cannot be reached; check address and network",
                reason=Reason.REFUSED,
            ) from error
        except (requests.RequestException, ValueError, KeyError, TypeError) as error:
            raise EvidenceError(
                f"{self._where}: the answer is not Prometheus' JSON; check that the address is its own",
                reason=Reason.MALFORMED,
            ) from error

    def _keep(self, response: requests.Response, *_: object, **__: object) -> None:
        self._local.status = response.status_code
        if response.status_code == _HTTP_OK:
            try:
                body = response.json()
            except ValueError:
                return
            if isinstance(body, Mapping):
                self._local.warnings = tuple(str(item) for item in body.get("warnings") or ())


def effective_step(window: Window, wanted_seconds: float) -> float:
    """The wanted step, raised to a whole second where the server's limit of points asks for it.

    >>> hours = Window(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    >>> effective_step(hours, 10)
    16
    """
    least = window.seconds / (MOST_POINTS - 1)
    return wanted_seconds if wanted_seconds >= least else math.ceil(least)


def _said(error: Exception) -> str:
    text = str(error)
    start = text.find('"error":"')
    return f": {text[start + 9 :].split(chr(34))[0][:160]}" if start >= 0 else ""


def _answer(
    result: Any, query: str, window: Window, step: float, warnings: tuple[str, ...]
) -> Answer[Series]:
    if not isinstance(result, Sequence) or isinstance(result, str):
        raise TypeError("result is no list")
    if len(result) == 2 and not isinstance(result[0], Mapping):
        # A scalar answers [time, value] instead of a list of series.
        result = [{"metric": {}, "value": result}]
    dropped = 0
    series: list[Series] = []
    for item in result:
        labels = {str(key): str(value) for key, value in item["metric"].items()}
        pairs = item.get("values") or ([item["value"]] if "value" in item else _means(item))
        samples, bad = _samples(pairs, step)
        dropped += bad
        series.append(
            Series(
                name=labels.pop("__name__", ""),
                labels=labels,
                unit="",
                samples=samples,
                step_seconds=step,
            )
        )
    series.sort(key=lambda one: (one.name, sorted(one.labels.items())))
    return Answer(
        items=tuple(series), query=query, window=window, partial=warnings, dropped=dropped
    )


def _means(item: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Native histograms have no single value: each sample reads as its mean, and as none where nothing was counted."""
    samples = item.get("histograms") or ([item["histogram"]] if "histogram" in item else [])
    return [
        (when, float(one["sum"]) / count if (count := float(one["count"])) else math.nan)
        for when, one in samples
    ]


def _samples(pairs: Sequence[Any], step: float) -> tuple[tuple[Sample, ...], int]:
    samples: list[Sample] = []
    bad = 0
    last: float | None = None
    for when, text in pairs:
        at = float(when)
        if last is not None and step and at - last > 1.5 * step:
            # A hole stays a hole: one empty sample breaks the line.
            samples.append(Sample(at=_moment(last + step), value=None))
        value = float(text)
        # An exporter writes a mark of 19 digits where the GPU tells nothing.
        is_told = math.isfinite(value) and not is_wide_blank(value)
        if not is_told:
            bad += 1
        samples.append(Sample(at=_moment(at), value=value if is_told else None))
        last = at
    return tuple(samples), bad


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)


SOURCE = HttpSource(
    name="prometheus",
    source=EvidenceSource.METRICS,
    summary="PromQL over the Prometheus HTTP API",
    setting="prometheus_url",
    connect=Prometheus,
)
