"""`rca-bot manifest`: what to paste into Slack's app configuration."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bot.slack.manifest import manifest

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def print_manifest(
    url: Annotated[
        str, typer.Option(help="Public base URL of the bot, for example https://rca.example.net")
    ],
) -> None:
    """Prints the Slack app manifest as JSON."""
    typer.echo(json.dumps(manifest(url), indent=2, ensure_ascii=False))
