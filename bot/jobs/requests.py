"""The kinds of background work on an incident, each as a job with a typed maker.

All work on one incident runs in its own lane, in order; what must not wait behind it (probes that a person asked for)
has a lane of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bot.domain.timeline import SYSTEM_AUTHOR
from bot.store import queue
from bot.store.queue import Job

COLLECT = "incident.collect"
PROBE = "incident.probe"
EXPERIMENT = "incident.experiment"
MITIGATE = "incident.mitigate"
CHART = "incident.chart"
VERIFY = "incident.verify"
REPORT = "incident.report"
CHECKLIST = "incident.checklist"
CHECKS = "incident.checks"
RECALL = "incident.recall"
DEBRIEF = "incident.debrief"
WATCH_SECONDS = 60.0


def lane_of(incident_id: str) -> str:
    """The lane of an incident's own work."""
    return f"inc:{incident_id}"


def collect(incident_id: str, *, reason: str, by: str, window_seconds: float = 3600.0) -> Job:
    """Ask every source, rank the causes, and say so in the thread. reason: `opened`, `asked`, `symptom`, `scope`."""
    return Job(
        kind=COLLECT,
        lane=lane_of(incident_id),
        payload={
            "incident": incident_id,
            "reason": reason,
            "by": by,
            "window_s": window_seconds,
        },
        coalesce=f"collect:{incident_id}",
    )


def probe(
    incident_id: str | None,
    *,
    probes: Sequence[str],
    nodes: Sequence[str],
    args: Mapping[str, Any],
    by: str,
    args_of: Mapping[str, Mapping[str, Any]] | None = None,
    approved_by: str | None = None,
    channel: str | None = None,
    thread_ts: str | None = None,
) -> Job:
    """Run probes on nodes and show one table that marks the odd node out.

    args_of: what one probe is asked with, by its name, where that is not `args`.
    """
    job = Job(
        kind=PROBE,
        lane="",
        payload={
            "incident": incident_id,
            "probes": list(probes),
            "nodes": list(nodes),
            "args": dict(args),
            "args_of": {name: dict(own) for name, own in (args_of or {}).items()},
            "by": by,
            "approved_by": approved_by,
            "channel": channel,
            "thread_ts": thread_ts,
        },
    )
    return _own_lane(job)


def experiment(incident_id: str, *, cause: str, by: str, approved_by: str | None = None) -> Job:
    """Run the next experiment of a hypothesis: the prediction is recorded first, then the result."""
    job = Job(
        kind=EXPERIMENT,
        lane="",
        payload={"incident": incident_id, "cause": cause, "by": by, "approved_by": approved_by},
    )
    return _own_lane(job)


def mitigate(
    incident_id: str,
    *,
    text: str,
    by: str,
    at: datetime,
    capture: bool,
    permalink: str | None = None,
    message_ts: str | None = None,
) -> Job:
    """Capture what a restart destroys (10 s at most, skippable), then record the mitigation and watch the symptom."""
    job = Job(
        kind=MITIGATE,
        lane="",
        payload={
            "incident": incident_id,
            "text": text,
            "by": by,
            "at": at.isoformat(),
            "capture": capture,
            "permalink": permalink,
            "message_ts": message_ts,
        },
    )
    return _own_lane(job)


def chart(
    incident_id: str, *, kind: str, by: str, query: str = "", range_seconds: float = 3600.0
) -> Job:
    """Draw and post a chart. kind: `symptom`, `deciding`, `recovery`, or `query` with a PromQL expression."""
    return Job(
        kind=CHART,
        lane=f"chart:{incident_id}",
        payload={
            "incident": incident_id,
            "kind": kind,
            "by": by,
            "query": query,
            "range_s": range_seconds,
        },
    )


def verify(incident_id: str, *, by: str) -> Job:
    """Check whether the symptom is gone after the fix, with a chart of before and after."""
    return Job(kind=VERIFY, lane=lane_of(incident_id), payload={"incident": incident_id, "by": by})


def watch(incident_id: str, *, after: datetime) -> Job:
    """Look a minute after a mitigation whether the symptom is gone."""
    return queue.timer(
        VERIFY,
        f"watch-{incident_id}-{int(after.timestamp())}",
        after + timedelta(seconds=WATCH_SECONDS),
        {"incident": incident_id, "by": SYSTEM_AUTHOR},
    )


def report(incident_id: str, *, formats: Sequence[str], by: str) -> Job:
    """Compile the report and hand the files over in the thread."""
    return Job(
        kind=REPORT,
        lane=lane_of(incident_id),
        payload={"incident": incident_id, "formats": list(formats), "by": by},
    )


def checklist(incident_id: str, *, by: str) -> Job:
    """Propose the changes of the checklist that this incident justifies."""
    return Job(
        kind=CHECKLIST, lane=lane_of(incident_id), payload={"incident": incident_id, "by": by}
    )


def recall(incident_id: str, *, reason: str) -> Job:
    """Look among earlier incidents for what is alike and what recurs. reason: `opened`, `confirmed`."""
    return Job(
        kind=RECALL,
        lane=f"recall:{incident_id}",
        payload={"incident": incident_id, "reason": reason},
        coalesce=f"recall:{incident_id}:{reason}",
    )


def checks(incident_id: str, *, stage: str) -> Job:
    """Look at the checklist. stage: `opened` (what was learned), `collected` (all that answers by itself)."""
    return Job(
        kind=CHECKS,
        lane=f"checks:{incident_id}",
        payload={"incident": incident_id, "stage": stage},
        coalesce=f"checks:{incident_id}:{stage}",
    )


def debrief(incident_id: str) -> Job:
    """Score an exercise that was resolved, and show the path of a model responder."""
    return Job(
        kind=DEBRIEF,
        lane=lane_of(incident_id),
        payload={"incident": incident_id},
        coalesce=f"debrief:{incident_id}",
    )


def _own_lane(job: Job) -> Job:
    return Job(kind=job.kind, lane=f"task:{job.id}", payload=job.payload, id=job.id)
