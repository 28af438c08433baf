"""`/rca nodes`: which nodes there are, and what runs where."""

from __future__ import annotations

from collections.abc import Sequence

from bot.command import Call, Reply, command
from bot.domain.timeline import Entry, EntryKind
from bot.jobs.services import Services
from commands._reply import shown

MOST_LISTED = 100
_TOLD_NOTHING = ("error", "timeout")


def _answered(entries: Sequence[Entry]) -> dict[str, dict[str, str | bool]]:
    """Of each node that was asked, whether any probe of the newest entry about it told something, else why not."""
    found: dict[str, dict[str, str | bool]] = {}
    for entry in reversed(entries):
        if entry.kind is not EntryKind.PROBE:
            continue
        results = entry.data.get("results") or [entry.data.get("result")]
        here: dict[str, dict[str, str | bool]] = {}
        for result in filter(None, results):
            told = result["status"] not in _TOLD_NOTHING
            known = here.get(str(result["node"]))
            if known is None or told:
                why = "" if told else str(result.get("error") or result["status"])
                at = str(result["started_at"])
                here[str(result["node"])] = {"answered": told, "why": why, "at": at}
        found = {**here, **found}
    return found


@command(
    name="nodes",
    usage="nodes [INC-n]",
    en="Which nodes there are, and what runs on them.",
    zh="列出节点及其上运行的服务。",
    needs_incident=False,
    wants_incident=True,
)
async def nodes(call: Call, services: Services) -> Reply:
    """From the inventory; the nodes of the incident's scope are marked, with whether they answered in it.

    A node that was asked nothing is neither well nor ill.
    """
    ledger = await services.journal.load(call.incident) if call.incident else None
    scope = ledger.incident.scope.nodes if ledger else ()
    answered = _answered(ledger.entries) if ledger else {}
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
                    **answered.get(name, {}),
                }
                for name, node in list(known.nodes.items())[:MOST_LISTED]
            ],
            "more": max(0, len(known.nodes) - MOST_LISTED),
        },
    )
