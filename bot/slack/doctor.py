"""Looks at the Slack side of a deployment for `rca-bot check`."""

from __future__ import annotations

import asyncio
import json
import secrets
import time

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from bot.settings import Settings
from bot.slack.manifest import scopes

TIMEOUT_SECONDS = 5

# grade (`ok`, `warn`, `fail`), what was looked at, what was seen and what to do.
Verdict = tuple[str, str, str]


async def check_slack(settings: Settings) -> list[Verdict]:
    """Token, scopes, signing secret, app token; one verdict each."""
    verdicts: list[Verdict] = []
    if settings.slack_signing_secret is None and settings.slack_app_token is None:
        verdicts.append(
            (
                "fail",
                "transport",
                "neither SLACK_SIGNING_SECRET (HTTP) nor SLACK_APP_TOKEN (Socket Mode) is set; set one",
            )
        )
    if settings.public_url and settings.slack_signing_secret and not settings.slack_app_token:
        secret = settings.slack_signing_secret.get_secret_value()
        verdicts.append(await _door(settings.public_url, secret))
    if settings.slack_bot_token is None:
        verdicts.append(
            ("fail", "token", "SLACK_BOT_TOKEN is not set; copy it from the app's page")
        )
        return verdicts
    client = AsyncWebClient(
        token=settings.slack_bot_token.get_secret_value(),
        base_url=settings.slack_api_url.rstrip("/") + "/",
        timeout=TIMEOUT_SECONDS,
    )
    verdicts.extend(await _token(client))
    if settings.slack_app_token is not None:
        verdicts.append(await _socket(client, settings.slack_app_token.get_secret_value()))
    return verdicts


async def _door(public_url: str, secret: str) -> Verdict:
    """Knocks at the bot's own public address as Slack does: what stands in front of it may refuse such requests."""
    challenge = secrets.token_hex(8)
    raw = json.dumps({"type": "url_verification", "challenge": challenge})
    stamp = str(int(time.time()))
    signature = SignatureVerifier(secret).generate_signature(timestamp=stamp, body=raw)
    headers = {
        "content-type": "application/json",
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": signature or "",
    }
    url = f"{public_url.rstrip('/')}/slack/events"
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            aiohttp.ClientSession() as session,
            session.post(url, data=raw, headers=headers, allow_redirects=False) as response,
        ):
            body = (await response.content.read(4096)).decode(errors="replace")
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        return (
            "warn",
            "door",
            f"RCA_PUBLIC_URL: no answer from here ({type(error).__name__}); start the bot, then check again",
        )
    if response.status == 200 and challenge in body:
        return ("ok", "door", "a signed request to RCA_PUBLIC_URL reaches the bot")
    if response.status == 401:
        return (
            "fail",
            "door",
            "RCA_PUBLIC_URL answers 401; SLACK_SIGNING_SECRET or a clock differs",
        )
    return (
        "fail",
        "door",
        f"RCA_PUBLIC_URL answers {response.status}; let POST /slack/events through unchanged (proxy, WAF, login)",
    )


async def _token(client: AsyncWebClient) -> list[Verdict]:
    try:
        answer = await client.auth_test()
    except SlackApiError as error:
        name = str(error.response.get("error", "unknown"))
        return [
            ("fail", "token", f"Slack answers {name}; reinstall the app and copy the new token")
        ]
    except (TimeoutError, SlackClientError, aiohttp.ClientError, OSError) as error:
        return [
            (
                "fail",
                "reachable",
                f"no answer ({type(error).__name__}); check the network and SLACK_API_URL",
            )
        ]
    verdicts: list[Verdict] = [
        ("ok", "token", f"works in {answer.get('team')} as {answer.get('user')}")
    ]
    granted = {
        scope.strip()
        for name, value in dict(answer.headers).items()
        if str(name).lower() == "x-oauth-scopes"
        for scope in str(value).split(",")
        if scope.strip()
    }
    missing = sorted(set(scopes()) - granted)
    if not granted:
        verdicts.append(("warn", "scopes", "Slack did not say which scopes are granted"))
    elif missing:
        verdicts.append(
            (
                "fail",
                "scopes",
                f"missing {', '.join(missing)}; update the app from rca-bot manifest and reinstall it",
            )
        )
    else:
        verdicts.append(("ok", "scopes", f"all {len(scopes())} granted"))
    return verdicts


async def _socket(client: AsyncWebClient, app_token: str) -> Verdict:
    try:
        await client.apps_connections_open(app_token=app_token)
    except SlackApiError as error:
        name = str(error.response.get("error", "unknown"))
        return (
            "fail",
            "socket",
            f"SLACK_APP_TOKEN: Slack answers {name}; make a new app-level token",
        )
    except (TimeoutError, SlackClientError, aiohttp.ClientError, OSError) as error:
        return ("fail", "socket", f"no answer ({type(error).__name__}); check the network")
    return ("ok", "socket", "a connection can be opened")
