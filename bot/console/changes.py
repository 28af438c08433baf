"""`rca-bot changes add`: change events from a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from bot.app import open_store
from bot.domain.change import Change
from bot.errors import BotError, Reason
from bot.intake.change import parse_line
from bot.settings import load_settings
from bot.store.index import ChangeLog

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def changes() -> None:
    """Change events of the bot's store."""


@app.command()
def add(
    file: Annotated[Path, typer.Option(help="JSON lines, one event a line.")],
) -> None:
    """Stores change events; one whose id is known is stored once."""
    try:
        # A line of JSON may hold what other texts end a line with, such as U+2028, so only line feeds count.
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise BotError(
            f"{file}: cannot be read: {error.strerror}; name a file of change events",
            reason=Reason.NOT_FOUND,
        ) from error
    except UnicodeDecodeError as error:
        raise BotError(f"{file}: is no UTF-8 text: {error.reason}; save it as UTF-8") from error
    events = [
        parse_line(line, f"{file}:{number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    added = asyncio.run(_store(events))
    typer.echo(f"{added} of {len(events)} change events stored, {len(events) - added} known")


async def _store(events: list[Change]) -> int:
    async with open_store(load_settings()) as store:
        return await ChangeLog(store).add(events)
