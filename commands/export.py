"""`/rca export`: the report, as files in the thread or where the team keeps its postmortems."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.command import Call, Reply, command
from bot.domain.text import listed
from bot.errors import CommandError, Reason
from bot.jobs import delivering, requests
from bot.jobs.delivering import refused
from bot.jobs.delivery_news import TITLES
from bot.jobs.services import Services
from bot.locales import say
from bot.targets import targets
from commands import _line
from commands._reply import notice

USAGE = "export [md|html|pdf|json|confluence|git]…"
STANDARD = ("md", "html", "pdf", "json")
_WORDS = {"markdown": "md", "wiki": "confluence", "issues": "github"}


@command(
    name="export",
    usage=USAGE,
    en="Compile the report and hand over the files in the thread, or deliver it to Confluence, git or GitHub issues.",
    zh="生成报告，把文件发到消息串，或送到 Confluence、git、GitHub issue。",
)
async def export(call: Call, services: Services) -> Reply:
    """Without a format, all files; a target that is not set up is said, not skipped."""
    asked = _asked(call)
    known = {exporter.suffix or name for name, exporter in services.exporters.items()}
    known |= set(services.exporters)
    places = targets()
    for word in asked:
        if word in places:
            why = refused(places[word], services.settings)
            if why is not None:
                raise CommandError(why, reason=Reason.UNSUPPORTED)
        elif word not in STANDARD:
            raise _line.wrong(USAGE)
        elif word not in known:
            raise CommandError(say("commands.no_exporter", name=word), reason=Reason.UNSUPPORTED)
    chosen = asked or [item for item in STANDARD if item in known]
    formats = tuple(word for word in chosen if word not in places)
    going = [word for word in chosen if word in places]
    incident = _line.incident_id(call)
    if formats:
        job = requests.report(incident, formats=formats, by=call.user)
        await services.outbox.send(job, once=f"{call.key}:report")
    for word in going:
        once = f"{call.key}:deliver:{word}"
        await delivering.ask(services, incident, word, by=call.user, once=once)
    if not going:
        return notice(say("commands.exporting", formats=listed(formats)))
    names = listed((*formats, *(TITLES.get(word, word) for word in going)))
    return notice(say("delivery.delivering", targets=names))


def _asked(call: Call) -> Sequence[str]:
    """The words of the line or the button, each once, in their order."""
    line = _line.read(call.text, short=("format",), formats="format")
    text = f"{line.options.get('format', '')} {line.text}".lower()
    words = [word for word in re.split(r"[\s,，、;；|]+", text) if word]
    pressed = call.payload.get("formats")
    words += [str(word) for word in pressed] if isinstance(pressed, list | tuple) else []
    return list(dict.fromkeys(_WORDS.get(word, word) for word in words))
