"""What a press means: a word with its text, a form to be filled in, or a small thing done right here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bot.slack import checks, forms, report_form


@dataclass(frozen=True, slots=True)
class Say:
    """A press that is the same as a word; the button's payload goes with it."""

    word: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """A press that opens a form; sending it is the same as `word` with `text` before the answer."""

    form: str
    word: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Do:
    """A press that needs no word of its own; `what` names it."""

    what: str


Meaning = Say | Ask | Do

# Stable: a message of last month still carries these. An id that is renamed stays here beside its new name.
MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {
        "rca.step.next": Say("step", "next"),
        "rca.step.back": Say("step", "back"),
        "rca.gate.pass": Ask(forms.REASON, "step", "pass"),
        "rca.hypothesis.confirm": Say("hypothesis", "confirm"),
        "rca.hypothesis.reject": Ask(forms.REASON, "hypothesis", "reject"),
        "rca.hypothesis.add": Ask(forms.ADD, "hypothesis", "add"),
        "rca.layer.waive": Ask(forms.REASON, "hypothesis", "waive"),
        "rca.probe.run": Say("hypothesis", "test"),
        "rca.probe.approve": Do("approve"),
        "rca.mitigate": Ask(forms.MITIGATE, "mitigate"),
        "rca.checklist.accept": Say("checklist", "accept"),
        "rca.checklist.decline": Ask(forms.REASON, "checklist", "decline"),
        "rca.checklist.show": Say("checklist", "show"),
        "rca.checklist.edit": Ask(checks.EDIT, "checklist", "edit"),
        "rca.check.answer": Ask(checks.ANSWER, "checklist", "answer"),
        "rca.followup.snooze": Do("snooze"),
        "rca.followup.stop": Do("stop"),
        "rca.export": Say("export"),
        "rca.report.edit": Ask(report_form.EDIT, "report_edit"),
        "rca.report.review": Do("report_review"),
        "rca.report.final": Do("report_final"),
        "rca.report.reopen": Do("report_reopen"),
        "rca.symptom": Ask(forms.SYMPTOM, "symptom"),
        "rca.scope.confirm": Do("scope"),
        "rca.collect": Do("collect"),
        "rca.fix": Ask(forms.FIX, "fix"),
        "rca.verify": Do("verify"),
        "rca.action.done": Do("action_done"),
        "rca.action_item": Ask(forms.ACTION_ITEM, "action_item"),
        "rca.resolve": Say("resolve"),
        "rca.service": Do("service"),
        "rca.choice": Do("choice"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A filled-in form as a word."""

    word: str
    text: str
    payload: Mapping[str, Any] = field(default_factory=dict)


def spoken(form: str, ask: Mapping[str, Any], given: Mapping[str, str]) -> Spoken:
    """The word that a form's answers amount to. ask: the stored meaning (`word`, `text`, `payload`)."""
    word, text = str(ask.get("word") or ""), str(ask.get("text") or "")
    payload = dict(ask.get("payload") or {})
    match form:
        case forms.REASON:
            return Spoken(word=word, text=f"{text} {given.get('reason', '')}", payload=payload)
        case forms.SYMPTOM:
            options = [
                f"{name}={given[name]}" if name != "since" else f'since="{given[name]}"'
                for name in ("metric", "scope", "since")
                if given.get(name)
            ]
            words = " ".join([given.get("text", ""), *options])
            return Spoken(word=word, text=words, payload=payload)
        case forms.MITIGATE:
            skip = "" if given.get("capture") else " capture=no"
            return Spoken(word=word, text=given.get("text", "") + skip, payload=payload)
        case forms.ADD:
            chosen = given.get("cause") or given.get("text", "")
            return Spoken(word=word, text=f"{text} {chosen}", payload=payload)
        case forms.START:
            service = f" service={given['service']}" if given.get("service") else ""
            words = f"{given.get('severity', '')} {given.get('text', '')}{service}"
            return Spoken(word="start", text=words.strip(), payload=payload)
        case checks.ANSWER | checks.EDIT:
            return Spoken(word=word, text=text, payload={**payload, **given})
        case _:
            return Spoken(word=word, text=given.get("text", ""), payload={**payload, **given})
