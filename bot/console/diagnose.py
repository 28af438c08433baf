"""`rca-bot diagnose`: the engine without Slack."""

from __future__ import annotations

import typer

from bot.app import diagnosis_ports
from bot.diagnosis.cli import register

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
register(app, diagnosis_ports)
