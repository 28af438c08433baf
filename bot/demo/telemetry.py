"""Where the demo's telemetry goes: `python -m bot.demo.telemetry --loki-port … --jaeger-port … --node-port …`.

One process holds the Loki and Jaeger stand-ins and the node's series, to keep the demo small.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.demo import jaeger, loki
from bot.demo.log_store import LogStore
from bot.demo.node_series import NodeSeries
from bot.demo.trace_store import TraceStore


def node_app(series: NodeSeries) -> Starlette:
    """`GET /metrics` of the node."""

    def metrics(_: Request) -> Response:
        return Response(series.exposition(), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/metrics", metrics)])


async def serve(apps: dict[int, Starlette]) -> None:
    """Serves each app on its loopback port until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    servers = [_server(app, port) for port, app in apps.items()]
    async with asyncio.TaskGroup() as group:
        for server in servers:
            group.create_task(server.serve())
        await stopping.wait()
        for server in servers:
            server.should_exit = True


def _server(app: Starlette, port: int) -> uvicorn.Server:
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
    server = uvicorn.Server(config)
    # Signals belong to the process, which has several servers to stop; uvicorn would take them for one.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    return server


def main() -> None:
    """Entry point of `python -m bot.demo.telemetry`."""
    parser = argparse.ArgumentParser(prog="demo-telemetry", description=__doc__)
    parser.add_argument("--loki-port", type=int, required=True)
    parser.add_argument("--jaeger-port", type=int, required=True)
    parser.add_argument("--node-port", type=int, required=True)
    parser.add_argument("--log-dir", type=Path, required=True)
    parser.add_argument("--node", default="demo-node")
    args = parser.parse_args()
    asyncio.run(
        serve(
            {
                args.loki_port: loki.create_app(LogStore(args.log_dir, node=args.node)),
                args.jaeger_port: jaeger.create_app(TraceStore()),
                args.node_port: node_app(NodeSeries()),
            }
        )
    )


if __name__ == "__main__":
    main()
