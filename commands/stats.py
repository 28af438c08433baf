"""`/rca stats`: what the incidents of a span add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from statistics import median

from bot.command import Call, Reply, command
from bot.domain.incident import Incident
from bot.jobs.services import Services
from bot.store import index
from commands import _line
from commands._reply import shown

USAGE = "stats [range=90d]"
MOST_READ = 1000

_MILESTONES: dict[str, Callable[[Incident], datetime | None]] = {
    "acknowledged": lambda item: item.acknowledged_at,
    "mitigated": lambda item: item.mitigations[0].at if item.mitigations else None,
    "confirmed": lambda item: item.root_cause.at if item.root_cause else None,
    "resolved": lambda item: item.resolved_at,
}


@command(
    name="stats",
    usage=USAGE,
    en="How many incidents, how fast, and from which causes.",
    zh="统计事件数量、各阶段耗时与根因分布。",
    needs_incident=False,
)
async def stats(call: Call, services: Services) -> Reply:
    """Medians over the incidents in which the milestone happened; how many those are is said beside."""
    line = _line.read(call.text, short=("range",))
    seconds = _line.duration(line.options.get("range") or line.text or "90d", USAGE)
    since = call.at - timedelta(seconds=seconds)
    summaries = await index.summaries(services.store, before=None, limit=MOST_READ)
    incidents = [
        (await services.journal.load(summary.id)).incident
        for summary in summaries
        if summary.opened_at >= since
    ]
    causes = Counter(item.root_cause.cause for item in incidents if item.root_cause)
    return shown(
        "stats",
        {
            "days": round(seconds / 86400, 1),
            "count": len(incidents),
            "open": sum(item.is_open for item in incidents),
            "severities": dict(sorted(Counter(item.severity.value for item in incidents).items())),
            "milestones": [_milestone(name, incidents) for name in _MILESTONES],
            "causes": [
                {"cause": cause, "count": count, "title": _title(services, cause)}
                for cause, count in causes.most_common(5)
            ],
        },
    )


def _milestone(name: str, incidents: Sequence[Incident]) -> dict[str, object]:
    reached = _MILESTONES[name]
    spans = [
        (at - item.opened_at).total_seconds()
        for item in incidents
        if (at := reached(item)) is not None
    ]
    return {"name": name, "n": len(spans), "median_s": median(spans) if spans else None}


def _title(services: Services, cause: str) -> dict[str, str] | str:
    known = services.catalogue.causes.get(cause)
    return known.title.to_json() if known else cause
