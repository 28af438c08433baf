"""`/rca search`: earlier incidents by their words."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.jobs.services import Services
from bot.learning.members import readable_by
from bot.learning.search import Hit, search
from bot.locales import say
from commands import _line
from commands._reply import shown

USAGE = "search TEXT…"
MOST_LISTED = 15


@command(
    name="search",
    usage=USAGE,
    en="Find earlier incidents by title, symptom, cause, service or notes; best match first.",
    zh="按标题、现象、根因、服务或记录查找历史事件，最相关的在前。",
    needs_incident=False,
)
async def search_incidents(call: Call, services: Services) -> Reply:
    """Looks through the newest thousand; what happened in a private channel is shown to its members only."""
    text = _line.read(call.text).text
    if not text:
        raise _line.wrong(USAGE)
    pasts = await services.archive.pasts()
    hits = search(text, pasts)
    # Only what was found is asked about: each channel is a question to Slack.
    allowed = await readable_by(
        call.user, call.channel, [hit.past for hit in hits], services.members
    )
    visible = {past.id for past in allowed}
    shown_hits = [hit for hit in hits if hit.past.id in visible]
    return shown(
        "search",
        {
            "incidents": [_listed(hit) for hit in shown_hits[:MOST_LISTED]],
            "more": max(0, len(shown_hits) - MOST_LISTED),
            "words": text,
        },
    )


def _listed(hit: Hit) -> dict[str, object]:
    past = hit.past
    return {
        "id": past.id,
        "title": past.title,
        "status": past.status,
        "channel": past.channel,
        "thread_ts": past.thread_ts,
        "opened_at": past.opened_at.isoformat(),
        "cause": past.cause_title.to_json() if past.cause_title else None,
        "fields": [say(f"learning.field_{name}").to_json() for name in hit.fields],
        "drill": past.is_drill,
    }
