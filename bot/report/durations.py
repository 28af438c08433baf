"""Measures one incident: seconds from its opening to each milestone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bot.domain.incident import Incident, IncidentStatus
from bot.domain.postmortem import DurationName
from bot.domain.timeline import Entry, EntryKind


def durations(incident: Incident, entries: Sequence[Entry]) -> dict[DurationName, float | None]:
    """Seconds from the opening to each milestone; None where it did not happen, 0 where it came before the opening.

    entries: ordered by time.
    """
    confirmed = incident.root_cause.at if incident.root_cause else None
    resolved = incident.resolved_at if incident.status is IncidentStatus.RESOLVED else None
    reached: dict[DurationName, datetime | None] = {
        DurationName.ACKNOWLEDGE: incident.acknowledged_at,
        DurationName.SYMPTOM: _first(entries, lambda e: e.kind is EntryKind.SYMPTOM),
        DurationName.FIRST_EVIDENCE: _first(entries, _holds_evidence),
        DurationName.HYPOTHESES: _first(
            entries, lambda e: e.kind is EntryKind.HYPOTHESIS and e.op in ("ranked", "added")
        ),
        DurationName.MITIGATE: _first(entries, lambda e: e.kind is EntryKind.MITIGATION),
        DurationName.CONFIRMED_CAUSE: confirmed,
        DurationName.VERIFIED_FIX: _verified_at(incident, entries),
        DurationName.RESOLVE: resolved,
    }
    return {name: _since(incident.opened_at, at) for name, at in reached.items()}


def _since(start: datetime, at: datetime | None) -> float | None:
    return None if at is None else round(max(0.0, (at - start).total_seconds()), 3)


def _first(entries: Sequence[Entry], holds: Callable[[Entry], bool]) -> datetime | None:
    return next((entry.at for entry in entries if holds(entry)), None)


def _holds_evidence(entry: Entry) -> bool:
    if entry.kind is EntryKind.EVIDENCE:
        return bool(entry.data.get("evidence") or entry.data.get("person"))
    return entry.kind is EntryKind.PROBE and (entry.data.get("result") or {}).get("status") == "ok"


def _verified_at(incident: Incident, entries: Sequence[Entry]) -> datetime | None:
    """When the fix that stands was first seen to work; a verification of an earlier fix does not count."""
    fix = incident.fix
    if fix is None or not fix.verified:
        return None
    return _first(
        entries,
        lambda e: (
            e.kind is EntryKind.ACTION
            and e.op == "verified"
            and e.data.get("verified") is True
            and e.at >= fix.at
        ),
    )
