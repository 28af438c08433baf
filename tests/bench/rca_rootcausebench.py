"""RootCauseBench's files as changes and failures."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.diagnosis.changes.guilt import Candidate, Failing
from bot.domain.evidence import Sample, Series
from bot.domain.instant import parse_rfc3339
from tests.bench.rca_files import read_json, rows


def inputs_of(folder: Path, incident: dict[str, Any]) -> tuple[list[Candidate], Failing]:
    """Commits with their rollouts; errors of spans, log patterns and the alert in their own words."""
    alert = incident["alert"]
    fired = parse_rfc3339(alert["fired_at"])
    rollouts = {one["commit_sha"]: one for one in read_json(folder / "deploys.json")}
    changes = [
        Candidate(
            id=commit["sha"],
            at=parse_rfc3339(rollouts.get(commit["sha"], commit)["timestamp"]),
            service=rollouts[commit["sha"]]["service"] if commit["sha"] in rollouts else None,
            rolled_out=commit["sha"] in rollouts,
            summary=commit["message"],
            files=tuple(commit["files_changed"] or ()),
            diff=commit["diff"],
        )
        for commit in read_json(folder / "commits.json")
    ]
    patterns = [
        one for one in read_json(folder / "patterns.json") if one["sentiment"] == "negative"
    ]
    spans = [one for one in read_json(folder / "traces.json") if one["status"] != "OK"]
    texts = [
        alert["summary"],
        alert["metric"],
        *(one["signature"] for one in patterns),
        *(one.get("error") or one.get("status_message") or "" for one in spans),
    ]
    feed = folder / "status_feed.json"
    return changes, Failing(
        texts=tuple(texts),
        services=frozenset(
            {
                alert["service"],
                *(one["service"] for one in patterns),
                *(one["service"] for one in spans),
            }
        ),
        alerting=alert["service"],
        alerted_at=fired,
        series=_series(folder),
        outside=_outside(read_json(feed)) if feed.exists() else (),
    )


def _series(folder: Path) -> tuple[Series, ...]:
    found: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for row in rows(folder / "metrics.csv"):
        found[row["service"], row["metric"]].append(
            Sample(at=parse_rfc3339(row["timestamp"]), value=float(row["value"]))
        )
    return tuple(
        Series(
            name=metric,
            labels={"service": service},
            unit="",
            samples=tuple(samples),
            step_seconds=60.0,
        )
        for (service, metric), samples in sorted(found.items())
    )


def _outside(feed: dict[str, Any]) -> tuple[tuple[datetime, str], ...]:
    return tuple(
        (parse_rfc3339(event.get("started_at") or event["timestamp"]), json.dumps(event)[:200])
        for event in feed["events"]
        if event.get("status") == "degraded"
    )
