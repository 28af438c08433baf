"""`/rca severity`: how bad it is."""

from __future__ import annotations

from bot.command import Call, Reply, command
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice

USAGE = "severity sev1..sev4"


@command(
    name="severity",
    usage=USAGE,
    en="Change the severity.",
    zh="调整严重级别。",
)
async def severity(call: Call, services: Services) -> Reply:
    """Records the new severity; `1` is `sev1`."""
    text = _line.read(call.text).text
    level, rest = _line.severity(f"sev{text}" if text[:1].isdigit() else text)
    if level is None or rest:
        raise _line.wrong(USAGE)
    await services.responding.set_severity(_line.incident_id(call), level, _line.via(call))
    services.wake()
    return notice(say("commands.severity_set", severity=level.value))
