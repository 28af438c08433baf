"""`/rca export`: the report, as files in the thread."""

from __future__ import annotations

import re

from bot.command import Call, Reply, command
from bot.errors import CommandError, Reason
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice

USAGE = "export [md|html|pdf|json|confluence|git]…"
STANDARD = ("md", "html", "pdf", "json")
_WORDS = {"markdown": "md"}


@command(
    name="export",
    usage=USAGE,
    en="Compile the report and hand over the files in the thread.",
    zh="生成报告，并把文件发到消息串。",
)
async def export(call: Call, services: Services) -> Reply:
    """Without a format, all files; a target that is not set up is said, not skipped."""
    line = _line.read(call.text, short=("format",), formats="format")
    text = f"{line.options.get('format', '')} {line.text}".lower()
    asked = [_WORDS.get(word, word) for word in re.split(r"[\s,，、]+", text) if word]
    known = {exporter.suffix or name for name, exporter in services.exporters.items()}
    known |= set(services.exporters)
    for word in asked:
        if word not in (*STANDARD, "confluence", "git"):
            raise _line.wrong(USAGE)
        if word not in known:
            raise CommandError(say("commands.no_exporter", name=word), reason=Reason.UNSUPPORTED)
    formats = tuple(dict.fromkeys(asked)) or tuple(item for item in STANDARD if item in known)
    job = requests.report(_line.incident_id(call), formats=formats, by=call.user)
    await services.outbox.send(job, once=f"{call.key}:report")
    return notice(say("commands.exporting", formats=", ".join(formats)))
