"""What is still missing before a step may be left: pure functions of the incident, one per rule of the SOP."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bot.domain.checklist import ProposalStatus
from bot.domain.hypothesis import NOT_ESTABLISHED, Hypothesis, HypothesisStatus, Symptom
from bot.domain.incident import Experiment, ExperimentVerdict, Incident
from bot.domain.text import Localized, listed
from bot.locales import say
from bot.sop import GateRule, Sop

# What every incident is asked about; probes are asked too but are no source of their own.
FOUR_SOURCES = ("metrics", "logs", "traces", "events")
_FIGURE = re.compile(r"\d")


def missing(incident: Incident, sop: Sop, step_id: str) -> tuple[Localized, ...]:
    """What the gate of `step_id` still asks for, in the file's order; empty when the step may be left."""
    step = sop.step(step_id)
    if step is None:
        return ()
    answers = (_RULES[rule](incident) for rule in step.gate)
    return tuple(answer for answer in answers if answer is not None)


def leading(incident: Incident) -> Hypothesis | None:
    """The first hypothesis that nobody rejected."""
    return next(
        (item for item in incident.hypotheses if item.status is not HypothesisStatus.REJECTED),
        None,
    )


def finished(incident: Incident, cause: str) -> tuple[Experiment, ...]:
    """The experiments of a hypothesis that have a result, in order."""
    return tuple(
        item for item in incident.experiments if item.cause == cause and item.verdict is not None
    )


def _stated(incident: Incident) -> Localized | None:
    return None if incident.symptoms else say("steps.missing_what")


def _exact(incident: Incident) -> Localized | None:
    """A statement without a figure and without a metric is vague: nobody could see it gone.

    The title that the incident was opened with is a headline: once somebody has stated exactly what goes wrong, it is
    asked about no more. Other vague statements still are.
    """
    vague = [item for item in incident.symptoms if not _is_exact(item)]
    if len(vague) < len(incident.symptoms):
        vague = [item for item in vague if incident.title not in (item.summary.en, item.summary.zh)]
    return say("steps.missing_figures", symptom=vague[0].summary) if vague else None


def _is_exact(symptom: Symptom) -> bool:
    return symptom.metric is not None or bool(_FIGURE.search(symptom.summary.en))


def _scope_confirmed(incident: Incident) -> Localized | None:
    return None if incident.scope.is_confirmed else say("steps.missing_scope")


def _since_known(incident: Incident) -> Localized | None:
    known = [item for item in incident.symptoms if item.since is not None]
    return None if known else say("steps.missing_since")


def _sources_answered(incident: Incident) -> Localized | None:
    silent = [name for name in FOUR_SOURCES if name not in incident.sources]
    return say("steps.missing_sources", sources=listed(silent)) if silent else None


def _ranked(incident: Incident) -> Localized | None:
    names = {item.cause for item in incident.hypotheses}
    if len(names) > 1 or NOT_ESTABLISHED in names:
        return None
    return say("steps.missing_ranking")


def _tested(incident: Incident) -> Localized | None:
    first = leading(incident)
    if first is None:
        return say("steps.missing_hypothesis")
    if first.cause == NOT_ESTABLISHED:
        has_test = any(item.next_experiment for item in incident.hypotheses)
        was_tested = any(item.verdict for item in incident.experiments)
        return say("steps.missing_any_test") if has_test and not was_tested else None
    if finished(incident, first.cause):
        return None
    return say("steps.missing_test", cause=first.title)


def _contrary_weighed(incident: Incident) -> Localized | None:
    first = leading(incident)
    if first is None:
        return None
    results = finished(incident, first.cause)
    if results and results[-1].verdict is ExperimentVerdict.CONTRARY:
        return say("steps.missing_contrary", cause=first.title)
    return None


def _cause_confirmed(incident: Incident) -> Localized | None:
    return None if incident.root_cause else say("steps.missing_cause")


def _fix_recorded(incident: Incident) -> Localized | None:
    return None if incident.fix else say("steps.missing_fix")


def _symptom_gone(incident: Incident) -> Localized | None:
    if incident.fix is None or incident.fix.verified is None:
        return say("steps.missing_verification")
    return None if incident.fix.verified else say("steps.missing_recovery")


def _report_compiled(incident: Incident) -> Localized | None:
    return None if incident.report_formats else say("steps.missing_report")


def _checklist_decided(incident: Incident) -> Localized | None:
    if not incident.is_checklist_reviewed:
        return say("steps.missing_checklist")
    open_ones = [
        str(item.n) for item in incident.checklist_changes if item.status is ProposalStatus.PROPOSED
    ]
    return say("steps.missing_decision", numbers=listed(open_ones)) if open_ones else None


_RULES: Mapping[GateRule, Callable[[Incident], Localized | None]] = {
    GateRule.STATED: _stated,
    GateRule.EXACT: _exact,
    GateRule.SCOPE_CONFIRMED: _scope_confirmed,
    GateRule.SINCE_KNOWN: _since_known,
    GateRule.SOURCES_ANSWERED: _sources_answered,
    GateRule.RANKED: _ranked,
    GateRule.TESTED: _tested,
    GateRule.CONTRARY_WEIGHED: _contrary_weighed,
    GateRule.CAUSE_CONFIRMED: _cause_confirmed,
    GateRule.FIX_RECORDED: _fix_recorded,
    GateRule.SYMPTOM_GONE: _symptom_gone,
    GateRule.REPORT_COMPILED: _report_compiled,
    GateRule.CHECKLIST_DECIDED: _checklist_decided,
}
