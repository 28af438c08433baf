"""The demo's gateway with its users behind it: `python -m bot.demo.load --target URL --port PORT`.

The gateway has its own metrics and spans, as an edge proxy does; latency is taken from the moment that a person
asks.
`POST /phase {"phase": "peak"}` turns the evening on.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from dataclasses import dataclass
from random import Random

import httpx
import uvicorn
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.demo.service_metrics import LATENCY_BUCKETS
from bot.demo.spans import Span, SpanContext, SpanExporter, new_span_id, traceparent
from bot.demo.users import CROWDS, LoadPhase, passage

GATEWAY = "gateway"
_DEADLINE_SECONDS = 10.0
_ARRIVAL_GAP_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadConfig:
    """Where the load goes and how it starts."""

    target: str
    port: int
    node: str
    phase: LoadPhase
    seed: int
    collector_url: str | None = None


class GatewayMetrics:
    """What the gateway sees of the service, under an edge proxy's names."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "http_requests", "Requests by answer.", ["code"], registry=self.registry
        )
        self.in_flight = Gauge(
            "http_requests_in_flight", "Requests without an answer yet.", registry=self.registry
        )
        self.duration = Histogram(
            "http_request_duration_seconds",
            "Time until the answer.",
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )


class Gateway:
    """Sends the users' requests on to the service."""

    def __init__(self, config: LoadConfig, client: httpx.AsyncClient, spans: SpanExporter) -> None:
        self.phase = config.phase
        self.metrics = GatewayMetrics()
        self._url = f"{config.target}/v1/translate"
        self._client = client
        self._spans = spans
        self._random = Random(config.seed)  # noqa: S311 - shapes the load, guards nothing

    async def run(self) -> None:
        """Keeps the crowd of the phase at work until cancelled."""
        async with asyncio.TaskGroup() as group:
            people: list[asyncio.Task[None]] = []
            while True:
                wanted = CROWDS[self.phase].people
                if len(people) < wanted:
                    people.append(group.create_task(self._ask_again_and_again()))
                while len(people) > wanted:
                    people.pop().cancel()
                # They come one after another, not at one instant.
                await asyncio.sleep(_ARRIVAL_GAP_SECONDS)

    async def _ask_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(CROWDS[self.phase].think(self._random))
            await self._ask(passage(self._random))

    async def _ask(self, text: str) -> None:
        context, own = SpanContext.fresh(), new_span_id()
        start_ns = time.time_ns()
        self.metrics.in_flight.inc()
        try:
            answer = await self._client.post(
                self._url,
                json={"text": text},
                headers={"traceparent": traceparent(context.trace_id, own)},
            )
            code = answer.status_code
        except httpx.TimeoutException:
            code = 504
        except httpx.HTTPError:
            code = 502
        finally:
            self.metrics.in_flight.dec()
        end_ns = time.time_ns()
        self.metrics.requests.labels(str(code)).inc()
        self.metrics.duration.observe((end_ns - start_ns) / 1e9)
        self._spans.add(
            Span(
                trace_id=context.trace_id,
                span_id=own,
                parent_id=None,
                name="POST /v1/translate",
                start_ns=start_ns,
                end_ns=end_ns,
                attributes={"http.status_code": code},
            )
        )


def create_app(gateway: Gateway) -> Starlette:
    """`GET /metrics`, `GET /healthz` and `POST /phase`."""

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(gateway.metrics.registry), media_type="text/plain")

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok", "phase": gateway.phase.value})

    async def phase(request: Request) -> Response:
        try:
            gateway.phase = LoadPhase((await request.json())["phase"])
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"error": f"phase is one of {', '.join(LoadPhase)}"}, 400)
        return JSONResponse({"phase": gateway.phase.value})

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/phase", phase, methods=["POST"]),
        ]
    )


async def run(config: LoadConfig) -> None:
    """Serves and sends until SIGTERM or SIGINT."""
    spans = SpanExporter(config.collector_url, service=GATEWAY, host=config.node)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=128)
    async with httpx.AsyncClient(timeout=_DEADLINE_SECONDS, limits=limits) as client:
        gateway = Gateway(config, client, spans)
        server = uvicorn.Server(
            uvicorn.Config(
                create_app(gateway), host="127.0.0.1", port=config.port, log_level="warning"
            )
        )
        sending = asyncio.create_task(gateway.run())
        try:
            await server.serve()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await asyncio.to_thread(spans.close)


def main() -> None:
    """Entry point of `python -m bot.demo.load`."""
    parser = argparse.ArgumentParser(prog="demo-gateway", description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--node", default="demo-node")
    parser.add_argument(
        "--phase", type=LoadPhase, choices=list(LoadPhase), default=LoadPhase.BASELINE
    )
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--collector-url")
    args = parser.parse_args()
    # uvicorn raises the signal again once it has stopped; it must not end the process before the last spans left.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    asyncio.run(
        run(
            LoadConfig(
                target=args.target,
                port=args.port,
                node=args.node,
                phase=args.phase,
                seed=args.seed,
                collector_url=args.collector_url,
            )
        )
    )


if __name__ == "__main__":
    main()
