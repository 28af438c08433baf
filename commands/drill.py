"""`/rca drill`: an exercise in the training channel, from generated or saved evidence."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.command import Call, Reply, command
from bot.domain.responder import Severity
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.errors import CommandError, Reason
from bot.incidents.opening import Opening
from bot.jobs.beginnings import DRILL
from bot.jobs.services import Services
from bot.learning.case_folder import read_truth
from bot.learning.cases import Truth
from bot.learning.drills.exercise import SERVICE, load_case, saved_cases
from bot.locales import say
from commands import _line
from commands._reply import notice

USAGE = "drill [CAUSE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plot:
    """What is played: a cause, and the saved case that shows it, or None for a generated one."""

    cause: str
    case: str | None = None


@command(
    name="drill",
    usage=USAGE,
    en="Play an exercise in the training channel; the score and the model path come when you resolve it.",
    zh="在训练频道开启一次演练；关闭后给出评分与参考排查路径。",
    needs_incident=False,
)
async def drill(call: Call, services: Services) -> Reply:
    """Opens a sev4 incident in the training channel, else here; without a name the call decides what is played."""
    named = _line.read(call.text).text
    await services.knowledge.refresh()
    if not services.catalogue.causes:
        raise CommandError(say("commands.no_causes"), reason=Reason.NOT_FOUND)
    saved = await asyncio.to_thread(saved_cases, services.settings.knowledge_dir)
    truths = await asyncio.to_thread(_truths, saved)
    draw = int(hashlib.sha256(call.key.encode()).hexdigest(), 16)
    plots = _plots(named, services, truths)
    plot = plots[draw % len(plots)]
    title, symptom, service = await asyncio.to_thread(_told, plot, services, saved)
    opening = Opening(
        title=say("learning.drill_title", text=title).in_locale(call.locale),
        channel=services.settings.training_channel or call.channel,
        severity=Severity.SEV4,
        locale=call.locale,
        by=call.user,
        source=DRILL,
        services=(service,),
        notes=(say("learning.drill_mark"),),
        at=call.at,
        drafts=(
            Draft(
                kind=EntryKind.SYSTEM,
                at=call.at,
                text=say("learning.drill_recorded"),
                source=DRILL,
                data={
                    "op": "drill",
                    "cause": plot.cause,
                    "case": plot.case,
                    "seed": draw % 1_000_003,
                },
            ),
            Draft(
                kind=EntryKind.SYMPTOM,
                at=call.at,
                text=symptom,
                source=DRILL,
                data={"id": "S-1", "metric": None, "scope": None, "since": None},
            ),
        ),
    )
    taken = await services.openings.open(opening, once=call.key)
    services.wake()
    return notice(say("learning.drill_opened", incident=taken.incident_id))


def _truths(saved: Mapping[str, Path]) -> dict[str, Truth]:
    """What the saved cases ended in; one without an end cannot be played."""
    found = {name: read_truth(path) for name, path in saved.items()}
    return {name: truth for name, truth in found.items() if truth is not None}


def _plots(named: str, services: Services, truths: Mapping[str, Truth]) -> Sequence[_Plot]:
    """Everything that the name may mean; without a name everything that there is."""
    causes = services.catalogue.causes
    cases = [_Plot(cause=truth.cause, case=name) for name, truth in truths.items()]
    generated = [_Plot(cause=name) for name in sorted(causes)]
    if not named:
        return [*generated, *cases]
    word = named.lower()
    found = [
        item
        for item in cases
        if item.case is not None
        and word in (item.case.lower(), item.case.lower().removesuffix(".case"))
    ]
    if not found and word in causes:
        found = [item for item in [*generated, *cases] if item.cause == word]
    if not found:
        near = _line.nearest(word, [*causes, *truths]) or next(iter(causes), "–")
        raise CommandError(
            say("learning.unknown_cause", name=named[:40], near=near), reason=Reason.NOT_FOUND
        )
    return found


def _told(
    plot: _Plot, services: Services, saved: Mapping[str, Path]
) -> tuple[Localized, Localized, str]:
    """Title, symptom and service of what is played; the cause is in none of them."""
    if plot.case is not None:
        case = load_case(saved[plot.case])
        declared = case.collected.request.symptoms
        symptom = declared[0].summary if declared else Localized.verbatim(case.title)
        return Localized.verbatim(case.title), symptom, case.service.name
    cause = services.catalogue.causes[plot.cause]
    kind = cause.symptoms[0].value if cause.symptoms else "latency"
    service = next(iter(services.inventory.services), SERVICE)
    symptom = say(f"learning.drill_{kind}", service=service)
    return symptom, symptom, service
