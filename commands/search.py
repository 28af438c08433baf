"""`/rca search`: earlier incidents."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.jobs.services import Services
from bot.store import index
from commands import _line
from commands._reply import shown

USAGE = "search TEXT…"
MOST_READ = 500
MOST_LISTED = 15


@command(
    name="search",
    usage=USAGE,
    en="Find earlier incidents by title, service, id or cause.",
    zh="按标题、服务、编号或根因查找历史事件。",
    needs_incident=False,
)
async def search(call: Call, services: Services) -> Reply:
    """Every word must be found; the newest 500 incidents are looked through."""
    words = [word.lower() for word in _line.read(call.text).words]
    if not words:
        raise _line.wrong(USAGE)
    found = []
    for summary in await index.summaries(services.store, before=None, limit=MOST_READ):
        incident = (await services.journal.load(summary.id)).incident
        cause = incident.root_cause.cause if incident.root_cause else ""
        named = incident.hypothesis(cause)
        title = f"{named.title.en} {named.title.zh}" if named else ""
        hay = " ".join((summary.id, summary.title, *summary.services, cause, title)).lower()
        if all(word in hay for word in words):
            found.append({**summary.to_json(), "cause": named.title.to_json() if named else None})
    return shown(
        "search",
        {
            "incidents": found[:MOST_LISTED],
            "more": max(0, len(found) - MOST_LISTED),
            "words": " ".join(words),
        },
    )
