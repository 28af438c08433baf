"""`rca-bot export`: the report of a stored incident as files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from bot.app import build_services, open_ports, open_store, utc_now
from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale
from bot.errors import BotError, Reason
from bot.exporter import Exporter, ExportOptions
from bot.exporters import exporters
from bot.jobs.reporting import compile_report
from bot.settings import Settings, load_settings
from bot.store.queue import Queue

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def export(
    incident: Annotated[str, typer.Argument(help="The incident's id, for example INC-1.")],
    out: Annotated[Path, typer.Option(help="Folder to write into; made if it is missing.")],
    formats: Annotated[
        str, typer.Option("--format", help="Comma-separated: md, html, pdf, json.")
    ] = "md,html,pdf,json",
    locale: Annotated[
        str | None, typer.Option(help="en or zh-CN; the incident's own by default.")
    ] = None,
) -> None:
    """Compiles the report and prints the paths."""
    known = exporters()
    wanted = [item.strip() for item in formats.split(",") if item.strip()]
    unknown = [item for item in wanted if item not in known]
    if unknown or not wanted:
        raise typer.BadParameter(
            f"{unknown[0] if unknown else 'none'}: no such format; choose from {', '.join(known)}"
        )
    if locale is not None and locale not in set(Locale):
        raise typer.BadParameter(f"{locale}: choose from {', '.join(Locale)}")
    chosen = Locale(locale) if locale else None
    paths = asyncio.run(
        _export(load_settings(), incident, out, [known[item] for item in wanted], chosen)
    )
    for path in paths:
        typer.echo(str(path))


async def _export(
    settings: Settings, incident_id: str, out: Path, wanted: list[Exporter], locale: Locale | None
) -> list[Path]:
    async with open_store(settings) as store, open_ports(settings, store) as ports:
        services = build_services(settings, store, Queue(store), ports, lambda: None, utc_now)
        ledger = await services.journal.load(incident_id)
        report = await compile_report(services, incident_id)
        options = ExportOptions(locale=locale or ledger.incident.locale)
        return await asyncio.to_thread(_write, report, options, incident_id, out, wanted)


def _write(
    report: Postmortem, options: ExportOptions, incident_id: str, out: Path, wanted: list[Exporter]
) -> list[Path]:
    paths = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for exporter in wanted:
            written = exporter.export(report, options)
            for name, content in written.files.items():
                target = out / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if name == written.main:
                    target = out / f"{incident_id}.{exporter.suffix}"
                    paths.append(target)
                target.write_bytes(content)
    except OSError as error:
        raise BotError(
            f"{out}: cannot be written: {error.strerror}; choose another folder with --out",
            reason=Reason.UNSUPPORTED,
        ) from error
    return paths
