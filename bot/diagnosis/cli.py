"""`rca-bot diagnose`: ranks the causes without Slack."""

from __future__ import annotations

import asyncio
import getpass
import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bot.diagnosis.as_json import diagnosis_to_json
from bot.diagnosis.engine import diagnose
from bot.diagnosis.request import DiagnosisPorts, DiagnosisRequest
from bot.domain.evidence import SourceState
from bot.domain.hypothesis import Diagnosis
from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.domain.text import Locale, Localized
from bot.errors import CommandError, Reason
from bot.locales import translate
from bot.settings import Settings, load_settings

PortsOf = Callable[[Settings], AbstractAsyncContextManager[DiagnosisPorts]]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_STATES = {SourceState.OK: "green", SourceState.EMPTY: "yellow", SourceState.UNREACHABLE: "red"}
_LONGEST_DAYS = 30.0
_LONGEST_CHANGES_DAYS = 365.0
_SHOWN = 5
_REASONS = 3


def register(app: typer.Typer, make_ports: PortsOf) -> None:
    """Adds the command to `app`; `make_ports` opens the configured sources and closes them after."""

    @app.command()
    def diagnose_command(
        at: Annotated[
            str, typer.Option(help="Moment that is asked about, RFC 3339 with an offset.")
        ],
        service: Annotated[str, typer.Option(help="Name of the service in the inventory.")],
        window: Annotated[str, typer.Option(help="How far back, for example 90m, 1h, 2d.")] = "1h",
        heavy: Annotated[
            bool, typer.Option("--heavy", help="Also run heavy probes; you are the approver.")
        ] = False,
        changes: Annotated[
            str, typer.Option(help="How far back changes are searched, for example 7d, 30d.")
        ] = "7d",
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    ) -> None:
        """Collects evidence from all configured sources and prints the ranked causes."""
        moment = read_moment(at)
        seconds = read_duration(window)
        back = read_duration(changes, "--changes", days=_LONGEST_CHANGES_DAYS)
        settings = load_settings()
        request = _request(service, moment, seconds, back, heavy=heavy)
        diagnosis = asyncio.run(_run(settings, make_ports, request))
        if as_json:
            typer.echo(
                json.dumps(
                    diagnosis_to_json(diagnosis, locale=settings.locale),
                    ensure_ascii=False,
                    indent=1,
                )
            )
        else:
            show(diagnosis, Console(), settings.locale)


def _request(
    service: str, at: datetime, window: float, changes: float, *, heavy: bool
) -> DiagnosisRequest:
    caller = getpass.getuser()
    return DiagnosisRequest(
        service=service,
        at=at,
        window_seconds=window,
        allow_heavy=heavy,
        approver=caller if heavy else None,
        subject=caller,
        changes_back_seconds=changes,
    )


async def _run(settings: Settings, make_ports: PortsOf, request: DiagnosisRequest) -> Diagnosis:
    async with make_ports(settings) as ports:
        if request.service not in ports.inventory.services:
            known = ", ".join(sorted(ports.inventory.services)) or "none"
            raise CommandError(
                Localized.verbatim(
                    f"service {request.service!r} is not in the inventory; "
                    f"known: {known}; add it to the file of RCA_NODES"
                ),
                reason=Reason.NOT_FOUND,
            )
        return await diagnose(request, ports)


def read_moment(text: str) -> datetime:
    """An RFC 3339 time.

    Raises:
        typer.BadParameter: it is none, or has no offset.
    """
    try:
        return parse_rfc3339(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"--at: {text!r} is no RFC 3339 time; write it like 2026-11-30T08:15:00Z"
        ) from error


def read_duration(text: str, option: str = "--window", days: float = _LONGEST_DAYS) -> float:
    """Seconds of a duration like `90m`.

    Raises:
        typer.BadParameter: it is none, or not between a minute and `days`.

    >>> read_duration("1h30m")
    5400.0
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise typer.BadParameter(f"{option}: {text!r} is no duration; write it like 90m, 1h or 2d")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 60 <= seconds <= days * 86_400:
        raise typer.BadParameter(f"{option}: must be between 1m and {days:g}d")
    return seconds


def show(diagnosis: Diagnosis, console: Console, locale: Locale) -> None:
    """Prints a diagnosis for a person: what is seen, the ranking with its reasons, what was not seen."""

    def word(key: str, **fields: object) -> str:
        return translate(locale, f"diagnosis.cli.{key}", **fields)

    console.print(
        word("service", service=diagnosis.service, at=to_rfc3339(diagnosis.at)), style="bold"
    )
    for symptom in diagnosis.symptoms:
        console.print(f"  {symptom.summary.in_locale(locale)}", markup=False)
    if not diagnosis.symptoms:
        console.print(f"  {word('no_symptom')}")
    table = Table(box=None, pad_edge=False)
    table.add_column(word("rank"), justify="right")
    table.add_column(word("probability"), justify="right")
    table.add_column(word("cause"), style="bold")
    table.add_column(word("where"))
    table.add_column(word("why"), overflow="fold")
    for rank, item in enumerate(diagnosis.hypotheses[:_SHOWN], start=1):
        reasons = [f"+ {one.summary.in_locale(locale)}" for one in item.supports[:_REASONS]]
        reasons += [f"- {one.summary.in_locale(locale)}" for one in item.against[:1]]
        name = item.title.in_locale(locale)
        if len(item.chain) > 1:
            name += f"\n{' ← '.join(item.chain)}"
        table.add_row(
            str(rank), f"{item.probability:.0%}", name, item.node or "", "\n".join(reasons)
        )
    console.print(table, markup=False)
    first = diagnosis.hypotheses[0] if diagnosis.hypotheses else None
    if first and (step := first.next_experiment):
        console.print(f"{word('next')}: {step.probe or step.query} {step.node or ''}", markup=False)
        console.print(f"  + {step.expects.in_locale(locale)}", markup=False)
        console.print(f"  - {step.would_refute.in_locale(locale)}", markup=False)
    for layer in diagnosis.layers:
        name = translate(locale, f"guards.name.{layer.layer.value}")
        state = translate(locale, f"guards.state.{layer.state.value}")
        console.print(f"{name}: {state} - {layer.why.in_locale(locale)}", markup=False)
    for note in diagnosis.guards:
        kind = translate(locale, f"guards.kind.{note.kind.value}")
        console.print(f"{kind}: {note.text.in_locale(locale)}", markup=False)
    states = "  ".join(
        f"[{_STATES[state]}]{name} {state.value}[/]" for name, state in diagnosis.sources.items()
    )
    console.print(f"{word('sources')}: {states}")
    for spot in diagnosis.blind_spots:
        console.print(
            f"{word('blind')}: {spot.what.in_locale(locale)} - {spot.why.in_locale(locale)}",
            style="dim", markup=False,
        )  # fmt: skip
