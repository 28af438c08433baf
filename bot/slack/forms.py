"""The modals: what they ask, what was answered, and what is wrong with it, without asking anybody."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from bot.blockkit import limits
from bot.cause import Catalogue
from bot.domain.text import Locale, Localized
from bot.errors import CommandError
from bot.locales import say
from bot.slack import checks, form_blocks, report_form
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
        "title": form_blocks.words(titles[callback_id], locale, limits.VIEW_TITLE),
        "submit": form_blocks.words("form_send", locale, limits.VIEW_BUTTON),
        "close": form_blocks.words("form_cancel", locale, limits.VIEW_BUTTON),
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


_FORMS = {
    SYMPTOM: form_blocks.symptom,
    REASON: form_blocks.reason,
    MITIGATE: form_blocks.mitigate,
    FIX: form_blocks.fix,
    ACTION_ITEM: form_blocks.action_item,
    START: form_blocks.start,
    ADD: form_blocks.add,
    checks.ANSWER: form_blocks.check,
    checks.EDIT: form_blocks.edit,
    report_form.EDIT: report_form.blocks,
}


def utc(at: datetime | None) -> str:
    """A time as the symptom form takes it."""
    return at.astimezone(UTC).isoformat(timespec="seconds") if at else ""


def words(text: Localized | None, locale: Locale) -> str:
    """A text as a field begins with it."""
    return text.in_locale(locale) if text else ""
