"""A stand-in for Loki that speaks the part of its HTTP API that the bot asks.

Source of routes and shapes: Loki 2.9 HTTP API (`query_range`, `query`, `labels`, `label/<name>/values`, `series`,
`ready`). Times are nanoseconds, seconds or RFC 3339, as there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.demo.log_store import LogLine, LogStore, Series
from bot.demo.logql import LogSelector, parse, parse_duration
from bot.demo.logql_stages import LogqlError

_HOUR_NS = 3_600 * 10**9
_MAX_LINES = 5_000
_MAX_STEPS = 11_000
_SECONDS_BELOW = 10**14  # a larger plain number cannot be seconds, so it is nanoseconds


class LokiApi:
    """The answers, apart from HTTP."""

    def __init__(self, store: LogStore, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._store = store
        self._now_ns = now_ns

    def query_range(self, params: QueryParams) -> object:
        """Streams for a log query, a matrix for a metric query."""
        start_ns, end_ns = self._window(params)
        query = parse(_required(params, "query"))
        if isinstance(query, LogSelector):
            forward = params.get("direction", "backward").lower() == "forward"
            return self._streams(query, start_ns, end_ns, _limit(params), forward=forward)
        step_ns = _step(params, end_ns - start_ns)
        series = self._store.evaluate(query, list(range(start_ns, end_ns + 1, step_ns)))
        return {
            "resultType": "matrix",
            "result": [_matrix_row(item) for item in series],
            "stats": {},
        }

    def query(self, params: QueryParams) -> object:
        """The same at one time."""
        at_ns = _time(params.get("time"), self._now_ns())
        query = parse(_required(params, "query"))
        if isinstance(query, LogSelector):
            return self._streams(query, at_ns - _HOUR_NS, at_ns, _limit(params), forward=False)
        rows = [
            {"metric": dict(item.labels), "value": _sample(*item.values[-1])}
            for item in self._store.evaluate(query, [at_ns])
        ]
        return {"resultType": "vector", "result": rows, "stats": {}}

    def labels(self, params: QueryParams) -> object:
        """Names of the labels in use."""
        return sorted({name for line in self._lines(params) for name in line.labels})

    def label_values(self, params: QueryParams, name: str) -> object:
        """Values of one label."""
        return sorted({line.labels[name] for line in self._lines(params) if name in line.labels})

    def series(self, params: QueryParams) -> object:
        """Label sets of the streams that match."""
        wanted = params.getlist("match[]") or params.getlist("match")
        selectors = [parse(text) for text in wanted]
        if not all(isinstance(selector, LogSelector) for selector in selectors):
            raise LogqlError("match takes stream selectors")
        found = {
            tuple(sorted(line.labels.items()))
            for line in self._lines(params)
            if not selectors
            or any(isinstance(s, LogSelector) and s.selects(line.labels) for s in selectors)
        }
        return [dict(labels) for labels in sorted(found)]

    def _lines(self, params: QueryParams) -> list[LogLine]:
        return self._store.lines(*self._window(params))

    def _window(self, params: QueryParams) -> tuple[int, int]:
        end_ns = _time(params.get("end"), self._now_ns())
        start_ns = _time(params.get("start"), end_ns - _HOUR_NS)
        if end_ns < start_ns:
            raise LogqlError("end timestamp must not be before start time")
        return start_ns, end_ns

    def _streams(
        self, selector: LogSelector, start_ns: int, end_ns: int, limit: int, *, forward: bool
    ) -> object:
        lines = list(self._store.select(selector, start_ns, end_ns))
        if not forward:
            lines.reverse()
        streams: dict[tuple[tuple[str, str], ...], list[list[str]]] = {}
        for line in lines[:limit]:
            key = tuple(sorted(line.labels.items()))
            streams.setdefault(key, []).append([str(line.at_ns), line.text])
        rows = [{"stream": dict(labels), "values": values} for labels, values in streams.items()]
        return {"resultType": "streams", "result": rows, "stats": {}}


def create_app(store: LogStore) -> Starlette:
    """The HTTP server; a query outside the subset is 400 with one line, as in Loki."""
    api = LokiApi(store)

    def route(answer: Callable[[QueryParams, Request], object]) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            try:
                data = answer(request.query_params, request)
            except ValueError as error:
                return PlainTextResponse(f"{error}\n", 400)
            return JSONResponse({"status": "success", "data": data})

        return endpoint

    async def ready(_: Request) -> Response:
        await run_in_threadpool(store.lines, 0, 1)
        return PlainTextResponse("ready\n")

    prefix = "/loki/api/v1"
    return Starlette(
        routes=[
            Route("/ready", ready),
            Route(f"{prefix}/query_range", route(lambda p, _: api.query_range(p))),
            Route(f"{prefix}/query", route(lambda p, _: api.query(p))),
            Route(f"{prefix}/labels", route(lambda p, _: api.labels(p))),
            Route(
                f"{prefix}/label/{{name}}/values",
                route(lambda p, r: api.label_values(p, r.path_params["name"])),
            ),
            Route(f"{prefix}/series", route(lambda p, _: api.series(p))),
        ]
    )


def _time(text: str | None, default_ns: int) -> int:
    if not text:
        return default_ns
    try:
        value = float(text)
    except ValueError:
        return int(datetime.fromisoformat(text).timestamp() * 1_000_000) * 1_000
    return int(text) if value > _SECONDS_BELOW and text.isdigit() else int(value * 1e9)


def _step(params: QueryParams, span_ns: int) -> int:
    text = params.get("step")
    if text is None:
        return max(10**9, span_ns // 250)
    try:
        seconds = float(text)
    except ValueError:
        seconds = parse_duration(text)
    step_ns = int(seconds * 1e9)
    if step_ns <= 0 or span_ns / step_ns > _MAX_STEPS:
        raise LogqlError("exceeded maximum resolution of 11,000 points per time series")
    return step_ns


def _limit(params: QueryParams) -> int:
    limit = int(params.get("limit", "100"))
    if not 0 < limit <= _MAX_LINES:
        raise LogqlError(f"limit must lie between 1 and {_MAX_LINES}")
    return limit


def _required(params: QueryParams, name: str) -> str:
    if not (text := params.get(name)):
        raise LogqlError(f"parse error: {name} is missing")
    return text


def _matrix_row(series: Series) -> object:
    return {"metric": dict(series.labels), "values": [_sample(*value) for value in series.values]}


def _sample(at_seconds: float, value: float) -> list[object]:
    return [at_seconds, f"{value:.10g}"]
