"""A stand-in for Jaeger: takes spans as OTLP over HTTP and answers the query API that the bot asks.

Source of routes and shapes: Jaeger 1.x query service (`/api/services`, `/api/services/<s>/operations`,
`/api/traces`, `/api/traces/<id>`, `/api/dependencies`) and the OTLP receiver (`POST /v1/traces`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.demo.logql import parse_duration
from bot.demo.trace_store import TraceQuery, TraceStore, from_otlp, to_jaeger_trace

_HOUR_US = 3_600 * 10**6
_BODY_LIMIT_BYTES = 16 << 20
_MAX_TRACES = 1_500


def create_app(store: TraceStore, now_us: Callable[[], int] | None = None) -> Starlette:
    """The HTTP server: collector and query API on one port."""
    now = now_us or (lambda: time.time_ns() // 1000)

    async def collect(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _BODY_LIMIT_BYTES:
                return JSONResponse({"code": 8, "message": "body over 16 MiB"}, 413)
        try:
            spans = from_otlp(json.loads(body))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return JSONResponse(
                {"code": 3, "message": f"not an OTLP trace request: {error!r}"}, 400
            )
        store.add(spans)
        return JSONResponse({"partialSuccess": {}})

    def services(_: Request) -> Response:
        return _wrap(store.services())

    def operations(request: Request) -> Response:
        return _wrap(store.operations(request.path_params["service"]))

    def traces(request: Request) -> Response:
        try:
            found = store.find(_query(request, now()))
        except (ValueError, TypeError) as error:
            return _fault(400, str(error))
        return _wrap([to_jaeger_trace(spans) for spans in found])

    def trace(request: Request) -> Response:
        spans = store.trace(request.path_params["trace"])
        return _wrap([to_jaeger_trace(spans)]) if spans else _fault(404, "trace not found")

    def dependencies(_: Request) -> Response:
        calls = store.dependencies()
        rows = [{"parent": a, "child": b, "callCount": n} for (a, b), n in sorted(calls.items())]
        return _wrap(rows)

    return Starlette(
        routes=[
            Route("/v1/traces", collect, methods=["POST"]),
            Route("/api/services", services),
            Route("/api/services/{service}/operations", operations),
            Route("/api/traces", traces),
            Route("/api/traces/{trace}", trace),
            Route("/api/dependencies", dependencies),
        ]
    )


def _query(request: Request, now_us: int) -> TraceQuery:
    params = request.query_params
    if not (service := params.get("service")):
        raise ValueError("parameter 'service' is required")
    end_us = int(params.get("end") or now_us)
    tags = json.loads(params["tags"]) if params.get("tags") else {}
    if not isinstance(tags, dict):
        raise TypeError("malformed 'tags' parameter: a JSON object is expected")
    longest = params.get("maxDuration")
    return TraceQuery(
        service=service,
        operation=params.get("operation"),
        start_us=int(params.get("start") or end_us - _HOUR_US),
        end_us=end_us,
        tags={str(key): str(value) for key, value in tags.items()},
        min_duration_us=_microseconds(params.get("minDuration")) or 0,
        max_duration_us=_microseconds(longest),
        limit=min(int(params.get("limit") or 20), _MAX_TRACES),
    )


def _microseconds(duration: str | None) -> int | None:
    return int(parse_duration(duration) * 1e6) if duration else None


def _wrap(data: list[object] | list[str] | list[dict[str, object]]) -> Response:
    return JSONResponse({"data": data, "total": len(data), "limit": 0, "offset": 0, "errors": None})


def _fault(code: int, message: str) -> Response:
    fault = {"code": code, "msg": message}
    return JSONResponse(
        {"data": None, "total": 0, "limit": 0, "offset": 0, "errors": [fault]}, code
    )
