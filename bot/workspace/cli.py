"""`rca-bot workspace`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from bot.workspace.config import (
    APP_TOKEN,
    BOT_TOKEN,
    SIGNING_SECRET,
    Transport,
    WorkspaceConfig,
)
from bot.workspace.server import serve

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _secret(what: str, variable: str) -> Any:
    """An option that is better given as a variable: the arguments of a process are there for everybody to read."""
    return typer.Option(
        help=f"{what}; better as {variable} in the environment.",
        envvar=variable,
        show_default=False,
        show_envvar=False,
    )


@app.command()
def workspace(
    host: Annotated[str, typer.Option(help="Loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8800,
    bot_url: Annotated[
        str | None, typer.Option(help="Where the bot listens, for example http://127.0.0.1:8080.")
    ] = None,
    bot_token: Annotated[str, _secret("The bot's token here", "SLACK_BOT_TOKEN")] = BOT_TOKEN,
    app_token: Annotated[str, _secret("The Socket Mode token here", "SLACK_APP_TOKEN")] = APP_TOKEN,
    signing_secret: Annotated[
        str, _secret("What requests to the bot are signed with", "SLACK_SIGNING_SECRET")
    ] = SIGNING_SECRET,
    webhook_token: Annotated[
        str | None, _secret("What the sample alerts carry", "RCA_WEBHOOK_TOKEN")
    ] = None,
    socket: Annotated[
        bool, typer.Option("--socket", help="Deliver over Socket Mode instead of HTTP.")
    ] = False,
    rate_limits: Annotated[
        bool, typer.Option("--rate-limits", help="Enforce Slack's rate limits.")
    ] = False,
) -> None:
    """Serves the local Slack-compatible workspace and its web page until interrupted."""
    config = WorkspaceConfig(
        host=host,
        port=port,
        bot_url=bot_url,
        bot_token=bot_token,
        app_token=app_token,
        signing_secret=signing_secret,
        webhook_token=webhook_token,
        transport=Transport.SOCKET if socket else Transport.HTTP,
        is_rate_limited=rate_limits,
    )
    asyncio.run(
        serve(config, announce=lambda url: typer.echo(f"workspace: {url}/ (this machine only)"))
    )
