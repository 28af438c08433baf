"""`/rca chart`: draws a query into the thread."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from commands import _line, _typed
from commands._reply import notice

USAGE = "chart PROMQL [range=1h]"
MOST_QUERY = 2000


@command(
    name="chart",
    usage=USAGE,
    en="Draw a query into the thread.",
    zh="把查询结果绘制成图，发到消息串。",
)
async def chart(call: Call, services: Services) -> Reply:
    """Queues the drawing; `symptom` and `deciding` draw what the incident is about."""
    line = _line.read(call.text, short=("range",), window="range")
    query = _typed.query(line.text)
    if not query or len(query) > MOST_QUERY:
        raise _line.wrong(USAGE)
    seconds = _line.duration(line.options.get("range", "1h"), USAGE)
    kind = query if query in ("symptom", "deciding") else "query"
    job = requests.chart(
        _line.incident_id(call),
        kind=kind,
        by=call.user,
        query=query if kind == "query" else "",
        range_seconds=seconds,
    )
    await services.outbox.send(job, once=f"{call.key}:chart")
    return notice(say("commands.drawing"))
