"""views.*: modals with their stack, and the Home tab."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from bot.blockkit import limits
from bot.blockkit.validate import Fault, validate_view
from bot.workspace import blocks as block_kit
from bot.workspace import shapes
from bot.workspace.call import ApiError, Call
from bot.workspace.records import Json, View
from bot.workspace.services import Services
from bot.workspace.tickets import Trigger, TriggerState


async def open_view(services: Services, call: Call) -> Json:
    """Opens a modal on top of nothing, for the person whose trigger this is."""
    body = modal_body(call.json("view"))
    trigger = _redeem(services, call)
    record = add_modal(services, trigger.user, body, channel=trigger.channel, on_top=False)
    return {"view": shapes.view(services.workspace, record)}


async def push(services: Services, call: Call) -> Json:
    """Opens a modal on top of the one that the person has."""
    body = modal_body(call.json("view"))
    trigger = _redeem(services, call)
    if not services.workspace.stacks.get(trigger.user):
        raise ApiError("not_found")
    record = add_modal(services, trigger.user, body, channel=trigger.channel, on_top=True)
    return {"view": shapes.view(services.workspace, record)}


async def update(services: Services, call: Call) -> Json:
    """Replaces the content of an open modal."""
    workspace = services.workspace
    body = modal_body(call.json("view"))
    record = _open_modal(services, call)
    if (expected := call.text("hash")) and expected != record.hash:
        raise ApiError("hash_conflict")
    replace_view(services, record, body)
    return {"view": shapes.view(workspace, record)}


async def publish(services: Services, call: Call) -> Json:
    """Sets a person's Home tab."""
    workspace = services.workspace
    user = call.required("user_id")
    if user not in workspace.users:
        raise ApiError("invalid_arguments", messages=["[ERROR] user_id is unknown"])
    body = _checked(call.json("view"), "home")
    current = workspace.homes.get(user)
    expected = call.text("hash")
    if expected and (current is None or expected != current.hash):
        raise ApiError("hash_conflict")
    if current is None:
        view_id = workspace.new_id("V")
        current = View(id=view_id, user=user, body={}, hash="", root_view_id=view_id)
        workspace.homes[user] = current
    replace_view(services, current, body)
    return {"view": shapes.view(workspace, current)}


def add_modal(
    services: Services, user: str, body: Json, *, channel: str | None, on_top: bool
) -> View:
    """Puts a modal on a person's screen.

    Raises:
        ApiError: the stack is three deep already, or the external_id is taken.
    """
    workspace = services.workspace
    stack = workspace.stacks.setdefault(user, [])
    _check_external_id(services, body, except_view=None)
    if not on_top:
        stack.clear()
    elif len(stack) >= limits.VIEW_STACK:
        raise ApiError("push_limit_reached")
    view_id = workspace.new_id("V")
    record = View(
        id=view_id,
        user=user,
        body=block_ids(body, view_id),
        hash=_hash(workspace.timestamp()),
        root_view_id=stack[0].id if stack else view_id,
        previous_view_id=stack[-1].id if stack else None,
        channel=channel,
    )
    stack.append(record)
    workspace.views_changed(user)
    return record


def replace_view(services: Services, record: View, body: Json) -> None:
    """Gives a view new content and a new hash.

    Raises:
        ApiError: the external_id is taken.
    """
    _check_external_id(services, body, except_view=record.id)
    record.body = block_ids(body, record.id)
    record.hash = _hash(services.workspace.timestamp())
    services.workspace.views_changed(record.user)


def modal_body(value: Any) -> Json:
    """A modal that may be shown.

    Raises:
        ApiError: Slack would refuse it.
    """
    return _checked(value, "modal")


def block_ids(body: Json, salt: str) -> Json:
    """The view with every id filled in."""
    return {**body, "blocks": block_kit.with_ids(body["blocks"], salt=salt)}


def _checked(value: Any, kind: str) -> Json:
    if not isinstance(value, dict):
        raise ApiError("invalid_arguments", messages=["[ERROR] view must be an object"])
    if len(json.dumps(value, ensure_ascii=False).encode()) > limits.VIEW_BYTES:
        raise ApiError("view_too_large")
    faults = validate_view(value)
    if not faults and value["type"] != kind:
        faults = [Fault("/type", f"must be {kind}")]
    if faults:
        raise ApiError(
            "invalid_arguments",
            messages=[f"[ERROR] {f.message} [json-pointer:/view{f.pointer}]" for f in faults],
        )
    return value


def _redeem(services: Services, call: Call) -> Trigger:
    state, trigger = services.tickets.redeem(call.required("trigger_id"))
    if trigger is None:
        raise ApiError((TriggerState.INVALID if state is TriggerState.GOOD else state).value)
    return trigger


def _open_modal(services: Services, call: Call) -> View:
    view_id, external_id = call.text("view_id"), call.text("external_id")
    if view_id is None and external_id is None:
        raise ApiError("invalid_arguments", messages=["[ERROR] give view_id or external_id"])
    for stack in services.workspace.stacks.values():
        for view in stack:
            if view.id == view_id or (
                external_id is not None and view.body.get("external_id") == external_id
            ):
                return view
    raise ApiError("not_found")


def _check_external_id(services: Services, body: Json, *, except_view: str | None) -> None:
    external_id = body.get("external_id")
    workspace = services.workspace
    known = [*(v for stack in workspace.stacks.values() for v in stack), *workspace.homes.values()]
    if external_id and any(
        view.body.get("external_id") == external_id and view.id != except_view for view in known
    ):
        raise ApiError("duplicate_external_id")


def _hash(timestamp: str) -> str:
    return f"{timestamp}.{hashlib.sha256(timestamp.encode()).hexdigest()[:8]}"


HANDLERS = {
    "views.open": open_view,
    "views.push": push,
    "views.update": update,
    "views.publish": publish,
}
