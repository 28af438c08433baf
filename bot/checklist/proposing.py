"""What an incident would change in the checklist that fits it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Protocol

from bot.checklist.reading import Checklist, load_checklists, shipped_checklists
from bot.domain.checklist import ChecklistChange
from bot.domain.evidence import EvidenceSource, SourceState
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.text import Localized
from bot.locales import say


class HasChecklistLines(Protocol):
    """A cause, as far as checklists care."""

    @property
    def title(self) -> Localized: ...

    @property
    def checklist(self) -> Sequence[Localized]: ...


class HasCauses(Protocol):
    """The catalogue of causes, as far as checklists care."""

    @property
    def causes(self) -> Mapping[str, HasChecklistLines]: ...


def fitting(incident: Incident, checklists: Mapping[str, Checklist]) -> Checklist | None:
    """The checklist whose words occur most among the incident's symptoms and alerts; else one for any incident."""
    said = [incident.title, *(alert.name for alert in incident.alerts.values())]
    for symptom in incident.symptoms:
        said += [symptom.summary.en, symptom.summary.zh, symptom.metric or ""]
    text = " ".join(said).lower()
    ranked = sorted(
        checklists.values(), key=lambda item: (-sum(word in text for word in item.matches), item.id)
    )
    fits = [item for item in ranked if any(word in text for word in item.matches)]
    return next(iter([*fits, *(item for item in ranked if not item.matches)]), None)


def propose_for(
    incident: Incident, catalogue: HasCauses, checklists: Mapping[str, Checklist] | None = None
) -> tuple[tuple[ChecklistChange, Localized], ...]:
    """What this incident would change in the checklist that fits it, each change with its reason.

    Deterministic from what happened: what the confirmed cause's own knowledge asks and the deciding probe are added
    where they are missing; a deciding probe that stands behind checks that found nothing moves before them; a source
    that could not be reached becomes a check. `n` counts on from the changes that the incident has already.

    checklists: None for the shipped ones.

    Raises:
        ConfigError: a shipped checklist has faults.
    """
    known = load_checklists([shipped_checklists()]) if checklists is None else checklists
    checklist = fitting(incident, known)
    if checklist is None:
        return ()
    made = (
        _add_what_decided(incident, catalogue, checklist),
        _move_what_decided(incident, checklist),
        _add_blind_sources(incident, checklist),
    )
    first = max((change.n for change in incident.checklist_changes), default=0) + 1
    drafts = [draft for draft in made if draft is not None]
    return tuple(
        (
            ChecklistChange(
                n=n,
                checklist=checklist.id,
                diff=_diff(checklist, text),
                reason=reason.in_locale(incident.locale),
            ),
            reason,
        )
        for n, (text, reason) in enumerate(drafts, first)
    )


def _diff(checklist: Checklist, text: str) -> str:
    name = f"checklists/{checklist.id}.yaml"
    lines = difflib.unified_diff(
        checklist.source.splitlines(), text.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines) + "\n"


def _add_what_decided(
    incident: Incident, catalogue: HasCauses, checklist: Checklist
) -> tuple[str, Localized] | None:
    root = incident.root_cause
    if root is None:
        return None
    have = {item.text.en.casefold() for item in checklist.items}
    have_probes = {item.probe for item in checklist.items}
    added: list[tuple[str, str | None, Localized]] = []
    for probe in _deciding_probes(incident):
        if probe not in have_probes:
            line = say("report.checklist.probe_item", probe=probe, id=incident.id)
            added.append((f"probe-{probe}", probe, line))
    for cause in dict.fromkeys((root.cause, *reversed(root.chain))):
        known = catalogue.causes.get(cause)
        for number, line in enumerate(known.checklist if known else (), 1):
            if line.en.casefold() not in have:
                added.append((f"{cause}-{number}", None, line))
    if not added:
        return None
    title = _title(incident, catalogue, root.cause)
    reason = say(
        "report.checklist.proposal",
        id=incident.id,
        cause=title,
        changes=say("report.checklist.add", count=len(added)),
    )
    return _appended(checklist, incident, added), reason


def _move_what_decided(incident: Incident, checklist: Checklist) -> tuple[str, Localized] | None:
    """Moves the deciding check before the first one whose probe ran and found nothing."""
    idle = {
        item.plugin
        for item in incident.evidence
        if item.source is EvidenceSource.PROBE and not item.is_abnormal
    }
    for probe in _deciding_probes(incident):
        here = next((i for i, item in enumerate(checklist.items) if item.probe == probe), None)
        if here is None:
            continue
        wasted = [
            i for i, item in enumerate(checklist.items[:here]) if item.probe in idle - {probe}
        ]
        # Only within its step: what is asked of people first stays first.
        wasted = [i for i in wasted if checklist.items[i].step == checklist.items[here].step]
        if not wasted:
            continue
        item, target = checklist.items[here], checklist.items[wasted[0]]
        lines = checklist.source.splitlines()
        block = lines[item.first_line - 1 : item.last_line]
        del lines[item.first_line - 1 : item.last_line]
        lines[target.first_line - 1 : target.first_line - 1] = block
        late = max((_answered_after(incident, probe), 0.0))
        reason = say(
            "report.checklist.found_late", id=incident.id, probe=probe, seconds=round(late)
        )
        return "\n".join(lines) + "\n", reason
    return None


def _add_blind_sources(incident: Incident, checklist: Checklist) -> tuple[str, Localized] | None:
    have = {item.id for item in checklist.items}
    blind = [
        name
        for name, state in sorted(incident.sources.items())
        if state is SourceState.UNREACHABLE and f"source-{name}" not in have
    ]
    if not blind:
        return None
    names = [_source_name(name) for name in blind]
    added: list[tuple[str, str | None, Localized]] = [
        (f"source-{name}", None, say("report.checklist.source_item", source=title, id=incident.id))
        for name, title in zip(blind, names, strict=True)
    ]
    listed = Localized(", ".join(item.en for item in names), "、".join(item.zh for item in names))
    return _appended(checklist, incident, added), say(
        "report.checklist.blind", id=incident.id, source=listed
    )


def _appended(
    checklist: Checklist, incident: Incident, added: Sequence[tuple[str, str | None, Localized]]
) -> str:
    indent = " " * _indent(checklist)
    taken = {item.id for item in checklist.items}
    lines = checklist.source.splitlines()
    for wanted, probe, text in added:
        item_id = wanted if wanted not in taken else f"{wanted}-{incident.id.lower()}"
        taken.add(item_id)
        lines += [f"{indent}- id: {item_id}", f"{indent}  step: information"]
        lines += [f"{indent}  probe: {probe}"] if probe else []
        lines += [
            f"{indent}  learned_from: {incident.id}",
            f"{indent}  text:",
            f"{indent}    en: {json.dumps(text.en, ensure_ascii=False)}",
            f"{indent}    zh-CN: {json.dumps(text.zh, ensure_ascii=False)}",
        ]
    return "\n".join(lines) + "\n"


def _indent(checklist: Checklist) -> int:
    line = checklist.source.splitlines()[checklist.items[-1].first_line - 1]
    return len(line) - len(line.lstrip())


def _deciding_probes(incident: Incident) -> tuple[str, ...]:
    """Probes that spoke for the confirmed cause: tests that came out as predicted, then evidence by its weight."""
    root = incident.root_cause
    if root is None:
        return ()
    chain = {root.cause, *root.chain}
    tested = [
        item.probe
        for item in incident.experiments
        if item.cause in chain and item.verdict is ExperimentVerdict.AS_PREDICTED and item.probe
    ]
    probes = {
        item.id: item.plugin for item in incident.evidence if item.source is EvidenceSource.PROBE
    }
    reasons = [
        reason for item in incident.hypotheses if item.cause in chain for reason in item.supports
    ]
    reasons.sort(key=lambda reason: (-reason.weight, reason.ref))
    cited = [probes[reason.ref] for reason in reasons if reason.ref in probes]
    return tuple(dict.fromkeys((*cited, *tested)))


def _answered_after(incident: Incident, probe: str) -> float:
    """Seconds from the opening until the probe first spoke up."""
    times = [
        item.window.end for item in incident.evidence if item.plugin == probe and item.is_abnormal
    ]
    times += [item.at for item in incident.experiments if item.probe == probe]
    return (min(times) - incident.opened_at).total_seconds() if times else 0.0


def _title(incident: Incident, catalogue: HasCauses, cause: str) -> Localized:
    known = catalogue.causes.get(cause)
    if known is not None:
        return known.title
    hypothesis = incident.hypothesis(cause)
    return hypothesis.title if hypothesis else Localized.verbatim(cause)


def _source_name(name: str) -> Localized:
    try:
        return say(f"report.source.{name}")
    except KeyError:
        return Localized.verbatim(name)
