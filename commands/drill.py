"""`/rca drill`: an exercise in the training channel."""

from __future__ import annotations

import hashlib

from bot.command import Call, Reply, command
from bot.domain.responder import Severity
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.opening import Opening
from bot.jobs.services import Services
from bot.locales import say
from commands import _line
from commands._reply import notice

USAGE = "drill [CAUSE]"


@command(
    name="drill",
    usage=USAGE,
    en="Open an exercise; its cause is named in the labels, not in the title.",
    zh="开启一次演练；原因只写在标签里，不写在标题中。",
    needs_incident=False,
)
async def drill(call: Call, services: Services) -> Reply:
    """Opens a sev4 incident in the training channel, else here; without a cause the call decides which."""
    named = _line.read(call.text).text.lower()
    causes = services.catalogue.causes
    if named and named not in causes:
        near = _line.nearest(named, causes) or next(iter(causes), "–")
        raise CommandError(
            say("commands.unknown_cause", name=named[:40], near=near), reason=Reason.NOT_FOUND
        )
    if not causes:
        raise CommandError(say("commands.no_causes"), reason=Reason.NOT_FOUND)
    names = sorted(causes)
    pick = int(hashlib.sha256(call.key.encode()).hexdigest(), 16) % len(names)
    cause = causes[named or names[pick]]
    kind = cause.symptoms[0].value if cause.symptoms else "latency"
    service = next(iter(services.inventory.services), None)
    symptom = say(f"commands.drill_{kind}", service=service or "–")
    text = symptom.in_locale(call.locale)
    opening = Opening(
        title=f"[drill] {text}",
        channel=services.settings.training_channel or call.channel,
        severity=Severity.SEV4,
        locale=call.locale,
        by=call.user,
        source="drill",
        services=(service,) if service else (),
        labels={"drill": cause.id},
        drafts=(
            Draft(
                kind=EntryKind.SYMPTOM,
                at=call.at,
                text=symptom,
                author=call.user,
                source="drill",
                data={"id": "S-1", "metric": None, "scope": None, "since": None},
            ),
        ),
    )
    taken = await services.openings.open(opening, once=call.key)
    services.wake()
    return notice(say("commands.drill_opened", incident=taken.incident_id))
