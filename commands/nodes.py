"""`/rca nodes`: which nodes there are, and what runs where."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.jobs.services import Services
from commands._reply import shown

MOST_LISTED = 100


@command(
    name="nodes",
    usage="nodes [INC-n]",
    en="Which nodes there are, and what runs on them.",
    zh="列出节点及其上运行的服务。",
    needs_incident=False,
    wants_incident=True,
)
async def nodes(call: Call, services: Services) -> Reply:
    """From the inventory; the nodes of the incident's scope are marked."""
    incident = (await services.journal.load(call.incident)).incident if call.incident else None
    scope = incident.scope.nodes if incident else ()
    known = services.inventory
    return shown(
        "nodes",
        {
            "nodes": [
                {
                    "name": name,
                    "services": [
                        item.name for item in known.services.values() if name in item.nodes
                    ],
                    "in_scope": name in scope,
                    "has_agent": node.url is not None,
                }
                for name, node in list(known.nodes.items())[:MOST_LISTED]
            ],
            "more": max(0, len(known.nodes) - MOST_LISTED),
        },
    )
