"""Who changed a checklist, when, and because of which incident; and which line came from whom."""

from __future__ import annotations

from bot.checklist.editions import Edition
from bot.command import Reply
from bot.domain.checklist import Version, VersionOp
from bot.domain.text import Localized
from bot.errors import CommandError, Reason
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import shown

MOST_VERSIONS = 20
MOST_LINES = 40


async def history(services: Services, rest: str, incident_id: str) -> Reply:
    """The history of the named checklist, else of the one that this incident works with."""
    name, _ = _line.first(rest)
    if not name:
        listed = (await services.journal.load(incident_id)).incident.checklist
        if listed is None:
            raise CommandError(say("checklist.none_fits"), reason=Reason.NOT_FOUND)
        name = listed.id
    now = await services.shelf.edition_of(name)
    newest = list(reversed(now.versions))[:MOST_VERSIONS]
    return shown(
        "checklist_history",
        {
            "head": say("checklist.history_head", name=name, number=now.number).to_json(),
            "versions": [_version(item) for item in newest],
            "left_out": [
                say("checklist.history_left_out", number=number).to_json()
                for number in now.left_out
            ],
            "blame": _blame(now),
        },
    )


def _version(item: Version) -> dict[str, object]:
    key = "history_back" if item.op is VersionOp.ROLLED_BACK else "history_accepted"
    return {
        "by": item.by,
        "at": f"{item.at:%Y-%m-%d %H:%M} UTC",
        "number": item.number,
        "key": f"checklist.{key}",
        "incident": item.incident or "–",
        "change": item.change or "–",
        "to": item.to or 0,
        "reason": item.why.to_json() if item.why else item.reason,
    }


def _blame(now: Edition) -> list[dict[str, object]]:
    """The lines that changes brought, with where they came from; the file's own lines are the file's."""
    found: list[dict[str, object]] = []
    for number, line in enumerate(now.lines, 1):
        if line.version is not None:
            found.append(
                {
                    "line": number,
                    "text": Localized.verbatim(line.text).to_json(),
                    "incident": line.version.incident or "–",
                    "by": line.version.by,
                    "at": f"{line.version.at:%Y-%m-%d}",
                }
            )
    return found[:MOST_LINES]
