"""What entries and evidence say besides the state of the incident: changes, readings, reasons, what helped and misled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bot.domain.finding import ProbeResult
from bot.domain.hypothesis import NOT_ESTABLISHED, HypothesisStatus
from bot.domain.incident import Incident
from bot.domain.instant import Window, parse_rfc3339
from bot.domain.postmortem import RawProbe, ReviewedChange
from bot.domain.text import Localized
from bot.domain.timeline import Entry, EntryKind
from bot.incidents.responding import BOT_SOURCE

# Where each kind of entry says from when on changes were searched.
_SEARCHED = {EntryKind.CHANGE: "since", EntryKind.EVIDENCE: "changes_since"}


def changes(incident: Incident) -> tuple[ReviewedChange, ...]:
    """Every change that was looked at, and whether it is under suspicion."""
    root = incident.root_cause
    if root and root.trigger and root.trigger.change:
        suspects = {root.trigger.change}
    else:
        suspects = {
            item.trigger.change
            for item in incident.hypotheses
            if item.trigger and item.trigger.change and item.status is not HypothesisStatus.REJECTED
        }
    return tuple(
        ReviewedChange(change=change, is_suspect=change.id in suspects)
        for change in sorted(incident.changes, key=lambda change: (change.at, change.id))
    )


def searched(entries: Sequence[Entry]) -> Window | None:
    """The union of the spans that were searched for changes."""
    spans = [
        (start, entry.at)
        for entry in entries
        if (start := _instant(entry.data.get(_SEARCHED.get(entry.kind, ""))))
    ]
    if not spans:
        return None
    return Window(min(start for start, _ in spans), max(end for _, end in spans))


def _instant(value: object) -> datetime | None:
    try:
        return parse_rfc3339(str(value)) if value else None
    except ValueError:
        return None


def checklist_reasons(entries: Sequence[Entry]) -> dict[int, Localized]:
    """Why each change was proposed, or why it was declined."""
    return {
        int(entry.data["n"]): entry.text
        for entry in entries
        if entry.kind is EntryKind.CHECKLIST and entry.op in ("proposed", "declined") and entry.text
    }


def probes(entries: Sequence[Entry]) -> tuple[RawProbe, ...]:
    """Every reading that the timeline holds, in its order."""
    return tuple(
        RawProbe(
            seq=entry.seq,
            purpose=str(entry.data.get("purpose") or ""),
            result=ProbeResult.from_json(result),
        )
        for entry in entries
        if entry.kind is EntryKind.PROBE
        for result in (entry.data.get("results") or [entry.data.get("result")])
        if isinstance(result, Mapping)
    )


def measured(entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
    """Experiment id to the timeline entries that hold what the bot measured for it (`entry-<seq>`).

    A test that the bot ran is founded on the readings it recorded while it ran; one that a person judged is not.
    """
    running: dict[str, tuple[str | None, list[str]]] = {}
    found: dict[str, tuple[str, ...]] = {}
    for entry in sorted(entries, key=lambda item: item.seq):
        if entry.kind is EntryKind.EXPERIMENT and entry.op == "planned":
            running[str(entry.data["id"])] = (entry.data.get("probe"), [])
        elif entry.kind is EntryKind.PROBE and entry.data.get("purpose") == "experiment":
            for probe, seen in running.values():
                if probe is not None and probe in _probed(entry):
                    seen.append(entry_ref(entry.seq))
        elif entry.kind is EntryKind.EXPERIMENT and entry.op == "finished":
            _, seen = running.pop(str(entry.data["id"]), (None, []))
            own = [entry_ref(entry.seq)] if entry.source == BOT_SOURCE else []
            found[str(entry.data["id"])] = tuple(seen or own)
    return found


def entry_ref(seq: int) -> str:
    """The reference to an entry of the timeline."""
    return f"entry-{seq}"


def _probed(entry: Entry) -> list[str]:
    results = entry.data.get("results") or [entry.data.get("result")]
    return [str(item.get("probe")) for item in results if isinstance(item, Mapping)]


def pointers(incident: Incident) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Evidence that spoke for the confirmed cause, and evidence that spoke only for causes that fell."""
    root = incident.root_cause
    if root is None:
        return (), ()
    chain = {root.cause, *root.chain}
    right = [c.ref for h in incident.hypotheses if h.cause in chain for c in h.supports]
    wrong = [
        c.ref
        for h in incident.hypotheses
        if h.cause not in chain and h.cause != NOT_ESTABLISHED
        for c in h.supports
    ]
    helped = tuple(dict.fromkeys(ref for ref in right if ref))
    return helped, tuple(dict.fromkeys(ref for ref in wrong if ref and ref not in helped))
