"""`rca-bot serve`: the bot."""

from __future__ import annotations

import asyncio

import typer

from bot.serving import serve
from bot.settings import load_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def run() -> None:
    """Runs the bot until SIGTERM; HTTP, or Socket Mode when SLACK_APP_TOKEN is set."""
    asyncio.run(serve(load_settings(with_files=True)))
