"""Acknowledgement of `/rca status`, signature verified and durable, against a stock Bolt listener in the same run."""

import asyncio
import hashlib
import hmac
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import httpx
import uvicorn
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from starlette.applications import Starlette
from starlette.routing import Route

from bot.workspace.config import BOT_TOKEN, SIGNING_SECRET
from tests.scenarios.rig import Deployment, free_port, until

CALLS = 200


def signed(body: str) -> dict[str, str]:
    """Headers of a request as Slack signs it."""
    stamp = str(int(time.time()))
    base = f"v0:{stamp}:{body}".encode()
    mark = hmac.new(SIGNING_SECRET.encode(), base, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={mark}",
    }


def command(n: int) -> str:
    """One `/rca status`, each with a trigger of its own."""
    return urlencode(
        {
            "command": "/rca",
            "text": "status",
            "team_id": "T0LOCAL",
            "user_id": "U0LEAD",
            "channel_id": "C0INCIDENTS",
            "trigger_id": f"{n}.{time.time_ns()}",
            "response_url": "http://127.0.0.1:9/none",
            "api_app_id": "A0RCABOT",
        }
    )


async def measure(http: httpx.AsyncClient, url: str) -> list[float]:
    """Milliseconds of each call, one after the other."""
    taken = []
    for n in range(CALLS):
        body = command(n)
        began = time.perf_counter()
        answer = await http.post(url, content=body, headers=signed(body))
        taken.append((time.perf_counter() - began) * 1000)
        if answer.status_code != 200:
            raise RuntimeError(f"{url}: {answer.status_code} {answer.text[:200]}")
    return taken


async def stock(api_url: str, port: int) -> tuple[uvicorn.Server, asyncio.Task[None]]:
    """Bolt as its documentation shows it."""
    from slack_sdk.web.async_client import AsyncWebClient

    client = AsyncWebClient(token=BOT_TOKEN, base_url=api_url)
    app = AsyncApp(client=client, signing_secret=SIGNING_SECRET)

    @app.command("/rca")
    async def rca(ack):  # type: ignore[no-untyped-def]
        await ack()

    handler = AsyncSlackRequestHandler(app)
    web = Starlette(routes=[Route("/slack/events", handler.handle, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(web, host="127.0.0.1", port=port, log_level="error"))
    return server, asyncio.create_task(server.serve())


async def run() -> list[str]:
    """Interleaved: the machine's noise falls on both."""
    with tempfile.TemporaryDirectory() as root:
        rig = Deployment(Path(root))
        port = free_port()
        try:
            await rig.start_redis()
            await rig.start_workspace()
            await rig.start_bot()
            server, task = await stock(f"{rig.workspace_url}/api/", port)
            await until(lambda: server.started, "the stock app is up")
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(3):
                theirs += await measure(rig.http, f"http://127.0.0.1:{port}/slack/events")
                ours += await measure(rig.http, f"{rig.bot_url}/slack/events")
            server.should_exit = True
            await task
        finally:
            await rig.close()
    mine, peer = statistics.median(ours), statistics.median(theirs)
    return [
        f"ack of /rca status p50: {mine:.2f} ms durable, stock Bolt {peer:.2f} ms in the same run: "
        f"{mine / peer:.2f} of it (goal: at most 0.33, under 5 ms), n={len(ours)}"
    ]
