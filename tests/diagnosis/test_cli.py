"""`rca-bot diagnose`: JSON, a table for people, exit codes, and faults in one line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import typer
from typer.testing import CliRunner

from bot.diagnosis.cli import read_duration, register
from bot.diagnosis.request import DiagnosisPorts
from bot.errors import CommandError
from bot.inventory import Inventory, Node
from bot.settings import Settings
from tests.diagnosis.worlds import CATALOGUE, NODE, SERVICE


@asynccontextmanager
async def nothing_answers(_: Settings) -> AsyncIterator[DiagnosisPorts]:
    inventory = Inventory(nodes={NODE: Node(name=NODE, url=None)}, services={SERVICE.name: SERVICE})
    yield DiagnosisPorts(inventory=inventory, catalogue=CATALOGUE, clock=lambda: datetime.now(UTC))


def app() -> typer.Typer:
    made = typer.Typer(add_completion=False)
    register(made, nothing_answers)
    return made


AT = ["--at", "2026-11-30T08:15:00Z"]


def test_all_sources_down_still_prints_a_ranking() -> None:
    result = CliRunner().invoke(app(), [*AT, "--service", SERVICE.name, "--json"])
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert value["hypotheses"][0]["cause"] == "not_established"
    assert value["service"] == SERVICE.name
    assert value["at"] == "2026-11-30T08:15:00Z"


def test_table_for_people_names_cause_and_what_was_not_seen() -> None:
    result = CliRunner().invoke(app(), [*AT, "--service", SERVICE.name], env={"COLUMNS": "140"})
    assert result.exit_code == 0
    assert "cause not established" in result.stdout
    assert "not configured" in result.stdout


def test_unknown_service_is_one_line_that_names_the_known_ones() -> None:
    result = CliRunner().invoke(app(), [*AT, "--service", "nobody"])
    assert result.exit_code == 1
    assert isinstance(result.exception, CommandError)
    assert SERVICE.name in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--at", "yesterday", "--service", SERVICE.name],
        ["--at", "2026-11-30T08:15:00", "--service", SERVICE.name],
        [*AT, "--service", SERVICE.name, "--window", "soon"],
        [*AT, "--service", SERVICE.name, "--window", "90d"],
        AT,
    ],
    ids=["no time", "no offset", "no duration", "too long", "no service"],
)
def test_usage_fault_exits_2(wrong: list[str]) -> None:
    assert CliRunner().invoke(app(), wrong).exit_code == 2


def test_durations_add_up() -> None:
    assert read_duration("1h30m") == 5400
