"""`/rca changes`: what was changed before it began."""

from __future__ import annotations

from datetime import timedelta

from bot.command import Call, Reply, command
from bot.diagnosis.request import CHANGES_BACK_SECONDS
from bot.incidents.widening import widen_changes
from bot.jobs import requests
from bot.jobs.services import Services
from bot.store.index import ChangeLog
from commands import _line
from commands._reply import shown

USAGE = "changes [since=7d]"
MOST_LISTED = 30


@command(
    name="changes",
    usage=USAGE,
    en="What was changed lately, newest first.",
    zh="近期变更，最新的在前。",
    needs_incident=False,
    wants_incident=True,
)
async def changes(call: Call, services: Services) -> Reply:
    """Reads the stored change events; the incident's own service is marked.

    Asked in an incident for more than the engine looks at by itself, the causes are ranked again over that span.
    """
    line = _line.read(call.text, short=("since",))
    seconds = _line.duration(line.options.get("since") or line.text or "7d", USAGE)
    since = call.at - timedelta(seconds=seconds)
    found = await ChangeLog(services.store).between(since, call.at)
    incident = (await services.journal.load(call.incident)).incident if call.incident else None
    if (
        incident is not None
        and incident.is_open
        and incident.service is not None
        and seconds > max(incident.changes_back_seconds or 0.0, CHANGES_BACK_SECONDS)
    ):
        await widen_changes(
            services.responding,
            incident.id,
            seconds,
            _line.via(call),
            jobs=lambda after: [requests.collect(after.id, reason="asked", by=call.user)],
        )
        services.wake()
    newest = sorted(found, key=lambda item: item.at, reverse=True)
    return shown(
        "changes",
        {
            "changes": [item.to_json() for item in newest[:MOST_LISTED]],
            "more": max(0, len(newest) - MOST_LISTED),
            "service": incident.service if incident else None,
            "days": f"{round(seconds / 86400, 1):g}",
        },
    )
