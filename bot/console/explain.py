"""`rca-bot explain`: why an alert was opened, grouped or ignored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from bot.app import open_store, utc_now
from bot.domain.alert import Alert, AlertGroup, AlertStatus
from bot.errors import BotError, EvidenceError, Reason
from bot.incidents import storms
from bot.incidents.grouping import EPISODE_GAP, Decision, Grouping, is_heartbeat, keys_of, labels_of
from bot.incidents.journal import Journal
from bot.incidents.silencing import SENDERS, silence_of
from bot.intake import alertmanager, grafana, pagerduty
from bot.inventory import Inventory, load_inventory
from bot.settings import Settings, load_settings
from bot.source import Connection
from bot.sources.alertmanager import Alertmanager
from bot.store import alert_memory, index
from bot.store.transaction import Store

ASK_SECONDS = 5.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def explain(
    alert: Annotated[str, typer.Argument(help="A fingerprint, or the path of a webhook body.")],
) -> None:
    """Prints the fingerprint's inputs, and the rule that matched."""
    settings = load_settings()
    path = Path(alert)
    if path.is_dir():
        raise BotError(f"{path}: is a folder; give the path of a webhook body, or a fingerprint")
    if not path.is_file():
        lines = asyncio.run(_by_fingerprint(settings, alert))
    else:
        sender, group = _read(path)
        lines = asyncio.run(_by_body(settings, sender, group))
    for line in lines:
        typer.echo(line)


def _read(path: Path) -> tuple[str, AlertGroup | None]:
    """The body's sender, told by its shape, and the group in it."""
    try:
        body: Any = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise BotError(f"{path}: no JSON: {error}", reason=Reason.MALFORMED) from error
    now = datetime.now(UTC)
    if not isinstance(body, Mapping):
        return "alertmanager", alertmanager.parse(body, now)
    if "event" in body:
        return "pagerduty", pagerduty.parse(body, now)
    if "orgId" in body or "state" in body:
        return "grafana", grafana.parse(body, now)
    return "alertmanager", alertmanager.parse(body, now)


async def _by_fingerprint(settings: Settings, fingerprint: str) -> list[str]:
    async with open_store(settings) as store:
        found = await index.sightings(store, fingerprint)
        labels = await alert_memory.labels_of(store, fingerprint)
        beat = await alert_memory.heartbeat(store, fingerprint)
    if not found:
        raise BotError(
            f"{fingerprint}: never received; give the path of the webhook body instead",
            reason=Reason.NOT_FOUND,
        )
    lines = [f"fingerprint {fingerprint}: stands for {_inputs(labels or {})}"]
    if beat is not None:
        seconds = settings.followup.heartbeat_s
        limit = (
            f"reported after {seconds:g} s of silence" if seconds else "its silence is not watched"
        )
        lines.append(f"heartbeat {beat.name}: last came {beat.last_at.isoformat()}; {limit}")
    known = Alert(
        fingerprint=fingerprint,
        status=AlertStatus.FIRING,
        labels=labels or {},
        starts_at=utc_now(),
    )
    lines += await _silences(settings, [known])
    return [*lines, *(f"rule: {item}" for item in found)]


async def _by_body(settings: Settings, sender: str, group: AlertGroup | None) -> list[str]:
    if group is None:
        return [f"sender: {sender}", "rule: ignored: the event says nothing about an alert"]
    inventory = load_inventory(settings.nodes)
    lines = [f"sender: {sender}", *_said(settings, inventory, group)]
    lines += [_fingerprint(item) for item in group.alerts]
    if group.intake in SENDERS:
        lines += await _silences(settings, group.alerts)
    heartbeats = [item for item in group.alerts if is_heartbeat(item)]
    lines += [
        f"rule: heartbeat: {item.fingerprint} is recorded and opens nothing" for item in heartbeats
    ]
    rest = tuple(item for item in group.alerts if not is_heartbeat(item))
    if not rest:
        return lines
    group = replace(group, alerts=rest)
    async with open_store(settings) as store:
        return [*lines, *await _decided(store, inventory, group)]


async def _decided(store: Store, inventory: Inventory, group: AlertGroup) -> list[str]:
    keys = keys_of(group, inventory)
    held = (await alert_memory.recall(store, keys.all, ())).held
    lines = [
        f"key {key!r}: {held.get(key, 'held by no incident')}"
        for key in keys.all
        if key == keys.own or key in held
    ]
    decision: Decision = await Grouping(store, Journal(store, utc_now), inventory).decide(group)
    lines.append(f"rule: {decision.rule.value}: {decision.words}")
    if decision.opens:
        lines.append(
            f"storm: over {storms.MOST_NEW_GROUPS} new groups a minute in the channel, it is only "
            "listed on the storm's anchor"
        )
    minutes = EPISODE_GAP.total_seconds() / 60
    lines.append(
        f"episode: after {minutes:g} min without any alert of the group a firing is a new one"
    )
    return lines


def _said(settings: Settings, inventory: Inventory, group: AlertGroup) -> list[str]:
    labels = labels_of(group)
    service = inventory.service_of(labels)
    route = settings.route(labels)
    return [
        f"group key: {group.group_key}",
        f"status: {group.status.value}; alerts: {len(group.alerts)} delivered, "
        f"{group.truncated} left out by the sender",
        f"service: {service.name if service else 'unknown (no label service, no selector matches)'}",
        f"channel: {route.channel if route else 'none: set RCA_ALERT_CHANNEL or a route'}",
        *(f"silenced: {name}: {why}" for name, why in group.silenced.items()),
    ]


async def _silences(settings: Settings, alerts: Sequence[Alert]) -> list[str]:
    """What Alertmanager says of each alert now; where it says nothing, that this is not known."""
    if settings.alertmanager_url is None:
        return ["silence: unknown: Alertmanager is not asked; set ALERTMANAGER_URL"]
    async with httpx.AsyncClient(follow_redirects=False) as http:
        source = Alertmanager(Connection(url=settings.alertmanager_url, http=http))
        try:
            sent = await source.alerts(timeout_seconds=ASK_SECONDS)
        except EvidenceError as error:
            return [f"silence: unknown: {error}"]
    lines = []
    for alert in alerts:
        silence = silence_of(alert, sent)
        words = (
            f"silenced in Alertmanager until {silence.until.isoformat()} by {silence.by or '–'} "
            f"({silence.comment or 'no comment'}), silence {silence.id}; no follow-ups meanwhile"
            if silence
            else "none in Alertmanager covers it"
        )
        lines.append(f"silence: {alert.fingerprint}: {words}")
    return lines


def _fingerprint(alert: Alert) -> str:
    source = "given by the sender" if alert.has_own_fingerprint else "made here"
    return f"fingerprint {alert.fingerprint}: {source}; from {_inputs(alert.labels)}"


def _inputs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"
