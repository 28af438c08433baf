"""`/rca symptom`: what goes wrong, for whom, since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.command import Call, Reply, command
from bot.domain.incident import Incident, Scope
from bot.domain.text import Localized
from bot.jobs import requests
from bot.jobs.services import Services
from bot.locales import say
from bot.sop import StepId
from bot.steps.gates import missing
from commands import _line, _typed
from commands._reply import notice

USAGE = "symptom [TEXT…] [metric=PROMQL] [scope=TEXT] [since=TIME]"
MOST_TEXT = 1000


@command(
    name="symptom",
    usage=USAGE,
    en="Declare a symptom or make it more exact; scope= confirms who is affected.",
    zh="声明现象或补充细节；scope= 用于确认影响范围。",
)
async def symptom(call: Call, services: Services) -> Reply:
    """Without TEXT the latest symptom is made more exact; a given scope counts as confirmed by the caller."""
    line = _line.read(call.text, short=("since",), long=("metric", "scope"))
    incident_id = _line.incident_id(call)
    incident = (await services.journal.load(incident_id)).incident
    text = _line.shortened(line.text, MOST_TEXT)
    if not text and not line.options:
        raise _line.wrong(USAGE)
    since = line.options.get("since")
    began = _line.moment(since, call.at, services.settings.zone, USAGE) if since else None
    via = _line.via(call)
    scope = line.options.get("scope")
    metric = line.options.get("metric")
    named = str(call.payload.get("symptom") or "") or None
    await services.responding.declare_symptom(
        incident_id,
        text,
        via,
        metric=_typed.query(metric) if metric else None,
        scope=scope,
        since=began,
        symptom_id=named or (None if text else _latest(incident)),
    )
    if scope:
        confirmed = _confirmed(incident, scope, services)
        await services.responding.set_scope(incident_id, confirmed, via)
    await services.outbox.send(
        requests.collect(incident_id, reason="symptom", by=call.user), once=f"{call.key}:collect"
    )
    after = (await services.journal.load(incident_id)).incident
    await services.knowledge.refresh()
    asked = missing(after, services.sop, StepId.SYMPTOM)
    if asked:
        return notice(say("commands.symptom_still", missing=_listed(asked)))
    return notice(say("commands.symptom_kept"))


def _listed(asked: Sequence[Localized]) -> Localized:
    return Localized("; ".join(item.en for item in asked), "；".join(item.zh for item in asked))


def _latest(incident: Incident) -> str | None:
    return incident.symptoms[-1].id if incident.symptoms else None


def _confirmed(incident: Incident, text: str, services: Services) -> Scope:
    """The scope as it stands, narrowed to the nodes that the person named, confirmed."""
    named = [word for word in services.inventory.nodes if word in text]
    nodes = tuple(named) or incident.scope.nodes
    return replace(incident.scope, nodes=nodes, is_confirmed=True)
