"""The page at `/`: static files, the live stream, and the files of messages."""

from __future__ import annotations

from importlib import resources

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.workspace.screen import Screen
from bot.workspace.state import Workspace

_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "blocks.js": "text/javascript; charset=utf-8",
    "composer.js": "text/javascript; charset=utf-8",
    "icons.js": "text/javascript; charset=utf-8",
    "messages.js": "text/javascript; charset=utf-8",
    "samples.js": "text/javascript; charset=utf-8",
    "popups.js": "text/javascript; charset=utf-8",
    "text.js": "text/javascript; charset=utf-8",
    "traffic.js": "text/javascript; charset=utf-8",
}
# Files of messages are foreign: they are shown as images or saved, and never run in the page's name.
_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' http: https: data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class Page:
    """The routes of the page."""

    def __init__(self, workspace: Workspace, screen: Screen) -> None:
        self._workspace = workspace
        self._screen = screen

    def routes(self) -> list[Route]:
        """Every route of the page."""
        return [
            Route("/", self._static),
            Route("/archives/{rest:path}", self._static),
            Route("/page/state", self._state),
            Route("/page/stream", self._stream),
            Route("/page/files/{file_id}", self._file),
            Route("/files/{user}/{file_id}/{name}", self._file),
            Route("/page/{name}", self._static),
        ]

    async def _static(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in _TYPES:
            return PlainTextResponse("not found", status_code=404)
        content = resources.files("bot.workspace").joinpath("static", name).read_bytes()
        return Response(
            content,
            media_type=_TYPES[name],
            headers={
                "Content-Security-Policy": _POLICY,
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
            },
        )

    async def _state(self, _: Request) -> Response:
        return JSONResponse(self._screen.snapshot())

    async def _stream(self, _: Request) -> Response:
        return StreamingResponse(
            self._screen.stream(),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    async def _file(self, request: Request) -> Response:
        file = self._workspace.files.get(request.path_params["file_id"])
        if file is None:
            return PlainTextResponse("file not found", status_code=404)
        headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
        if file.mimetype not in _SHOWN:
            headers["Content-Disposition"] = "attachment"
        return Response(file.content, media_type=file.mimetype, headers=headers)
