"""What a check came to: from the answers of its probe, or from the value of its query."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bot.checklist.reading import Checklist, ChecklistItem
from bot.domain.checklist import CheckOutcome, ListedCheck, UsedChecklist
from bot.domain.finding import FindingSeverity, ProbeResult, ProbeStatus
from bot.domain.text import Localized
from bot.locales import say

_MOST = 300


def judge_results(results: Sequence[ProbeResult]) -> tuple[CheckOutcome, Localized]:
    """One node with something out of the ordinary is enough; clean is only what every node could look at."""
    if not results:
        return CheckOutcome.UNKNOWN, say("checklist.no_nodes")
    abnormal = [
        (result.node, finding.summary)
        for result in results
        for finding in result.findings
        if finding.severity is not FindingSeverity.INFO
    ]
    if abnormal:
        return CheckOutcome.FOUND, _listed(abnormal)
    blind = [
        (result.node, result.error or result.status.value)
        for result in results
        if result.status is not ProbeStatus.OK
    ]
    if blind:
        return CheckOutcome.UNKNOWN, _listed(blind)
    said = [(result.node, item.summary) for result in results for item in result.findings]
    if not said:
        # A probe without a finding has not judged anything.
        return CheckOutcome.UNKNOWN, say("checklist.no_answer")
    return CheckOutcome.CLEAN, _listed(said)


def judge_values(
    item: ChecklistItem, values: Sequence[float], unit: str = ""
) -> tuple[CheckOutcome, Localized]:
    """The value farthest over the bound decides; no value at all, or none that is a number, is no answer."""
    bound = item.above if item.above is not None else item.below
    values = [value for value in values if math.isfinite(value)]
    if not values or bound is None:
        return CheckOutcome.UNKNOWN, say("checklist.no_series")
    worst = max(values) if item.above is not None else min(values)
    is_over = worst > bound if item.above is not None else worst < bound
    value = f"{worst:.6g} {unit}".strip()
    said = say("checklist.value", value=value, bound=f"{bound:g}")
    return (CheckOutcome.FOUND if is_over else CheckOutcome.CLEAN), said


def used(checklist: Checklist, version: int) -> UsedChecklist:
    """A checklist as an incident keeps it."""
    return UsedChecklist(
        id=checklist.id,
        title=checklist.title,
        version=version,
        checks=tuple(
            ListedCheck(
                id=item.id,
                step=item.step,
                text=item.text,
                learned_from=item.learned_from,
                probe=item.probe,
                query=item.query,
            )
            for item in checklist.items
        ),
    )


def _listed(said: Sequence[tuple[str, str]]) -> Localized:
    text = "; ".join(f"{node}: {' '.join(words.split())}" for node, words in said)
    return Localized.verbatim(text if len(text) <= _MOST else f"{text[: _MOST - 1]}…")
