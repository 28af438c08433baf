"""The checklist of an incident as templates take it, and the forms in which people answer and reword."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.blockkit import limits
from bot.checklist.editing import editable
from bot.domain.checklist import ChecklistChange, CheckOutcome, ProposalStatus
from bot.domain.incident import Incident
from bot.domain.text import Locale
from bot.locales import say
from bot.message import Button
from bot.slack.text import cut

Json = dict[str, Any]

ANSWER = "rca_check"
EDIT = "rca_checklist_edit"
OUTCOMES = (CheckOutcome.FOUND, CheckOutcome.CLEAN, CheckOutcome.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many checks have an answer, wait for one, or could not be looked at."""

    answered: int
    open: int
    blind: int


def checks_of(incident: Incident, step: str) -> dict[str, Any]:
    """What came of each check by its id, the checks of one step, and how much is covered."""
    listed = incident.checklist
    if listed is None:
        return {
            "check_runs": {},
            "step_checks": [],
            "coverage": Coverage(answered=0, open=0, blind=0),
        }
    runs = {run.item: run for run in incident.checks if run.checklist == listed.id}
    blind = sum(1 for item in listed.checks if _is(runs, item.id, CheckOutcome.UNKNOWN))
    open_ones = sum(1 for item in listed.checks if item.id not in runs)
    return {
        "check_runs": runs,
        "step_checks": [item for item in listed.checks if item.step == step],
        "coverage": Coverage(
            answered=len(listed.checks) - open_ones - blind, open=open_ones, blind=blind
        ),
    }


def _is(runs: Mapping[str, Any], item: str, outcome: CheckOutcome) -> bool:
    return item in runs and runs[item].outcome is outcome


def proposal_buttons(incident: Incident) -> dict[str, tuple[Button, ...]]:
    """Accept, reword (where a form can hold it) and decline, for each proposal that waits."""
    return {
        f"c{item.n}": _decide(item)
        for item in (*incident.checklist_changes, *incident.monitoring_changes)
        if item.status is ProposalStatus.PROPOSED
    }


def _decide(item: ChecklistChange) -> tuple[Button, ...]:
    accept = Button(
        action_id="rca.checklist.accept",
        label=say("slack.button_accept"),
        payload={"n": item.n},
        style="primary",
    )
    decline = Button(
        action_id="rca.checklist.decline", label=say("slack.button_decline"), payload={"n": item.n}
    )
    if item.kind.is_monitoring or editable(item.diff) is None:
        return (accept, decline)
    edit = Button(
        action_id="rca.checklist.edit", label=say("checklist.button_edit"), payload={"n": item.n}
    )
    return (accept, edit, decline)


def answer_button(incident: Incident) -> dict[str, tuple[Button, ...]]:
    """The button below the list, while somebody works on the incident."""
    if incident.checklist is None or not incident.is_open:
        return {}
    button = Button(action_id="rca.check.answer", label=say("checklist.button_answer"))
    return {"": (button,)}


def answer_options(incident: Incident, locale: Locale) -> list[Json]:
    """The checks as options of a select: those without an answer first, within what Slack takes."""
    listed = incident.checklist
    if listed is None:
        return []
    done = {run.item for run in incident.checks if run.checklist == listed.id}
    ordered = sorted(listed.checks, key=lambda item: item.id in done)
    return [
        {
            "text": {
                "type": "plain_text",
                "text": cut(item.text.in_locale(locale), limits.OPTION_TEXT),
            },
            "value": item.id,
        }
        for item in ordered[: limits.SELECT_OPTIONS]
        if len(item.id) <= limits.OPTION_TEXT
    ]


def outcome_options(locale: Locale) -> list[Json]:
    """What an answer can be."""
    return [
        {
            "text": {
                "type": "plain_text",
                "text": say(f"checklist.outcome_{outcome.value}").in_locale(locale),
            },
            "value": outcome.value,
        }
        for outcome in OUTCOMES
    ]


def begins_with(form: str, incident: Incident, payload: Mapping[str, Any]) -> dict[str, str] | None:
    """What the fields of a form begin with; None where there is nothing left to answer or to reword."""
    if form == ANSWER:
        options = answer_options(incident, incident.locale)
        return {"checks": json.dumps(options, ensure_ascii=False)} if options else None
    known = (*incident.checklist_changes, *incident.monitoring_changes)
    change = next((item for item in known if item.n == payload.get("n")), None)
    block = editable(change.diff) if change else None
    return {"block": block} if block else None
