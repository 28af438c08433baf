"""`rca-bot check`: a doctor that looks at every configured dependency and says how to put it right."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum

import httpx
import typer

from bot.app import lint_knowledge, open_agents, open_store, utc_now
from bot.errors import BotError, ConfigError
from bot.inventory import Inventory, load_inventory
from bot.settings import Settings, load_settings
from bot.slack.doctor import check_slack
from bot.targets import targets

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

TIMEOUT_SECONDS = 5.0
# A second of skew is harmless; Slack refuses requests that are 300 s off, the agents ones that are 60 s off.
MAX_SKEW_SECONDS = 30.0


class Grade(StrEnum):
    """How a dependency stands."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Line:
    """One dependency: its grade, and for anything but ok what to do."""

    grade: Grade
    name: str
    text: str


@app.command()
def check() -> None:
    """Prints one line per dependency: ok, warn or fail, with the fix; exit 1 on any fail."""
    try:
        settings = load_settings()
    except ConfigError as error:
        for fault in error.faults:
            typer.echo(f"fail  settings: {fault}")
        raise typer.Exit(1) from error
    lines = asyncio.run(examine(settings))
    for line in lines:
        typer.echo(f"{line.grade.value:<5} {line.name}: {line.text}")
    if any(line.grade is Grade.FAIL for line in lines):
        raise typer.Exit(1)


async def examine(settings: Settings) -> list[Line]:
    """Looks at everything, each on its own: one that is down hides no other."""
    looks: list[tuple[str, Callable[[], Awaitable[list[Line]]]]] = [
        ("redis", lambda: _redis(settings)),
        ("slack", lambda: _slack(settings)),
        ("prometheus", lambda: _http(settings.prometheus_url, "prometheus", "/-/ready")),
        ("alertmanager", lambda: _alertmanager(settings)),
        ("loki", lambda: _http(settings.loki_url, "loki", "/ready")),
        ("traces", lambda: _traces(settings)),
        ("agents", lambda: _agents(settings)),
        ("knowledge", lambda: _knowledge(settings)),
        ("targets", lambda: _targets(settings)),
        ("webhooks", lambda: _webhooks(settings)),
        ("time", lambda: _time(settings)),
    ]
    lines: list[Line] = []
    for name, look in looks:
        try:
            lines.extend(await look())
        except BotError as error:
            lines.append(Line(Grade.FAIL, name, str(error)))
    return lines


async def _redis(settings: Settings) -> list[Line]:
    async with open_store(settings) as store:
        await store.is_writable()
        appendonly = await store.text.config_get("appendonly")
    where = "REDIS_URL" if settings.redis_url else f"embedded under {settings.data_dir}"
    if dict(appendonly).get("appendonly") != "yes":
        return [
            Line(
                Grade.WARN,
                "redis",
                f"{where} takes writes, but appendonly is off: a crash of Redis loses incidents; "
                "set appendonly yes",
            )
        ]
    return [Line(Grade.OK, "redis", f"{where} takes writes, appendonly is on")]


async def _slack(settings: Settings) -> list[Line]:
    return [
        Line(Grade(grade), f"slack {name}", text)
        for grade, name, text in await check_slack(settings)
    ]


async def _http(url: str | None, name: str, path: str) -> list[Line]:
    if url is None:
        return [
            Line(Grade.WARN, name, f"not configured; set {name.upper()}_URL to have its evidence")
        ]
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as http:
            answer = await http.get(url.rstrip("/") + path)
    except httpx.HTTPError as error:
        reason = type(error).__name__
        return [
            Line(Grade.FAIL, name, f"no answer ({reason}); start it or correct {name.upper()}_URL")
        ]
    if answer.status_code >= 400:
        return [Line(Grade.FAIL, name, f"answers {answer.status_code} at {path}; look at its log")]
    return [Line(Grade.OK, name, "answers")]


async def _alertmanager(settings: Settings) -> list[Line]:
    if settings.alertmanager_url is None:
        text = (
            "not asked for silences; set ALERTMANAGER_URL to have no reminders of silenced alerts"
        )
        return [Line(Grade.WARN, "alertmanager", text)]
    return await _http(settings.alertmanager_url, "alertmanager", "/-/ready")


async def _traces(settings: Settings) -> list[Line]:
    if settings.jaeger_url:
        return await _http(settings.jaeger_url, "jaeger", "/api/services")
    if settings.tempo_url:
        return await _http(settings.tempo_url, "tempo", "/ready")
    return [
        Line(
            Grade.WARN, "traces", "not configured; set JAEGER_URL or TEMPO_URL to see into requests"
        )
    ]


async def _agents(settings: Settings) -> list[Line]:
    inventory: Inventory = load_inventory(settings.nodes)
    if not inventory.nodes:
        return [
            Line(Grade.WARN, "agents", "no node is listed; set RCA_NODES to the inventory file")
        ]
    try:
        agents = open_agents(settings, inventory)
    except ConfigError as error:
        return [Line(Grade.FAIL, "agents", str(error))]
    if agents is None:
        return [
            Line(
                Grade.FAIL,
                "agents",
                "no signing key; run rca-bot agent keygen --out DIR and set RCA_AGENT_KEY",
            )
        ]
    lines = []
    try:
        for node in inventory.nodes.values():
            result = await agents.run(
                node.name,
                "time_sync",
                {},
                subject="system",
                timeout_seconds=TIMEOUT_SECONDS,
                approved_by=None,
            )
            reached = result.status.value in ("ok", "unsupported")
            text = (
                "answers and takes our key" if reached else f"{result.status.value}: {result.error}"
            )
            lines.append(Line(Grade.OK if reached else Grade.FAIL, f"agent {node.name}", text))
    finally:
        await agents.aclose()
    return lines


async def _knowledge(settings: Settings) -> list[Line]:
    lines = []
    for name, paths in (
        ("shipped", []),
        ("team's", [settings.knowledge_dir] if settings.knowledge_dir else []),
    ):
        if name == "team's" and not paths:
            continue
        faults, checked = lint_knowledge([path for path in paths if path is not None])
        lines.append(
            Line(Grade.FAIL, "knowledge", faults[0])
            if faults
            else Line(Grade.OK, "knowledge", f"{name} files: {checked}, no fault")
        )
    return lines


async def _targets(settings: Settings) -> list[Line]:
    """Where reports are delivered to; one that is not set up is nobody's fault and has no line."""
    lines = []
    async with httpx.AsyncClient(follow_redirects=False) as http:
        for name, target in targets().items():
            if not target.is_set_up(settings):
                continue
            try:
                lines.append(Line(Grade.OK, name, await target.check(settings, http)))
            except BotError as error:
                lines.append(Line(Grade.FAIL, name, str(error)))
    return lines


async def _webhooks(settings: Settings) -> list[Line]:
    lines = []
    if settings.webhook_token is None and not (settings.webhook_open and settings.is_loopback):
        lines.append(Line(Grade.WARN, "webhooks", "every sender gets 401; set RCA_WEBHOOK_TOKEN"))
    elif settings.alert_channel is None and not settings.routes:
        lines.append(
            Line(
                Grade.FAIL,
                "webhooks",
                "alerts have no channel to open in; set RCA_ALERT_CHANNEL to a channel id",
            )
        )
    else:
        lines.append(Line(Grade.OK, "webhooks", "senders are asked for the token"))
    if settings.read_token is None:
        lines.append(
            Line(Grade.WARN, "reads", "the webhook token also reads incidents; set RCA_READ_TOKEN")
        )
    return lines


async def _time(settings: Settings) -> list[Line]:
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as http:
            answer = await http.head(settings.slack_api_url)
    except (httpx.HTTPError, socket.gaierror):
        return [Line(Grade.WARN, "time", "Slack was not reachable to compare clocks with")]
    stamp = answer.headers.get("date")
    if not stamp:
        return [Line(Grade.WARN, "time", "Slack's answer carries no date to compare clocks with")]
    skew = abs((utc_now() - parsedate_to_datetime(stamp)).total_seconds())
    if skew > MAX_SKEW_SECONDS:
        return [
            Line(Grade.FAIL, "time", f"this clock is {skew:.0f} s off Slack's; start time sync")
        ]
    return [Line(Grade.OK, "time", f"within {skew:.0f} s of Slack's clock")]
