"""`rca-bot agent`: serve, make keys, list probes, run one here."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Annotated

import typer

from bot.agent.keys import write_key_pair
from bot.agent.runner import ChildRunner
from bot.agent.serve import configure_logs, probe_catalogue, serve
from bot.agent.settings import AgentSettings, load_settings, require_server_settings
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.errors import BotError, ProbeError, Reason
from bot.probe import Probe

app = typer.Typer(
    help="The node agent: signed, bounded, read-only probes of this machine.",
    invoke_without_command=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def agent(
    context: typer.Context,
    allow_plaintext: Annotated[
        bool,
        typer.Option(
            "--allow-plaintext", help="Listen beyond loopback without TLS; only behind a TLS proxy."
        ),
    ] = False,
) -> None:
    """Serves the probes of this node over HTTP."""
    if context.invoked_subcommand is not None:
        return
    settings = load_settings()
    require_server_settings(settings, None)
    configure_logs()
    asyncio.run(serve(settings, allow_plaintext=allow_plaintext))


@app.command()
def keygen(
    out: Annotated[Path, typer.Option("--out", help="Folder for the two files.")],
) -> None:
    """Writes rca-agent.key (for the bot, mode 0600) and rca-agent.pub (for the nodes)."""
    private, public = write_key_pair(out)
    typer.echo(private)
    typer.echo(public)


@app.command("list")
def list_probes(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Lists the probes with their cost, arguments and findings."""
    probes = probe_catalogue().values()
    if as_json:
        typer.echo(json.dumps([probe.catalogue_entry() for probe in probes], indent=2))
        return
    for probe in probes:
        arguments = " ".join(
            item.name if item.is_required else f"[{item.name}]" for item in probe.arguments
        )
        typer.echo(f"{probe.name:<18} {probe.cost.value:<9} {arguments:<22} {probe.summary}")


@app.command("run")
def run_probe(
    name: Annotated[str, typer.Argument(metavar="PROBE", help="Name of the probe.")],
    args: Annotated[str, typer.Option("--args", help="Arguments as a JSON object.")] = "{}",
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.1, max=300, help="Seconds.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the file that a profile leaves.")
    ] = None,
) -> None:
    """Runs one probe on this machine, without the network; the caller is the approver of a heavy one.

    Exit 0 with an answer, also one that this machine lacks what the probe needs; 1 when it failed or ran out of time.
    """
    probe = probe_catalogue().get(name)
    if probe is None:
        raise BotError(
            f"run: there is no probe {name!r}; `rca-bot agent list` names them",
            reason=Reason.NOT_FOUND,
        )
    result = asyncio.run(_run(load_settings(), probe, _parsed(probe, args), timeout, out))
    _print_result(result, as_json=as_json)
    if result.status in {ProbeStatus.ERROR, ProbeStatus.TIMEOUT}:
        # The result stays on standard output: what the probe saw before it failed is evidence too.
        raise BotError(f"run: {name}: {result.status.value}: {result.error or 'no reason given'}")


def _print_result(result: ProbeResult, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
        return
    typer.echo(
        f"{result.probe} on {result.node}: {result.status.value} in {result.duration_seconds:.2f} s"
    )
    if result.error:
        typer.echo(f"  {result.error}")
    for finding in result.findings:
        typer.echo(f"  {finding.severity.value:<8} {finding.id}: {finding.summary}")
    for gap in result.data.get("not_checked", ()):
        typer.echo(f"  not checked: {gap}")


def _parsed(probe: Probe, text: str) -> dict[str, object]:
    try:
        args = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--args is no JSON: {error}") from error
    if not isinstance(args, dict):
        raise typer.BadParameter("--args must be a JSON object")
    try:
        probe.accept(args)
    except ProbeError as error:
        raise typer.BadParameter(str(error)) from error
    return args


async def _run(
    settings: AgentSettings,
    probe: Probe,
    args: dict[str, object],
    timeout_seconds: float | None,
    out: Path | None,
) -> ProbeResult:
    runner = ChildRunner(settings, now=time.time, monotonic=time.monotonic)
    try:
        limit = timeout_seconds or probe.time_limit(probe.accept(args))
        result = await runner.run(probe, args, limit)
        if out is not None and "artefact" in result.data:
            await asyncio.to_thread(_save, runner, result, out)
        return result
    finally:
        await runner.close()


def _save(runner: ChildRunner, result: ProbeResult, out: Path) -> None:
    artefact = result.data["artefact"]
    try:
        out.mkdir(parents=True, exist_ok=True)
        target = out / Path(artefact["name"]).name
        shutil.copyfile(runner.artefacts.folder().path / artefact["id"], target)
    except OSError as error:
        raise BotError(f"run: {out}: {error.strerror}; give another --out") from error
    typer.echo(str(target), err=True)
