"""`rca-bot sop`: checks SOP, cause and checklist files, and hands out what was accepted over them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from bot.app import lint_knowledge, open_shelf, open_store
from bot.errors import ConfigError
from bot.settings import load_settings
from bot.target_settings import GitSettings
from bot.targets._git_branch import push_files
from bot.targets.git import WORKSHOPS

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


@app.command()
def branch(
    name: Annotated[str, typer.Option(help="The branch to write; it grows from `--base`.")] = (
        "rca/knowledge"
    ),
    url: Annotated[
        str | None, typer.Option(help="The repository; by default that of [git] in RCA_CONFIG.")
    ] = None,
    base: Annotated[str | None, typer.Option(help="The branch it grows from.")] = None,
    folder: Annotated[
        str, typer.Option(help="Where the knowledge lies in it; else its root.")
    ] = "",
) -> None:
    """Pushes all accepted changes as whole files onto a branch of a git repository, ready for a merge request."""
    typer.echo(asyncio.run(_pushed(name, url, base, folder)))


async def _version_faults() -> list[str]:
    settings = load_settings()
    async with open_store(settings) as store:
        return await open_shelf(settings, store).faults()


async def _pushed(name: str, url: str | None, base: str | None, folder: str) -> str:
    settings = load_settings()
    asked = {"url": url, "branch": base, "folder": folder or None}
    given = {key: value for key, value in asked.items() if value is not None}
    known = settings.git.model_dump(exclude_unset=True) if settings.git else {}
    if "url" not in {**known, **given}:
        raise ConfigError("sop branch: no repository: give --url, or add [git] to RCA_CONFIG")
    try:
        target = GitSettings.model_validate({**known, **given})
        GitSettings.model_validate({"url": target.url, "branch": name})
    except ValidationError as error:
        first = error.errors()[0]
        what = "--name" if "branch" in first["loc"] and base is None else f"--{first['loc'][0]}"
        raise ConfigError(f"sop branch: {what}: {first['msg']}; correct it") from error
    async with open_store(settings) as store:
        files = await open_shelf(settings, store).accepted()
    if not files:
        return "nothing was accepted yet"
    place = f"{target.folder}/" if folder else ""
    made = await push_files(
        target,
        settings.data_dir / WORKSHOPS,
        branch=name,
        files={f"{place}{path}": content for path, content in files.items()},
        message="Accepted changes of SOPs, checklists, causes and monitoring\n",
        at=int(time.time()),
    )
    if not made.is_new:
        return f"{name}: holds it all already ({made.commit[:12]})"
    return f"{name}: {len(files)} files in {made.commit[:12]}"


async def _accepted() -> tuple[str, dict[str, bytes]]:
    settings = load_settings()
    async with open_store(settings) as store:
        shelf = open_shelf(settings, store)
        return await shelf.patch(), await shelf.accepted()
