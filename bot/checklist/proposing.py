"""What an incident would change in the checklist that fits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.checklist.cause_skeleton import new_cause
from bot.checklist.diffs import diff_of
from bot.checklist.lessons import Lesson, stale_checks, wasted_step, wrong_bound
from bot.checklist.reading import Checklist, load_checklists, shipped_checklists
from bot.checklist.writing import NewItem, appended, moved
from bot.domain.checklist import ChecklistChange, ProposalKind, Usage
from bot.domain.evidence import EvidenceSource, SourceState
from bot.domain.incident import ExperimentVerdict, Incident
from bot.domain.text import Localized, listed
from bot.domain.timeline import Entry
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


def words_of(incident: Incident) -> str:
    """What title, alerts and symptoms say, in lower case: the words of `matches` are looked for in it."""
    said = [incident.title, *(alert.name for alert in incident.alerts.values())]
    for symptom in incident.symptoms:
        said += [symptom.summary.en, symptom.summary.zh, symptom.metric or ""]
    return " ".join(said).lower()


def fitting(incident: Incident, checklists: Mapping[str, Checklist]) -> Checklist | None:
    """The checklist whose words occur most among the incident's symptoms and alerts; else one for any incident."""
    text = words_of(incident)
    ranked = sorted(
        checklists.values(), key=lambda item: (-sum(word in text for word in item.matches), item.id)
    )
    fits = [item for item in ranked if any(word in text for word in item.matches)]
    return next(iter([*fits, *(item for item in ranked if not item.matches)]), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What proposals are made from beside the incident's own state.

    entries: its timeline. usage: how each check of a list has fared, by checklist and check.
    procedure, procedure_name: the text of the SOP and `sops/<id>`; empty to leave it as it is.
    known: signals and findings of the catalogue to the layer that each belongs to. symptoms: signal to symptom kind.
    """

    entries: Sequence[Entry] = ()
    usage: Mapping[str, Mapping[str, Usage]] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    symptoms: Mapping[str, str] = field(default_factory=dict)
    procedure: str = ""
    procedure_name: str = ""


def propose_for(
    incident: Incident,
    catalogue: HasCauses,
    checklists: Mapping[str, Checklist] | None = None,
    background: Background | None = None,
) -> tuple[tuple[ChecklistChange, Localized], ...]:
    """What this incident would change in the checklist that fits it, each change with its reason.

    Deterministic from what happened: what the confirmed cause's own knowledge asks and the deciding probe are added
    where they are missing; a deciding probe that stands behind checks that found nothing moves before them; a source
    that could not be reached becomes a check; a bound that hid the trouble moves; what ended the longest step comes
    first in it; checks that never found anything go; a cause that no catalogue knows becomes a file. `n` counts on from
    the changes that the incident has already.

    checklists: None for the shipped ones.

    Raises:
        ConfigError: a shipped checklist has faults.
    """
    known = load_checklists([shipped_checklists()]) if checklists is None else checklists
    about = background or Background()
    checklist = fitting(incident, known)
    made: list[Lesson | None] = []
    if checklist is not None:
        deciding = _deciding_probes(incident)
        titles = {item.cause: item.title for item in incident.hypotheses}
        made = [
            _add_what_decided(incident, catalogue, checklist),
            _move_what_decided(incident, checklist),
            _add_blind_sources(incident, checklist),
            wrong_bound(incident, checklist),
            wasted_step(incident, checklist, about.entries, deciding, titles, about.procedure),
            stale_checks(checklist, about.usage.get(checklist.id, {})),
        ]
    drafts = [
        (lesson.kind, *_change(lesson, checklist, about), lesson.reason)
        for lesson in made
        if lesson is not None and checklist is not None
    ]
    if found := new_cause(incident, about.known, about.symptoms):
        name, diff, why = found
        drafts.append((ProposalKind.CAUSE, f"causes/{name}", diff, why))
    decided = (*incident.checklist_changes, *incident.monitoring_changes)
    first = max((change.n for change in decided), default=0) + 1
    return tuple(
        (
            ChecklistChange(
                n=n, checklist=name, diff=diff, reason=reason.in_locale(incident.locale), kind=kind
            ),
            reason,
        )
        for n, (kind, name, diff, reason) in enumerate(drafts, first)
    )


def _change(lesson: Lesson, checklist: Checklist, about: Background) -> tuple[str, str]:
    """The name of what changes, and the diff."""
    if lesson.is_of_procedure:
        name = about.procedure_name
        return name, diff_of(f"{name}.yaml", about.procedure, lesson.text)
    return checklist.id, diff_of(_path(checklist), checklist.source, lesson.text)


def _path(checklist: Checklist) -> str:
    return f"checklists/{checklist.id}.yaml"


def _add_what_decided(
    incident: Incident, catalogue: HasCauses, checklist: Checklist
) -> Lesson | None:
    root = incident.root_cause
    if root is None:
        return None
    have = {item.text.en.casefold() for item in checklist.items}
    have_probes = {item.probe for item in checklist.items}
    added: list[NewItem] = []
    for probe in _deciding_probes(incident):
        if probe not in have_probes:
            line = say("report.checklist.probe_item", probe=probe, id=incident.id)
            added.append(NewItem(id=f"probe-{probe}", probe=probe, text=line))
    for cause in dict.fromkeys((root.cause, *reversed(root.chain))):
        known = catalogue.causes.get(cause)
        for number, line in enumerate(known.checklist if known else (), 1):
            if line.en.casefold() not in have:
                added.append(NewItem(id=f"{cause}-{number}", text=line))
    if not added:
        return None
    title = _title(incident, catalogue, root.cause)
    reason = say(
        "report.checklist.proposal",
        id=incident.id,
        cause=title,
        changes=say("report.checklist.add", count=len(added)),
    )
    text = appended(checklist, incident.id, added)
    return Lesson(kind=ProposalKind.CHECK, text=text, reason=reason)


def _move_what_decided(incident: Incident, checklist: Checklist) -> Lesson | None:
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
        late = max((_answered_after(incident, probe), 0.0))
        reason = say(
            "report.checklist.found_late", id=incident.id, probe=probe, seconds=round(late)
        )
        text = moved(checklist, checklist.items[here].id, checklist.items[wasted[0]].id)
        return Lesson(kind=ProposalKind.STEP, text=text, reason=reason)
    return None


def _add_blind_sources(incident: Incident, checklist: Checklist) -> Lesson | None:
    have = {item.id for item in checklist.items}
    blind = [
        name
        for name, state in sorted(incident.sources.items())
        if state is SourceState.UNREACHABLE and f"source-{name}" not in have
    ]
    if not blind:
        return None
    names = [_source_name(name) for name in blind]
    added = [
        NewItem(
            id=f"source-{name}",
            text=say("report.checklist.source_item", source=title, id=incident.id),
        )
        for name, title in zip(blind, names, strict=True)
    ]
    reason = say("report.checklist.blind", id=incident.id, source=listed(names))
    text = appended(checklist, incident.id, added)
    return Lesson(kind=ProposalKind.SOURCE, text=text, reason=reason)


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
