"""Holds what the workspace answers and sends against Slack's published shapes."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema

from bot.blockkit.contract import document, methods

# Real messages carry these; the published answer types, made from examples, leave them out.
_REAL_IN_MESSAGES = ("client_msg_id", "subtype", "username", "icons", "hidden", "root")


def fault_of_answer(method: str, answer: dict[str, Any]) -> str | None:
    """Why Slack would never answer this, or None."""
    error = answer.get("error")
    if not answer.get("ok"):
        known = methods().get(method)
        if known is None:
            return None if error == "unknown_method" else f"{method}: {error} for an unknown method"
        return None if known.knows_error(str(error)) else f"{method} never answers {error}"
    responses = document("webapi-responses.schema.json")
    schema = {**responses["methods"][method], "definitions": responses["definitions"]}
    return _fault(schema, _without_real_extras(answer), method)


def fault_of_event(event: dict[str, Any]) -> str | None:
    """Why Slack would never send this event, or None."""
    events = document("events.schema.json")
    key = event["type"]
    if event["type"] == "message" and event.get("subtype"):
        key = f"message:{event['subtype']}"
    if key not in events["events"]:
        return f"no event {key}"
    checked = copy.deepcopy(event)
    if key == "message:channel_join":
        # Who comes in by themselves was invited by nobody, though the types always name an inviter.
        checked.setdefault("inviter", event["user"])
    for name in ("message", "previous_message"):
        # A tombstone is a message that Slack sends and its types do not know.
        if key == "message:message_changed" and checked[name].get("subtype") == "tombstone":
            checked[name].pop("subtype")
        # Inside message_changed the message has no channel of its own, though the types ask for one.
        for field in ("channel", "channel_type", "event_ts"):
            if name in checked:
                checked[name].setdefault(
                    field, {"event_ts": checked["ts"]}.get(field, event.get(field))
                )
    return _fault({**events["events"][key], "definitions": events["definitions"]}, checked, key)


def fault_of_payload(name: str, payload: dict[str, Any]) -> str | None:
    """Why Slack would never send this command or action, or None."""
    payloads = document("payloads.schema.json")
    schema = {**payloads["payloads"][name], "definitions": payloads["definitions"]}
    return _fault(schema, payload, name)


def _fault(schema: dict[str, Any], value: object, what: str) -> str | None:
    validator = jsonschema.Draft7Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    return None if error is None else f"{what}: {error.json_path}: {error.message[:300]}"


def _without_real_extras(answer: dict[str, Any]) -> dict[str, Any]:
    slim = copy.deepcopy(answer)
    for message in [*slim.get("messages", []), slim.get("message") or {}]:
        for key in _REAL_IN_MESSAGES:
            message.pop(key, None)
    return slim
