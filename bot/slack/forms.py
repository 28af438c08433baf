"""The modals: what they ask, what was answered, and what is wrong with it, without asking anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from bot.blockkit import limits
from bot.cause import Catalogue
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.errors import CommandError
from bot.locales import say
from bot.slack import checks, report_form
from bot.slack.text import cut
from commands import _line

Json = dict[str, Any]

SYMPTOM = "rca_symptom"
REASON = "rca_reason"
MITIGATE = "rca_mitigate"
FIX = "rca_fix"
ACTION_ITEM = "rca_action_item"
START = "rca_start"
ADD = "rca_add"
PICK_CAUSE = "rca.pick.cause"

FORMS = (
    SYMPTOM,
    REASON,
    MITIGATE,
    FIX,
    ACTION_ITEM,
    START,
    ADD,
    checks.ANSWER,
    checks.EDIT,
    report_form.EDIT,
)


def form(callback_id: str, opaque: str, locale: Locale, **given: str) -> Json:
    """A modal. opaque: the id under which its meaning is stored; given: texts that fields begin with."""
    build = _FORMS[callback_id]
    titles = {
        SYMPTOM: "form_symptom_title",
        REASON: "form_reason_title",
        MITIGATE: "form_mitigate_title",
        FIX: "form_fix_title",
        ACTION_ITEM: "form_action_title",
        START: "form_start_title",
        ADD: "form_add_title",
        checks.ANSWER: "form_check_title",
        checks.EDIT: "form_edit_title",
        report_form.EDIT: "form_report_title",
    }
    return {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": opaque,
        "title": _plain(titles[callback_id], locale, limits.VIEW_TITLE),
        "submit": _plain("form_send", locale, limits.VIEW_BUTTON),
        "close": _plain("form_cancel", locale, limits.VIEW_BUTTON),
        "blocks": build(locale, given),
    }


def answers(view: Mapping[str, Any]) -> dict[str, str]:
    """What was filled in, by block id; empty fields are missing."""
    found: dict[str, str] = {}
    values = (view.get("state") or {}).get("values") or {}
    for block_id, actions in values.items():
        for entry in actions.values():
            text = _answer(entry)
            if text:
                found[str(block_id)] = text
    return found


def faults(body: Mapping[str, Any], now: datetime, locale: Locale) -> dict[str, str]:
    """What to say below which input; empty when the answers will do."""
    view = body.get("view") or {}
    given = answers(view)
    wrong: dict[str, str] = {}
    if "since" in given:
        try:
            # Any zone will do here: only the form of the answer is checked.
            _line.moment(given["since"], now + timedelta(hours=14), ZoneInfo("UTC"), "")
        except CommandError:
            wrong["since"] = say("slack.form_bad_time").in_locale(locale)
    if view.get("callback_id") == ADD and not (given.get("cause") or given.get("text")):
        wrong["text"] = say("slack.form_empty").in_locale(locale)
    return wrong


def store_down(body: Mapping[str, Any], locale: Locale) -> dict[str, str]:
    """The complaint below the first input when nothing can be recorded."""
    for block in (body.get("view") or {}).get("blocks") or ():
        if block.get("type") == "input":
            return {str(block["block_id"]): say("slack.form_store_down").in_locale(locale)}
    return {}


def causes(catalogue: Catalogue, typed: str, locale: Locale) -> list[Json]:
    """The causes whose name or id holds what was typed, as options."""
    wanted = typed.strip().lower()
    options = []
    for cause in catalogue.causes.values():
        title = cause.title.in_locale(locale)
        if wanted in f"{cause.id} {cause.title.en} {cause.title.zh}".lower():
            options.append(
                {
                    "text": {"type": "plain_text", "text": cut(title, limits.OPTION_TEXT)},
                    "value": cause.id,
                }
            )
    return options[: limits.SELECT_OPTIONS]


def _answer(entry: Mapping[str, Any]) -> str:
    match entry.get("type"):
        case "plain_text_input":
            return str(entry.get("value") or "").strip()
        case "users_select":
            return str(entry.get("selected_user") or "")
        case "datepicker":
            return str(entry.get("selected_date") or "")
        case "checkboxes":
            chosen = entry.get("selected_options") or ()
            return ",".join(str(option.get("value")) for option in chosen)
        case _:
            return str((entry.get("selected_option") or {}).get("value") or "")


def _plain(key: str, locale: Locale, most: int = 2000) -> Json:
    text = say(f"slack.{key}").in_locale(locale)
    return {"type": "plain_text", "text": cut(text, most), "emoji": True}


def _input(
    block_id: str,
    key: str,
    locale: Locale,
    *,
    initial: str = "",
    hint: str = "",
    optional: bool = False,
    multiline: bool = False,
    most: int = 1000,
) -> Json:
    element: Json = {
        "type": "plain_text_input",
        "action_id": "value",
        "multiline": multiline,
        "max_length": most,
    }
    if initial:
        element["initial_value"] = cut(initial, most)
    block: Json = {
        "type": "input",
        "block_id": block_id,
        "optional": optional,
        "label": _plain(key, locale),
        "element": element,
    }
    if hint:
        block["hint"] = _plain(hint, locale)
    return block


def _choice(block_id: str, key: str, locale: Locale, options: Sequence[Json], first: int) -> Json:
    return {
        "type": "input",
        "block_id": block_id,
        "label": _plain(key, locale),
        "element": {
            "type": "static_select",
            "action_id": "value",
            "options": list(options),
            "initial_option": options[first],
        },
    }


def _symptom(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    return [
        _input(
            "text",
            "form_symptom_text",
            locale,
            initial=given.get("text", ""),
            hint="form_symptom_text_hint",
            multiline=True,
        ),
        _input("scope", "form_symptom_scope", locale, initial=given.get("scope", ""), most=300),
        _input(
            "since",
            "form_symptom_since",
            locale,
            initial=given.get("since", ""),
            hint="form_symptom_since_hint",
            optional=True,
            most=40,
        ),
        _input(
            "metric",
            "form_symptom_metric",
            locale,
            initial=given.get("metric", ""),
            optional=True,
            most=1000,
        ),
    ]


def _reason(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    return [_input("reason", "form_reason", locale, multiline=True)]


def _mitigate(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    option = {"text": _plain("form_mitigate_capture_option", locale, 75), "value": "capture"}
    return [
        _input("text", "form_mitigate_text", locale, multiline=True),
        {
            "type": "input",
            "block_id": "capture",
            "optional": True,
            "label": _plain("form_mitigate_capture", locale),
            "element": {
                "type": "checkboxes",
                "action_id": "value",
                "options": [option],
                "initial_options": [option],
            },
        },
    ]


def _fix(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    return [_input("text", "form_fix_text", locale, multiline=True)]


def _action_item(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    return [
        _input("text", "form_action_text", locale, multiline=True),
        {
            "type": "input",
            "block_id": "owner",
            "optional": True,
            "label": _plain("form_action_owner", locale),
            "element": {"type": "users_select", "action_id": "value"},
        },
        {
            "type": "input",
            "block_id": "due",
            "optional": True,
            "label": _plain("form_action_due", locale),
            "element": {"type": "datepicker", "action_id": "value"},
        },
    ]


def _start(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    levels = [
        {"text": {"type": "plain_text", "text": level.value}, "value": level.value}
        for level in Severity
    ]
    return [
        _input("text", "form_start_text", locale, initial=given.get("text", ""), most=200),
        _choice("severity", "form_start_severity", locale, levels, 2),
        _input(
            "service",
            "form_start_service",
            locale,
            initial=given.get("service", ""),
            optional=True,
            most=100,
        ),
    ]


def _add(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    return [
        {
            "type": "input",
            "block_id": "cause",
            "optional": True,
            "label": _plain("form_add_cause", locale),
            "element": {
                "type": "external_select",
                "action_id": PICK_CAUSE,
                "min_query_length": 0,
            },
        },
        _input("text", "form_add_text", locale, optional=True, most=500),
    ]


def _check(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    nothing = [{"text": {"type": "plain_text", "text": "–"}, "value": "-"}]
    return [
        _choice(
            "check", "form_check", locale, json.loads(given.get("checks") or "[]") or nothing, 0
        ),
        _choice("outcome", "form_check_outcome", locale, checks.outcome_options(locale), 0),
        _input("text", "form_check_text", locale, optional=True, multiline=True, most=1000),
    ]


def _edit(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    block = _input(
        "block",
        "form_edit",
        locale,
        initial=given.get("block", ""),
        hint="form_edit_hint",
        multiline=True,
        most=3000,
    )
    return [block]


_FORMS = {
    SYMPTOM: _symptom,
    REASON: _reason,
    MITIGATE: _mitigate,
    FIX: _fix,
    ACTION_ITEM: _action_item,
    START: _start,
    ADD: _add,
    checks.ANSWER: _check,
    checks.EDIT: _edit,
    report_form.EDIT: report_form.blocks,
}


def utc(at: datetime | None) -> str:
    """A time as the symptom form takes it."""
    return at.astimezone(UTC).isoformat(timespec="seconds") if at else ""


def words(text: Localized | None, locale: Locale) -> str:
    """A text as a field begins with it."""
    return text.in_locale(locale) if text else ""
