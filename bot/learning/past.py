"""What is remembered of one incident: a small record, made from its timeline and never stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from bot.domain.action_item import ActionStatus
from bot.domain.finding import FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.hypothesis import NOT_ESTABLISHED, Hypothesis
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.postmortem import DurationName
from bot.domain.text import Localized
from bot.domain.timeline import Entry, EntryKind
from bot.incidents.journal import Ledger
from bot.learning.words import counted
from bot.report.durations import durations

# Labels that tell one instance of an alert from another; what is left is its signature.
_INSTANCE_LABELS = frozenset({"instance", "pod", "node", "replica", "host", "container", "gpu"})
_MOST_TEXTS = 400
"""Notes and messages of one incident that are searched; the rest is not worth the memory. Basis: judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeUse:
    """What became of the probes that people asked for, as tests or by name.

    asked: runs. wasted: runs that told nothing (see `statistics.definition`).
    """

    asked: int = 0
    wasted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One incident as later ones see it.

    signature: names of its alert rules, each with its service. shape: words of title and symptoms.
    texts: words by field, for the search. first_guess: the cause that the engine's first ranking put first.
    actions: (due date, owner) of the action items that are still open.
    """

    id: str
    title: str
    status: str
    severity: str
    channel: str
    thread_ts: str | None
    services: tuple[str, ...]
    opened_at: datetime
    resolved_at: datetime | None
    is_drill: bool
    signature: frozenset[str]
    shape: Mapping[str, int]
    texts: Mapping[str, Mapping[str, int]]
    cause: str | None
    chain: tuple[str, ...]
    cause_title: Localized | None
    confirmed_at: datetime | None
    first_guess: str | None
    durations: Mapping[DurationName, float | None]
    probes: ProbeUse
    blind_spots: tuple[Localized, ...] = ()
    actions: tuple[tuple[date | None, str | None], ...] = ()
    words: Counter[str] = field(default_factory=Counter)

    @property
    def service(self) -> str | None:
        """The service that it was about."""
        return self.services[0] if self.services else None

    @property
    def is_established(self) -> bool:
        """Whether a person confirmed a cause of the catalogue or of their own."""
        return self.cause is not None and self.cause != NOT_ESTABLISHED


def past_of(ledger: Ledger) -> Past:
    """The record of an incident; words that their author took back are not in it."""
    incident, entries = ledger.incident, ledger.entries
    root = incident.root_cause
    named = incident.hypothesis(root.cause) if root else None
    texts = _texts(incident, entries, named)
    by_field = {name: dict(counted(items)) for name, items in texts.items()}
    every: Counter[str] = Counter()
    for words in by_field.values():
        every.update(words)
    shape = counted([*texts["title"], *texts["symptom"]])
    return Past(
        id=incident.id,
        title=incident.title,
        status=incident.status.value,
        severity=incident.severity.value,
        channel=incident.channel,
        thread_ts=incident.thread_ts,
        services=incident.services,
        opened_at=incident.opened_at,
        resolved_at=incident.resolved_at,
        is_drill=incident.drill is not None,
        signature=signature_of(incident),
        shape=dict(shape),
        texts=by_field,
        cause=root.cause if root else None,
        chain=root.chain if root else (),
        cause_title=named.title if named else None,
        confirmed_at=root.at if root else None,
        first_guess=_first_guess(entries),
        durations=durations(incident, sorted(entries, key=lambda item: (item.at, item.seq))),
        probes=_probe_use(incident, entries),
        blind_spots=tuple(spot.what for spot in incident.blind_spots),
        actions=tuple(
            (_date(item.due), item.owner)
            for item in incident.action_items
            if item.status is ActionStatus.OPEN
        ),
        words=every,
    )


def signature_of(incident: Incident) -> frozenset[str]:
    """The alert rules that fired, whichever instance they fired for."""
    found = set()
    for alert in incident.alerts.values():
        labels = {
            name: value for name, value in alert.labels.items() if name not in _INSTANCE_LABELS
        }
        service = incident.service or labels.get("service", "")
        found.add(f"{alert.name}@{service}")
    return frozenset(found)


def _texts(
    incident: Incident, entries: Sequence[Entry], named: Hypothesis | None
) -> dict[str, list[str]]:
    cause: list[str] = []
    if incident.root_cause is not None:
        root = incident.root_cause
        cause = [root.cause, *root.chain, root.deep_cause.en, root.deep_cause.zh]
        if named is not None:
            cause += [named.title.en, named.title.zh]
    symptoms = [text for item in incident.symptoms for text in _both(item.summary)]
    for alert in incident.alerts.values():
        symptoms += [alert.name, alert.summary]
    notes = [
        text
        for entry in entries
        if entry.text is not None
        and (
            entry.kind in (EntryKind.MESSAGE, EntryKind.MITIGATION, EntryKind.ACTION)
            or (entry.kind is EntryKind.EVIDENCE and entry.data.get("person"))
            or (entry.kind is EntryKind.HYPOTHESIS and entry.op in ("added", "rejected"))
        )
        for text in _both(entry.text)
    ]
    return {
        "title": [incident.title, incident.id],
        "symptom": symptoms,
        "cause": cause,
        "service": list(incident.services),
        "note": notes[-_MOST_TEXTS:],
    }


def _both(text: Localized) -> tuple[str, ...]:
    return (text.en,) if text.en == text.zh else (text.en, text.zh)


def _first_guess(entries: Sequence[Entry]) -> str | None:
    for entry in entries:
        if entry.kind is EntryKind.HYPOTHESIS and entry.op == "ranked":
            ranked = entry.data.get("hypotheses") or ()
            return str(ranked[0]["cause"]) if ranked else None
    return None


def _probe_use(incident: Incident, entries: Sequence[Entry]) -> ProbeUse:
    """Counts the runs that people asked for; one that ran again with the same answer told nothing new."""
    cited = {item.ref for one in incident.hypotheses for item in (*one.supports, *one.against)}
    told = {
        (item.node, item.finding)
        for item in incident.evidence
        if item.finding is not None and item.id in cited
    }
    decided = {
        (item.probe, item.node)
        for item in incident.experiments
        if item.verdict in (ExperimentVerdict.AS_PREDICTED, ExperimentVerdict.CONTRARY)
    }
    asked = wasted = 0
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    for entry in entries:
        if entry.kind is not EntryKind.PROBE or entry.data.get("purpose") not in (
            "asked",
            "experiment",
        ):
            continue
        for body in _results(entry):
            result = ProbeResult.from_json(body)
            asked += 1
            findings = tuple(sorted(finding.id for finding in result.findings))
            key = (result.probe, result.node, findings)
            is_test = entry.data["purpose"] == "experiment"
            decides = is_test and (
                (result.probe, result.node) in decided or (result.probe, None) in decided
            )
            useful = result.status is ProbeStatus.OK and (
                decides
                or any((result.node, finding) in told for finding in findings)
                or any(item.severity is not FindingSeverity.INFO for item in result.findings)
            )
            if key in seen or not useful:
                wasted += 1
            seen.add(key)
    return ProbeUse(asked=asked, wasted=wasted)


def _results(entry: Entry) -> list[Mapping[str, object]]:
    one = entry.data.get("result")
    return [one] if one else list(entry.data.get("results") or ())


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
