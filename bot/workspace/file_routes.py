"""Where files go in and come out: upload addresses, private downloads, and response URLs."""

from __future__ import annotations

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from bot.workspace import responses
from bot.workspace.call import ApiError, read_arguments
from bot.workspace.services import Services
from bot.workspace.traffic import Direction

_SIGN_IN = (
    "<!DOCTYPE html><html lang='en'><head><title>Sign in | Slack</title></head>"
    "<body><h1>Sign in to your workspace</h1></body></html>"
)


class FileRoutes:
    """Routes outside `/api` that the app uses."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def upload(self, request: Request) -> Response:
        """Takes one file's bytes, raw or as multipart, without a token."""
        upload = self._services.tickets.uploads.get(request.path_params["file_id"])
        if upload is None or upload.content is not None:
            return PlainTextResponse("upload not found", status_code=404)
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            async with request.form() as form:
                parts = [value for value in form.values() if isinstance(value, UploadFile)]
                content = await parts[0].read() if parts else b""
        else:
            content = await request.body()
        if len(content) != upload.length:
            return PlainTextResponse(
                f"expected {upload.length} bytes, got {len(content)}", status_code=400
            )
        upload.content = content
        self._services.traffic.record(
            Direction.FROM_APP,
            "upload",
            {"file": upload.file_id, "name": upload.name},
            status=200,
            answer=f"OK - {len(content)}",
        )
        return PlainTextResponse(f"OK - {len(content)}")

    async def download(self, request: Request) -> Response:
        """Gives a private file to the token; anyone else gets a sign-in page with status 200, as in Slack."""
        config = self._services.config
        bearer = request.headers.get("authorization", "")
        file = self._services.workspace.files.get(request.path_params["file_id"])
        if bearer != f"Bearer {config.bot_token}" or "files:read" not in config.scopes:
            return HTMLResponse(_SIGN_IN)
        if file is None:
            return PlainTextResponse("file not found", status_code=404)
        return Response(file.content, media_type=file.mimetype)

    async def respond(self, request: Request) -> Response:
        """A response URL: five uses in half an hour."""
        origin = self._services.tickets.use_response(request.path_params["response_id"])
        if origin is None:
            return JSONResponse({"ok": False, "error": "used_url"}, status_code=404)
        try:
            body = await read_arguments(request)
            responses.show(self._services, origin, body)
        except (ApiError, responses.ResponseRefusedError) as error:
            answer = {"ok": False, "error": str(error)}
            self._services.traffic.record(
                Direction.FROM_APP, "response_url", {}, status=400, answer=answer
            )
            return JSONResponse(answer, status_code=400)
        self._services.traffic.record(
            Direction.FROM_APP, "response_url", body, status=200, answer="ok"
        )
        return PlainTextResponse("ok")
