"""`/rca mitigate`: stop the pain; open at every step, never gated."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice

USAGE = "mitigate TEXT…"
MOST_TEXT = 1000


@command(
    name="mitigate",
    usage=USAGE,
    en="Record a mitigation; what a restart would destroy is captured first.",
    zh="记录缓解措施；会先保存重启将丢失的现场信息。",
)
async def mitigate(call: Call, services: Services) -> Reply:
    """Queues the capture and the record; `capture=no` skips the capture."""
    line = _line.read(call.text, short=("capture",))
    # Where there is no option, the lines of what was typed stay.
    said = line.text if line.options else _line.said(call.text)
    text = _line.shortened(said, MOST_TEXT)
    if not text:
        raise _line.wrong(USAGE)
    skips = line.options.get("capture", "yes").lower() in ("no", "off", "skip", "0", "否")
    job = requests.mitigate(
        _line.incident_id(call),
        text=text,
        by=call.user,
        at=call.at,
        capture=not skips,
        permalink=call.permalink,
        message_ts=call.message_ts,
    )
    await services.outbox.send(job, once=f"{call.key}:mitigate")
    return notice(say("commands.mitigating_now" if skips else "commands.mitigating"))
