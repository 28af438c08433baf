"""Reads and completes Block Kit: ids that Slack fills in, elements, and the state that inputs hold."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.workspace.records import Json

# Where Slack keeps what was put into an element, by the element's type.
_TEXT_INPUTS = frozenset({"plain_text_input", "email_text_input", "url_text_input", "number_input"})
_ONE_OPTION = frozenset({"static_select", "radio_buttons", "overflow", "external_select"})
_MANY_OPTIONS = frozenset({"checkboxes", "multi_static_select", "multi_external_select"})
_MANY_IDS = {
    "multi_users_select": "selected_users",
    "multi_channels_select": "selected_channels",
    "multi_conversations_select": "selected_conversations",
}
_ONE_VALUE = {
    "users_select": "selected_user",
    "channels_select": "selected_channel",
    "conversations_select": "selected_conversation",
    "datepicker": "selected_date",
    "timepicker": "selected_time",
    "rich_text_input": "rich_text_value",
}


@dataclass(frozen=True, slots=True)
class Element:
    """An interactive element and the block that holds it."""

    block_id: str
    body: Json
    block: Json

    @property
    def action_id(self) -> str:
        """The id that the app chose, or the one that was filled in."""
        return str(self.body.get("action_id", ""))

    @property
    def kind(self) -> str:
        """The element's type."""
        return str(self.body.get("type", ""))


class ChoiceError(ValueError):
    """A person cannot have chosen that: no such element, or no such option."""


def with_ids(blocks: Sequence[Mapping[str, Any]], *, salt: str) -> list[Json]:
    """A copy in which every block has a block_id and every interactive element an action_id.

    salt: makes the ids differ between messages while the same message always gets the same ones.
    """
    completed = copy.deepcopy([dict(block) for block in blocks])
    for index, block in enumerate(completed):
        if not block.get("block_id"):
            block["block_id"] = _short_id(salt, str(index))
        for position, element in enumerate(_elements_of(block)):
            if element.get("type") not in ("mrkdwn", "plain_text", "image", None):
                element.setdefault("action_id", _short_id(salt, f"{index}/{position}"))
    return completed


def elements(blocks: Sequence[Json], attachments: Sequence[Json] = ()) -> Iterator[Element]:
    """Every interactive element of a message or view, in reading order."""
    nested = [block for item in attachments for block in item.get("blocks") or ()]
    for block in [*blocks, *nested]:
        for element in _elements_of(block):
            if "action_id" in element:
                yield Element(str(block.get("block_id", "")), element, block)


def find(
    found: Sequence[Element],
    action_id: str,
    *,
    block_id: str | None = None,
    value: str | None = None,
) -> Element:
    """The one element that a person means.

    Raises:
        ChoiceError: there is none, or several and nothing tells them apart.
    """
    fitting = [
        element
        for element in found
        if element.action_id == action_id
        and block_id in (None, element.block_id)
        and (value is None or element.kind != "button" or element.body.get("value") == value)
    ]
    if len(fitting) != 1:
        known = ", ".join(sorted({element.action_id for element in found})) or "none"
        raise ChoiceError(
            f"{len(fitting)} elements fit {action_id!r}; there are: {known}"
            if not fitting
            else f"{len(fitting)} elements fit {action_id!r}: name the block_id or the value"
        )
    return fitting[0]


def chosen(element: Element, value: Any) -> Json:
    """The typed value of an element, as `state.values` and an action carry it.

    value: what the person chose in plain words: text, an option's value, a list of them, an id, epoch seconds.

    Raises:
        ChoiceError: the element does not offer that.
    """
    kind = element.kind
    if kind in _TEXT_INPUTS:
        text = None if value in (None, "") else str(value)
        _check_length(element, text)
        return {"value": text}
    if kind in _ONE_OPTION:
        return {"selected_option": None if value is None else _option(element, value)}
    if kind in _MANY_OPTIONS:
        return {"selected_options": [_option(element, one) for one in value or ()]}
    if kind in _MANY_IDS:
        return {_MANY_IDS[kind]: list(value or ())}
    if kind in _ONE_VALUE:
        return {_ONE_VALUE[kind]: value or None}
    match kind:
        case "button":
            return {}
        case "datetimepicker":
            return {"selected_date_time": None if value in (None, "") else int(value)}
        case _:
            raise ChoiceError(f"{kind!r} cannot be used here")


def initial(element: Element) -> Json:
    """The value that an element shows before anyone has touched it."""
    kind, body = element.kind, element.body
    if kind in _TEXT_INPUTS:
        return {"value": body.get("initial_value")}
    if kind in _ONE_OPTION:
        return {"selected_option": body.get("initial_option")}
    if kind in _MANY_OPTIONS:
        return {"selected_options": body.get("initial_options") or []}
    if kind in _MANY_IDS:
        name = _MANY_IDS[kind]
        return {name: body.get(name.replace("selected_", "initial_")) or []}
    if kind in _ONE_VALUE or kind == "datetimepicker":
        name = _ONE_VALUE.get(kind, "selected_date_time")
        return {name: body.get(name.replace("selected_", "initial_"))}
    return {}


def state_values(blocks: Sequence[Json], answers: Mapping[str, Any]) -> tuple[Json, dict[str, str]]:
    """`state.values` of a view, and a complaint per block whose answer is missing or cannot be.

    answers: by action_id, block_id, or `block_id/action_id`; what is not named keeps its initial value.
    """
    values: Json = {}
    complaints: dict[str, str] = {}
    for element in elements(blocks):
        if element.kind in ("button", "overflow"):
            continue
        names = (f"{element.block_id}/{element.action_id}", element.action_id, element.block_id)
        given = next((name for name in names if name in answers), None)
        try:
            value = initial(element) if given is None else chosen(element, answers[given])
        except ChoiceError as error:
            complaints[element.block_id] = str(error)
            continue
        is_input = element.block.get("type") == "input"
        if is_input and not element.block.get("optional") and not any(value.values()):
            complaints[element.block_id] = "Please complete this required field."
        values.setdefault(element.block_id, {})[element.action_id] = {
            "type": element.kind,
            **value,
        }
    return values, complaints


def _elements_of(block: Json) -> Iterator[Json]:
    for key in ("accessory", "element"):
        if isinstance(block.get(key), dict):
            yield block[key]
    if block.get("type") in ("actions", "context_actions"):
        yield from (element for element in block.get("elements") or () if isinstance(element, dict))


def _option(element: Element, value: Any) -> Json:
    if element.kind in ("external_select", "multi_external_select"):
        # The options came from the app a moment ago and are not kept; the chosen one arrives whole.
        if isinstance(value, dict):
            return value
        raise ChoiceError(f"{element.action_id!r} takes one of the options that the app offered")
    groups = element.body.get("option_groups") or ()
    offered = [*(element.body.get("options") or ()), *(o for g in groups for o in g["options"])]
    wanted = value.get("value") if isinstance(value, dict) else value
    for option in offered:
        if option.get("value") == wanted:
            return dict(option)
    values = ", ".join(str(option.get("value")) for option in offered)
    raise ChoiceError(f"{element.action_id!r} offers no {wanted!r}; it offers: {values}")


def _check_length(element: Element, text: str | None) -> None:
    shortest = int(element.body.get("min_length") or 0)
    longest = int(element.body.get("max_length") or 3000)
    if text is not None and not shortest <= len(text) <= longest:
        raise ChoiceError(f"{len(text)} characters; it takes {shortest} to {longest}")


def _short_id(salt: str, place: str) -> str:
    return hashlib.sha256(f"{salt}|{place}".encode()).hexdigest()[:5]
