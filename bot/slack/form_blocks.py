"""The inputs of each form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.domain.responder import Severity
from bot.domain.text import Locale
from bot.locales import say
from bot.slack import checks
from bot.slack.text import cut

Json = dict[str, Any]

# The select of causes, whose options are asked for as somebody types.
PICK_CAUSE = "rca.pick.cause"


def words(key: str, locale: Locale, most: int = 2000) -> Json:
    """A label of the catalogue, cut to `most` characters."""
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
        "label": words(key, locale),
        "element": element,
    }
    if hint:
        block["hint"] = words(hint, locale)
    return block


def _choice(block_id: str, key: str, locale: Locale, options: Sequence[Json], first: int) -> Json:
    return {
        "type": "input",
        "block_id": block_id,
        "label": words(key, locale),
        "element": {
            "type": "static_select",
            "action_id": "value",
            "options": list(options),
            "initial_option": options[first],
        },
    }


def symptom(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    """What goes wrong, for whom, since when; given: what is known already."""
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


def reason(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    """Why something is done or left."""
    return [_input("reason", "form_reason", locale, multiline=True)]


def mitigate(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    """What is done against the effect, and whether to save what it destroys first."""
    option = {"text": words("form_mitigate_capture_option", locale, 75), "value": "capture"}
    return [
        _input("text", "form_mitigate_text", locale, multiline=True),
        {
            "type": "input",
            "block_id": "capture",
            "optional": True,
            "label": words("form_mitigate_capture", locale),
            "element": {
                "type": "checkboxes",
                "action_id": "value",
                "options": [option],
                "initial_options": [option],
            },
        },
    ]


def fix(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    """What was put right."""
    return [_input("text", "form_fix_text", locale, multiline=True)]


def action_item(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    """What is to be done, by whom, until when."""
    return [
        _input("text", "form_action_text", locale, multiline=True),
        {
            "type": "input",
            "block_id": "owner",
            "optional": True,
            "label": words("form_action_owner", locale),
            "element": {"type": "users_select", "action_id": "value"},
        },
        {
            "type": "input",
            "block_id": "due",
            "optional": True,
            "label": words("form_action_due", locale),
            "element": {"type": "datepicker", "action_id": "value"},
        },
    ]


def start(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    """The title, severity and service of a new incident."""
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


def add(locale: Locale, _: Mapping[str, str]) -> list[Json]:
    """A cause of the catalogue, or a person's own words."""
    return [
        {
            "type": "input",
            "block_id": "cause",
            "optional": True,
            "label": words("form_add_cause", locale),
            "element": {
                "type": "external_select",
                "action_id": PICK_CAUSE,
                "min_query_length": 0,
            },
        },
        _input("text", "form_add_text", locale, optional=True, most=500),
    ]


def check(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    """An answer to a check; given: `checks`, the options as JSON."""
    nothing = [{"text": {"type": "plain_text", "text": "–"}, "value": "-"}]
    return [
        _choice(
            "check", "form_check", locale, json.loads(given.get("checks") or "[]") or nothing, 0
        ),
        _choice("outcome", "form_check_outcome", locale, checks.outcome_options(locale), 0),
        _input("text", "form_check_text", locale, optional=True, multiline=True, most=1000),
    ]


def edit(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    """The added lines of a proposal; given: `block`, the lines as they stand."""
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
