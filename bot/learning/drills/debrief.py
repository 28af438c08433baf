"""The path that a model responder would have gone: from the cause's own knowledge, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from bot.cause import Catalogue, Cause
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.locales import say

_MOST_REASONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One step of the procedure and what a model responder does in it."""

    step: str
    texts: tuple[Localized, ...]


def model_path(incident: Incident, catalogue: Catalogue) -> tuple[PathStep, ...]:
    """The six steps for the cause that was played; empty when the catalogue no longer holds it."""
    cause = catalogue.causes.get(incident.drill.cause) if incident.drill else None
    if cause is None:
        return ()
    strongest = sorted(
        (rule for rule in cause.evidence if rule.weight > 0), key=lambda rule: -rule.weight
    )[:_MOST_REASONS]
    rivals = _rivals(incident, cause, catalogue)
    return (
        PathStep(step="symptom", texts=(say("learning.path_symptom"),)),
        PathStep(step="information", texts=tuple(rule.text for rule in strongest)),
        PathStep(step="hypotheses", texts=(cause.title, *rivals)),
        PathStep(step="verification", texts=_tests(cause)),
        PathStep(step="root_cause", texts=(cause.summary,)),
        PathStep(
            step="review",
            texts=(
                *(item.text for item in cause.fixes[:1]),
                *cause.prevention[:1],
                *cause.checklist[:1],
            ),
        ),
    )


def _rivals(incident: Incident, cause: Cause, catalogue: Catalogue) -> tuple[Localized, ...]:
    """The candidates that stood nearest, and what speaks against each."""
    found = []
    for item in incident.hypotheses:
        rival = catalogue.causes.get(item.cause)
        if rival is None or item.cause == cause.id or item.cause in item.chain[:-1]:
            continue
        reason = item.against[0].summary if item.against else None
        if reason is not None:
            found.append(say("learning.path_rival", rival=rival.title, reason=reason))
        if len(found) == 2:
            break
    return tuple(found)


def _tests(cause: Cause) -> tuple[Localized, ...]:
    return tuple(
        say(
            "learning.path_test",
            probe=item.probe or item.query or "–",
            expects=item.expects,
            refutes=item.would_refute,
        )
        for item in cause.experiments[:1]
    )
