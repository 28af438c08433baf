"""`rca-bot explain`: why an alert was opened, grouped or ignored."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bot.app import open_store
from bot.domain.alert import AlertGroup
from bot.errors import BotError, Reason
from bot.incidents.opening import correlation_keys
from bot.intake import alertmanager
from bot.inventory import load_inventory
from bot.settings import Settings, load_settings
from bot.store import index

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def explain(
    alert: Annotated[str, typer.Argument(help="A fingerprint, or the path of a webhook body.")],
) -> None:
    """Prints the fingerprint's inputs, and the rule that matched."""
    path = Path(alert)
    settings = load_settings()
    if not path.is_file():
        for line in asyncio.run(_by_fingerprint(settings, alert)):
            typer.echo(line)
        return
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BotError(f"{path}: no JSON: {error}", reason=Reason.MALFORMED) from error
    group = alertmanager.parse(body, datetime.now(UTC))
    for line in asyncio.run(_by_body(settings, group)):
        typer.echo(line)


async def _by_fingerprint(settings: Settings, fingerprint: str) -> list[str]:
    async with open_store(settings) as store:
        found = await index.sightings(store, fingerprint)
    if not found:
        raise BotError(
            f"{fingerprint}: never received; give the path of the webhook body instead",
            reason=Reason.NOT_FOUND,
        )
    return [f"fingerprint: {fingerprint}", *found]


async def _by_body(settings: Settings, group: AlertGroup) -> list[str]:
    inventory = load_inventory(settings.nodes)
    labels = dict(group.common_labels) or dict(group.alerts[0].labels)
    service = inventory.service_of(labels)
    route = settings.route(labels)
    lines = [
        f"group key: {group.group_key}",
        f"status: {group.status.value}; alerts: {len(group.alerts)} delivered, "
        f"{group.truncated} left out by the sender",
        f"service: {service.name if service else 'unknown (no label service, no selector matches)'}",
        f"channel: {route.channel if route else 'none: set RCA_ALERT_CHANNEL or a route'}",
    ]
    for item in group.alerts:
        inputs = ", ".join(f"{key}={value}" for key, value in sorted(item.labels.items()))
        lines.append(f"fingerprint {item.fingerprint}: from {inputs}")
    async with open_store(settings) as store:
        for key in correlation_keys(group, inventory):
            held = await index.incident_of(store, index.correlation_key(key))
            lines.append(f"correlation {key!r}: {held or 'no open incident'}")
            if held is not None:
                lines.append(f"rule: joined to {held}, because this key is held by it")
                return lines
    if group.status.value == "resolved":
        lines.append("rule: ignored, because it only says that something is over that is not open")
    else:
        lines.append("rule: opens an incident, because no open incident holds one of its keys")
    return lines
