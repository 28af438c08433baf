"""`rca-bot sop`: checks SOP, cause and checklist files, and hands out what was accepted over them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from bot.app import lint_knowledge, open_shelf, open_store
from bot.settings import load_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def sop() -> None:
    """The knowledge files: SOPs, causes, checklists."""


@app.command()
def lint(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files or folders; the shipped ones by default.")
    ] = None,
    versions: Annotated[
        bool,
        typer.Option("--versions", help="Also the accepted changes in this deployment's Redis."),
    ] = False,
) -> None:
    """Prints `file:line: message` per fault; exit 1 on any."""
    faults, checked = lint_knowledge(paths or [])
    if versions:
        faults += asyncio.run(_version_faults())
    for fault in faults:
        typer.echo(str(fault))
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{checked} files, no fault")


@app.command()
def patch(
    out: Annotated[
        Path | None, typer.Option(help="Write whole files into this folder instead of a diff.")
    ] = None,
) -> None:
    """Prints all accepted changes as one diff over the shipped and the team's files (`git apply` takes it)."""
    diff, files = asyncio.run(_accepted())
    if out is None:
        typer.echo(diff, nl=False)
        return
    for name, content in files.items():
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        typer.echo(str(target))


async def _version_faults() -> list[str]:
    settings = load_settings()
    async with open_store(settings) as store:
        return await open_shelf(settings, store).faults()


async def _accepted() -> tuple[str, dict[str, bytes]]:
    settings = load_settings()
    async with open_store(settings) as store:
        shelf = open_shelf(settings, store)
        return await shelf.patch(), await shelf.accepted()
