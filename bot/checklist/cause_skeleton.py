"""A cause that people confirmed and no catalogue knows, as the beginning of a cause file that passes the lint."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.checklist.diffs import diff_of, text_of
from bot.checklist.writing import localized, quoted
from bot.domain.evidence import Evidence, EvidenceSource
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.locales import say

_OWN = "person:"
_WORD = re.compile(r"[a-z0-9]+")
_PRIOR = 0.01
_WEIGHT = 1.0
_MOST_RULES = 8
"""A prior and weights that move little: figures come from more than one incident."""
_CATEGORY = {
    "latency": "latency",
    "errors": "stability",
    "quality": "model",
    "throughput": "resource",
    "gpu_idle": "resource",
    "instability": "stability",
    "logs_missing": "observability",
    "traces_missing": "observability",
}


def new_cause(
    incident: Incident, known: Mapping[str, str], symptoms: Mapping[str, str]
) -> tuple[str, str, Localized] | None:
    """Id, diff and reason of a cause file; None where the cause is known, or nothing that was measured speaks for it.

    known: names of signals and ids of findings to the layer that each belongs to. symptoms: signal to symptom kind.
    """
    root = incident.root_cause
    if root is None or not root.cause.startswith(_OWN):
        return None
    hypothesis = incident.hypothesis(root.cause)
    title = hypothesis.title if hypothesis else root.deep_cause
    seen = _cited(incident, known)
    if not seen:
        return None
    name = _name(title.en, incident.id)
    kinds = sorted({symptoms[item.plugin] for item in seen if item.plugin in symptoms})
    lines = _head(name, title, root.deep_cause, _layer(seen[0], known), kinds or ["latency"])
    lines.append("evidence:")
    for number, item in enumerate(seen, 1):
        lines += _rule(number, item, known, incident.id)
    lines += _rest(incident, seen[0], title)
    diff = diff_of(f"causes/{name}.yaml", "", text_of(lines))
    return name, diff, say("checklist.new_cause", id=incident.id, title=title)


def _cited(incident: Incident, known: Mapping[str, str]) -> list[Evidence]:
    """What the decision rests on as far as it was measured; where only people spoke, all that was out of the ordinary."""
    root = incident.root_cause
    cited = set(root.evidence) if root else set()
    measured = [
        item for item in incident.evidence if item.is_abnormal and _test(item, known) is not None
    ]
    chosen = [item for item in measured if item.id in cited]
    return (chosen or measured)[:_MOST_RULES]


def _test(item: Evidence, known: Mapping[str, str]) -> str | None:
    if item.source is EvidenceSource.PROBE and item.finding in known:
        return f"{{finding: {item.finding}}}"
    if item.source is EvidenceSource.METRICS and item.plugin in known:
        return f"{{signal: {item.plugin}, is: changed}}"
    return None


def _layer(item: Evidence, known: Mapping[str, str]) -> str:
    return known.get(item.finding or "") or known.get(item.plugin) or "application"


def _name(title: str, incident_id: str) -> str:
    """A file name from the title; a title without Latin letters takes the incident's id."""
    words = "_".join(_WORD.findall(title.lower())[:6])[:60].strip("_")
    number = incident_id.lower().replace("-", "_")
    return f"{words}_{number}" if words[:1].isalpha() else f"cause_{number}"


def _head(name: str, title: Localized, why: Localized, layer: str, kinds: list[str]) -> list[str]:
    return [
        f"id: {name}",
        "title:",
        *localized(title, "  "),
        "summary:",
        *localized(why, "  "),
        f"layer: {layer}",
        f"category: {_CATEGORY.get(kinds[0], 'latency')}",
        f"prior: {_PRIOR:g}",
        f"symptoms: [{', '.join(kinds)}]",
    ]


def _rule(number: int, item: Evidence, known: Mapping[str, str], incident_id: str) -> list[str]:
    text = say("checklist.cause_text", said=item.summary, id=incident_id)
    basis = say("checklist.cause_basis", id=incident_id, evidence=item.id).en
    return [
        f"  - id: seen_{number}",
        f"    family: {item.source.value}_{number}",
        f"    when: {_test(item, known)}",
        f"    weight: {_WEIGHT:g}",
        "    text:",
        *localized(text, "      "),
        f"    basis: {quoted(basis)}",
    ]


def _rest(incident: Incident, first: Evidence, title: Localized) -> list[str]:
    fix = incident.fix.text if incident.fix else None
    fixed = (
        say("checklist.cause_fix", id=incident.id, fix=fix)
        if fix
        else say("checklist.cause_fix_unknown")
    )
    root = incident.root_cause
    prevention = root.prevention if root else fixed
    is_probe = first.source is EvidenceSource.PROBE
    asked = f"probe: {first.plugin}" if is_probe else f"query: {quoted(first.query)}"
    return [
        "experiments:",
        f"  - {asked}",
        "    cost: cheap",
        "    expects:",
        *localized(say("checklist.cause_expects", id=incident.id), "      "),
        "    would_refute:",
        *localized(say("checklist.cause_refutes"), "      "),
        *([f"    predicts: [{first.finding}]"] if is_probe else []),
        "fixes:",
        "  - text:",
        *localized(fixed, "      "),
        "prevention:",
        *_listed(prevention),
        "checklist:",
        *_listed(say("checklist.cause_check", id=incident.id, title=title)),
    ]


def _listed(text: Localized) -> list[str]:
    first, second = localized(text, "    ")
    return [f"  - {first.strip()}", second]
