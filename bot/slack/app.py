"""The Bolt app: signature, own events, one middleware that takes everything; and the HTTP door in front of it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable

import structlog
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.settings import Settings
from bot.slack.directory import Directory
from bot.slack.web import CALL_SECONDS

log = structlog.get_logger(__name__)

# Slack's largest documented request is far below; anything longer is not Slack.
MOST_BODY_BYTES = 1024 * 1024

Take = Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]


def make_client(settings: Settings) -> AsyncWebClient:
    """The Web API client of a deployment; nothing is sent yet."""
    token = settings.slack_bot_token
    base = settings.slack_api_url
    return AsyncWebClient(
        token=token.get_secret_value() if token else None,
        base_url=base if base.endswith("/") else f"{base}/",
        timeout=int(CALL_SECONDS),
        # The queue retries, with the delay that Slack asks for; a call here must end in time.
        retry_handlers=[],
    )


def build_app(
    settings: Settings, client: AsyncWebClient, directory: Directory, take: Take
) -> AsyncApp:
    """A Bolt app whose every payload goes to `take`.

    No call to Slack stands before an acknowledgement: who the bot is comes from memory.
    """
    secret = settings.slack_signing_secret

    async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
        identity = directory.known
        return AuthorizeResult(
            enterprise_id=enterprise_id,
            team_id=team_id or identity.team,
            bot_token=client.token,
            bot_user_id=identity.user or None,
            bot_id=identity.bot or None,
        )

    # Bolt's loggers take their level from this one. At INFO they log the whole body of a badly signed request, which
    # may be anybody's text; what matters is logged here.
    logger = logging.getLogger("rca_bot.bolt")
    logger.setLevel(logging.ERROR)
    app = AsyncApp(
        name="rca-bot",
        logger=logger,
        # An empty secret would verify everything that is signed with nothing.
        signing_secret=secret.get_secret_value() if secret else _unguessable(),
        client=client,
        authorize=authorize,
        process_before_response=True,
        attaching_function_token_enabled=False,
    )

    async def everything(req: AsyncBoltRequest) -> BoltResponse:
        return await take(req)

    app.middleware(everything)
    return app


def slack_routes(app: AsyncApp, settings: Settings) -> list[Route]:
    """`POST /slack/events`."""
    handler = AsyncSlackRequestHandler(app)
    secret = settings.slack_signing_secret
    verifier = SignatureVerifier(secret.get_secret_value() if secret else _unguessable())

    async def events(request: Request) -> Response:
        refusal = await _refuse(request)
        if refusal is not None:
            return refusal
        try:
            response = await handler.handle(request)
        except (ValueError, TypeError, AttributeError) as error:
            # Bolt reads the body before it looks at the signature; only a signed sender is told what is wrong.
            if not _is_signed(verifier, request, await request.body()):
                return JSONResponse({"error": "invalid request"}, status_code=401)
            log.warning("slack.refused", reason=f"the body is no payload: {type(error).__name__}")
            return JSONResponse({"error": "the body is no Slack payload"}, status_code=400)
        if response.status_code == 401:
            log.warning(
                "slack.refused",
                reason="signature or timestamp is wrong; check SLACK_SIGNING_SECRET and the clock",
            )
        return response

    return [Route("/slack/events", events, methods=["POST"])]


def _is_signed(verifier: SignatureVerifier, request: Request, body: bytes) -> bool:
    headers = request.headers
    return verifier.is_valid(
        body,
        headers.get("x-slack-request-timestamp", ""),
        headers.get("x-slack-signature", ""),
    )


async def _refuse(request: Request) -> Response | None:
    """What is refused before anything is parsed."""
    timestamp = request.headers.get("x-slack-request-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        log.warning("slack.refused", reason="the timestamp is no number")
        return JSONResponse({"error": "invalid request"}, status_code=401)
    try:
        body = await request.body()
    except ClientDisconnect:
        return Response(status_code=400)
    if len(body) > MOST_BODY_BYTES:
        return JSONResponse({"error": "the body is too long"}, status_code=413)
    return None


def _unguessable() -> str:
    return secrets.token_hex(32)
