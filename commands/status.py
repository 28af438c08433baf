"""`/rca status`: where an incident stands, or which ones are open."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.domain.incident import IncidentStatus
from bot.jobs.services import Services
from bot.store import index
from commands._reply import shown

MOST_LISTED = 20


@command(
    name="status",
    usage="status [INC-n]",
    en="Where an incident stands; without one, the open incidents.",
    zh="查看事件进展；不指定时列出未关闭的事件。",
    needs_incident=False,
)
async def status(call: Call, services: Services) -> Reply:
    """Answers from the projection: no source is asked."""
    if call.incident is not None:
        return shown("status", {"incident_id": call.incident})
    found = await index.summaries(services.store, before=None, limit=200)
    open_ones = [item for item in found if item.status != IncidentStatus.RESOLVED.value]
    return shown(
        "status",
        {
            "incidents": [item.to_json() for item in open_ones[:MOST_LISTED]],
            "more": max(0, len(open_ones) - MOST_LISTED),
        },
    )
