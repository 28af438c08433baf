"""Which buttons stand below a view: decided when it is shown, from the incident as it is then.

Ids are a stable interface (messages of last month carry them); a button's value is an opaque id, its meaning is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from bot.blockkit import limits
from bot.domain.hypothesis import NOT_ESTABLISHED, Hypothesis, HypothesisStatus
from bot.domain.incident import Incident
from bot.domain.text import Locale, Localized
from bot.locales import say
from bot.message import Button
from bot.slack.checks import answer_button, proposal_buttons
from bot.slack.report_form import report_buttons
from bot.slack.text import cut
from bot.sop import StepId
from bot.steps.confirming import unchecked_layers
from bot.steps.gates import leading

Groups = dict[str, tuple[Button, ...]]

# Hypotheses that get buttons of their own; the others are reached by their number.
SHOWN_HYPOTHESES = 3
_MOST_WAIVED = 3


def groups_for(view: str, incident: Incident | None, context: Mapping[str, Any]) -> Groups:
    """The buttons of a view by group; the group without a name stands at the end."""
    if incident is None:
        return {}
    make = _VIEWS.get(view)
    return make(incident, context) if make else {}


def element(
    button: Button, incident_id: str | None, locale: Locale
) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """The Block Kit element, the opaque id in it, and what the id means.

    The id is a digest of the meaning, so that showing the same thing again gives the same message.
    """
    meaning = {
        "action": button.action_id,
        "incident": incident_id,
        "payload": dict(button.payload),
    }
    digest = hashlib.sha256(json.dumps(meaning, sort_keys=True, ensure_ascii=False).encode())
    opaque = digest.hexdigest()[:24]
    body: dict[str, Any] = {
        "type": "button",
        "action_id": button.action_id,
        "text": _plain(button.label.in_locale(locale), limits.BUTTON_TEXT),
        "value": opaque,
    }
    if button.style:
        body["style"] = button.style
    if button.confirm:
        body["confirm"] = {
            "title": _plain(say("slack.sure").in_locale(locale), 100),
            "text": _plain(button.confirm.in_locale(locale), limits.CONFIRM_TEXT),
            "confirm": _plain(say("slack.yes").in_locale(locale), 30),
            "deny": _plain(say("slack.no").in_locale(locale), 30),
        }
    return body, opaque, meaning


def _plain(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": cut(text, most) or "–", "emoji": True}


def _button(action_id: str, label: str, *, style: str | None = None, **payload: Any) -> Button:
    return Button(
        action_id=action_id, label=say(f"slack.button_{label}"), payload=payload, style=style
    )


def _card(incident: Incident, _: Mapping[str, Any]) -> Groups:
    if not incident.is_open:
        return {"": (_button("rca.export", "export"),)}
    buttons = [_button("rca.mitigate", "mitigate")]
    if incident.current_step is not None:
        buttons.insert(0, _button("rca.step.next", "next", style="primary"))
    return {"": (*buttons, _button("rca.export", "export"))}


def _walk(context: Mapping[str, Any], *, back: bool = True) -> tuple[Button, ...]:
    """On, back, past the gate; the way on stands out only where the gate is open."""
    style = None if context.get("missing") else "primary"
    buttons = [_button("rca.step.next", "next", style=style)]
    if back:
        buttons.append(_button("rca.step.back", "back"))
    return (*buttons, _button("rca.gate.pass", "pass"), _button("rca.mitigate", "mitigate"))


def _symptom(incident: Incident, context: Mapping[str, Any]) -> Groups:
    first = [_button("rca.symptom", "symptom", style="primary" if context.get("missing") else None)]
    scope = incident.scope
    if not scope.is_confirmed and (scope.nodes or scope.replicas or scope.models or scope.tenants):
        first.append(_button("rca.scope.confirm", "scope"))
    return {"": (*first, *_walk(context, back=False))}


def _information(_: Incident, context: Mapping[str, Any]) -> Groups:
    return {"": (_button("rca.collect", "collect"), *_walk(context))}


def _hypotheses_step(_: Incident, context: Mapping[str, Any]) -> Groups:
    return {"": (_button("rca.hypothesis.add", "add"), *_walk(context))}


def _verification_step(incident: Incident, context: Mapping[str, Any]) -> Groups:
    first = leading(incident)
    test: tuple[Button, ...] = ()
    if first is not None and first.next_experiment is not None:
        test = (_test(first, style="primary" if context.get("missing") else None),)
    return {"": (*test, *_walk(context))}


def _root_cause(incident: Incident, context: Mapping[str, Any]) -> Groups:
    first = leading(incident)
    confirm = (_confirm(first),) if first is not None and incident.root_cause is None else ()
    return {"": (*confirm, *_waive(incident, first), *_walk(context))}


def _review(incident: Incident, _: Mapping[str, Any]) -> Groups:
    buttons = [
        _button("rca.fix", "fix", style=None if incident.fix else "primary"),
        _button("rca.verify", "verify", style="primary" if incident.fix else None),
        _button("rca.checklist.show", "checklist"),
        _button("rca.action_item", "action_item"),
        _button("rca.export", "export"),
        _button("rca.step.back", "back"),
        _button("rca.gate.pass", "pass"),
        _button("rca.resolve", "resolve"),
    ]
    return {"": tuple(buttons)}


def _hypotheses(incident: Incident, _: Mapping[str, Any]) -> Groups:
    groups: Groups = {}
    live = [item for item in incident.hypotheses if item.status is not HypothesisStatus.REJECTED]
    for item in live[:SHOWN_HYPOTHESES]:
        buttons: list[Button] = []
        if item.next_experiment is not None:
            buttons.append(_test(item))
        if item.cause != NOT_ESTABLISHED:
            buttons.append(_reject(item))
        if item.status is not HypothesisStatus.CONFIRMED:
            buttons.append(_confirm(item))
        if item is live[0]:
            buttons += _waive(incident, item)
        groups[item.cause] = tuple(buttons)
    return groups


def _experiment(incident: Incident, context: Mapping[str, Any]) -> Groups:
    item = incident.hypothesis(str(context.get("cause") or ""))
    if item is None or item.status in (HypothesisStatus.REJECTED, HypothesisStatus.CONFIRMED):
        return {}
    return {"": (_confirm(item), _reject(item))}


def _ask_service(_: Incident, context: Mapping[str, Any]) -> Groups:
    names = [str(name) for name in context.get("services") or ()]
    return {
        "": tuple(
            Button(
                action_id="rca.service",
                label=Localized.verbatim(name),
                payload={"service": name},
            )
            for name in names[:10]
        )
    }


def _after_fix(incident: Incident, context: Mapping[str, Any]) -> Groups:
    if incident.fix is None or context.get("gone"):
        return {}
    return {"": (_button("rca.verify", "verify"),)}


def _test(item: Hypothesis, *, style: str | None = "primary") -> Button:
    return _button("rca.probe.run", "test", style=style, cause=item.cause)


def _reject(item: Hypothesis) -> Button:
    return _button("rca.hypothesis.reject", "reject", cause=item.cause)


def _confirm(item: Hypothesis) -> Button:
    is_open = item.cause == NOT_ESTABLISHED
    return Button(
        action_id="rca.hypothesis.confirm",
        label=say("slack.button_accept_open" if is_open else "slack.button_confirm"),
        payload={"cause": item.cause},
        confirm=say("slack.confirm_sure", cause=item.title),
    )


def _waive(incident: Incident, item: Hypothesis | None) -> list[Button]:
    """A way past each layer of the chain that nobody looked at; none once the cause is confirmed."""
    if item is None or item.status is HypothesisStatus.CONFIRMED:
        return []
    return [
        Button(
            action_id="rca.layer.waive",
            label=say("guards.button", layer=say(f"guards.name.{verdict.layer.value}")),
            payload={"layer": verdict.layer.value},
        )
        for verdict in unchecked_layers(incident, item)[:_MOST_WAIVED]
    ]


_VIEWS: Mapping[str, Callable[[Incident, Mapping[str, Any]], Groups]] = {
    "card": _card,
    f"step_{StepId.SYMPTOM}": _symptom,
    f"step_{StepId.INFORMATION}": _information,
    f"step_{StepId.HYPOTHESES}": _hypotheses_step,
    f"step_{StepId.VERIFICATION}": _verification_step,
    f"step_{StepId.ROOT_CAUSE}": _root_cause,
    f"step_{StepId.REVIEW}": _review,
    "hypotheses": _hypotheses,
    "experiment": _experiment,
    "checklist": lambda incident, _: proposal_buttons(incident),
    "checks": lambda incident, _: answer_button(incident),
    "ask_service": _ask_service,
    "verification": _after_fix,
    "fixed": _after_fix,
    "report": lambda incident, _: report_buttons(incident),
    "report_state": lambda incident, _: report_buttons(incident),
}


ACTION_IDS = (
    "rca.step.next",
    "rca.step.back",
    "rca.gate.pass",
    "rca.hypothesis.confirm",
    "rca.hypothesis.reject",
    "rca.hypothesis.add",
    "rca.layer.waive",
    "rca.probe.run",
    "rca.probe.approve",
    "rca.mitigate",
    "rca.checklist.accept",
    "rca.checklist.decline",
    "rca.checklist.show",
    "rca.checklist.edit",
    "rca.check.answer",
    "rca.followup.snooze",
    "rca.followup.stop",
    "rca.export",
    "rca.report.edit",
    "rca.report.review",
    "rca.report.final",
    "rca.report.reopen",
    "rca.symptom",
    "rca.scope.confirm",
    "rca.collect",
    "rca.fix",
    "rca.verify",
    "rca.action.done",
    "rca.action_item",
    "rca.resolve",
    "rca.service",
    "rca.choice",
)
