"""`rca-bot sop lint`: checks SOP, cause and checklist files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.app import lint_knowledge

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def sop() -> None:
    """The knowledge files: SOPs, causes, checklists."""


@app.command()
def lint(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files or folders; the shipped ones by default.")
    ] = None,
) -> None:
    """Prints `file:line: message` per fault; exit 1 on any."""
    faults, checked = lint_knowledge(paths or [])
    for fault in faults:
        typer.echo(str(fault))
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{checked} files, no fault")
