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
from bot.jobs.reporting import compile_report, may_leave
from bot.learning.saving import case_of, write_case
from bot.report.redaction_rules import rules_of
from bot.settings import Settings, load_settings
from bot.store.queue import Queue

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

CASE = "case"
"""Not a report: the directory of a case that the engine can judge again."""


@app.command()
def export(
    incident: Annotated[str, typer.Argument(help="The incident's id, for example INC-1.")],
    out: Annotated[Path, typer.Option(help="Folder to write into; made if it is missing.")],
    formats: Annotated[
        str,
        typer.Option("--format", help="Comma-separated: md, html, pdf, json, case (to replay it)."),
    ] = "md,html,pdf,json",
    locale: Annotated[
        str | None, typer.Option(help="en or zh-CN; the incident's own by default.")
    ] = None,
) -> None:
    """Compiles the report and prints the paths."""
    known = exporters()
    full = {exporter.name: suffix for suffix, exporter in known.items()}
    words = [item.strip().lower() for item in formats.split(",") if item.strip()]
    wanted = list(dict.fromkeys(full.get(word, word) for word in words))
    unknown = [item for item in wanted if item not in known and item != CASE]
    if unknown or not wanted:
        raise typer.BadParameter(
            f"{unknown[0] if unknown else 'none'}: no such format; "
            f"choose from {', '.join([*known, CASE])}"
        )
    if locale is not None and locale not in set(Locale):
        raise typer.BadParameter(f"{locale}: choose from {', '.join(Locale)}")
    chosen = Locale(locale) if locale else None
    paths = asyncio.run(
        _export(
            load_settings(),
            incident.upper(),
            out,
            [known[item] for item in wanted if item != CASE],
            chosen,
            with_case=CASE in wanted,
        )
    )
    for path in paths:
        typer.echo(str(path))


async def _export(
    settings: Settings,
    incident_id: str,
    out: Path,
    wanted: list[Exporter],
    locale: Locale | None,
    *,
    with_case: bool,
) -> list[Path]:
    async with open_store(settings) as store, open_ports(settings, store) as ports:
        services = build_services(settings, store, Queue(store), ports, lambda: None, utc_now)
        ledger = await services.journal.load(incident_id)
        if (why := await may_leave(services, ledger.incident, "shell")) is not None:
            raise BotError(why.en, reason=Reason.UNAUTHORISED)
        paths: list[Path] = []
        if with_case:
            case = await case_of(store, ledger.incident)
            rules = rules_of(settings.redaction)
            paths.append(await asyncio.to_thread(write_case, case, out, rules))
        if not wanted:
            return paths
        report = await compile_report(services, incident_id)
        options = ExportOptions(locale=locale or ledger.incident.locale)
        written = await asyncio.to_thread(_write, report, options, incident_id, out, wanted)
        return [*written, *paths]


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
