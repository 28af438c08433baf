"""Looks at the Slack side of a deployment for `rca-bot check`."""

from __future__ import annotations

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
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
