"""Folds what was observed into the state of an incident: symptoms, evidence, changes."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.change import Change
from bot.domain.evidence import BlindSpot, Evidence, EvidenceSource, Gap, SourceState, digest_of
from bot.domain.guard_news import guards_of
from bot.domain.hypothesis import LayerVerdict, Symptom
from bot.domain.incident import Incident
from bot.domain.instant import Window, parse_rfc3339
from bot.domain.timeline import WITHHELD, Entry


def fold_symptom(incident: Incident, entry: Entry) -> Incident:
    """The incident after a symptom was declared or made more exact."""
    data = entry.data
    symptom = Symptom(
        id=str(data["id"]),
        summary=entry.text or WITHHELD,
        since=parse_rfc3339(data["since"]) if data.get("since") else None,
        metric=data.get("metric"),
        scope=data.get("scope"),
    )
    others = tuple(item for item in incident.symptoms if item.id != symptom.id)
    return replace(incident, symptoms=(*others, symptom))


def fold_evidence(incident: Incident, entry: Entry) -> Incident:
    """The incident after one pass of the engine, or an observation of a person."""
    data = entry.data
    found = [Evidence.from_json(item) for item in data.get("evidence") or ()]
    if data.get("person"):
        found.append(person_evidence(entry))
    known = {item.id: item for item in incident.evidence}
    known.update({item.id: item for item in found})
    gaps = tuple(Gap.from_json(item) for item in data["gaps"]) if "gaps" in data else incident.gaps
    sources = {key: SourceState(value) for key, value in (data.get("sources") or {}).items()}
    layers = tuple(LayerVerdict.from_json(item) for item in data.get("layers") or ())
    spots = tuple(BlindSpot.from_json(item) for item in data.get("blind_spots") or ())
    return replace(
        incident,
        evidence=tuple(known.values()),
        evidence_at=entry.at if "sources" in data else incident.evidence_at,
        gaps=gaps,
        sources={**incident.sources, **sources},
        layers=layers or incident.layers,
        blind_spots=spots if "blind_spots" in data else incident.blind_spots,
        guards=guards_of(incident, entry),
    )


def fold_change(incident: Incident, entry: Entry) -> Incident:
    """The incident after changes were read; one that is known already is renewed."""
    known = {change.id: change for change in incident.changes}
    for item in entry.data.get("changes") or ():
        change = Change.from_json(item)
        known[change.id] = change
    return replace(
        incident,
        changes=tuple(sorted(known.values(), key=lambda item: (item.at, item.id))),
        changes_back_seconds=entry.data.get("back_s") or incident.changes_back_seconds,
    )


def person_evidence(entry: Entry) -> Evidence:
    """A person's observation as evidence; its digest is over author and time, so that a withheld text leaks nothing."""
    return Evidence(
        source=EvidenceSource.PERSON,
        plugin="person",
        summary=entry.text or WITHHELD,
        query=f"timeline:{entry.seq}",
        window=Window(entry.at, entry.at),
        samples=1,
        digest=digest_of([entry.author, entry.at.isoformat(), entry.seq]),
    )
