"""The operations console of the demo: one page with the switches that a person has on the serving node.

It offers every action whatever the fault is; which one helps is for the incident to find out.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.demo.remedies import Remedy
from bot.domain.text import Localized
from bot.errors import BotError

_LABELS: Mapping[Remedy, Localized] = {
    Remedy.PREALLOCATE: Localized(
        "Roll out: staging buffers from a preallocated pool", "发布：暂存缓冲改用预分配池"
    ),
    Remedy.STOP_NEIGHBOUR: Localized(
        "Stop the job batch-reindex on the serving node", "停止服务节点上的 batch-reindex 任务"
    ),
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Operations · translate-api</title>
<meta name="viewport" content="width=device-width">
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}
button {{ font: inherit; width: 100%; padding: .8rem 1rem; margin: .4rem 0; text-align: left; cursor: pointer }}
small {{ opacity: .7 }}
</style>
<h1>translate-api · demo-gpu-1</h1>
<p>P99: <b>{p99}</b></p>
<p><small>{note}</small></p>
{forms}
</html>"""
_FORM = """<form method="post" action="/apply/{value}"><button>{en}<br><small>{zh}</small></button></form>"""


def create_app(
    apply: Callable[[Remedy], Awaitable[None]], p99_seconds: Callable[[], Awaitable[float | None]]
) -> Starlette:
    """The page and its switches; a form of another site is refused."""

    async def page(request: Request) -> Response:
        seconds = await p99_seconds()
        forms = "".join(
            _FORM.format(value=item.value, en=html.escape(text.en), zh=html.escape(text.zh))
            for item, text in _LABELS.items()
        )
        done = request.query_params.get("done")
        note = f"done: {Remedy(done).text}" if done in set(Remedy) else "nothing done yet"
        shown = f"{seconds * 1000:.0f} ms" if seconds is not None else "no value"
        return HTMLResponse(_PAGE.format(p99=shown, note=html.escape(note), forms=forms))

    async def act(request: Request) -> Response:
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            return PlainTextResponse("this page takes only its own forms\n", 403)
        try:
            remedy = Remedy(request.path_params["remedy"])
        except ValueError:
            return PlainTextResponse("no such action\n", 404)
        try:
            await apply(remedy)
        except BotError as error:
            return PlainTextResponse(f"{error}\n", 502)
        return RedirectResponse(f"/?done={remedy.value}", 303)

    return Starlette(
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
        routes=[Route("/", page), Route("/apply/{remedy}", act, methods=["POST"])],
    )


@contextlib.asynccontextmanager
async def serve_console(app: Starlette, port: int) -> AsyncIterator[str]:
    """Serves the console on loopback while the block runs; gives its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    # Signals belong to the demo, which has more to stop than this page.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    serving = asyncio.create_task(server.serve())
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        await serving
