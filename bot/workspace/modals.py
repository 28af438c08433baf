"""Submitting and closing modals, and what the app's answer does to the stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.workspace import blocks as block_kit
from bot.workspace import payloads
from bot.workspace.call import ApiError
from bot.workspace.delivery import Courier, Kind
from bot.workspace.methods.views import add_modal, modal_body, replace_view
from bot.workspace.outcome import Outcome
from bot.workspace.records import Json, User, View
from bot.workspace.services import Services

_TROUBLE = "We had some trouble connecting. Try again?"


class Modals:
    """People's hands on the app's modals."""

    def __init__(self, services: Services, courier: Courier) -> None:
        self._services = services
        self._workspace = services.workspace
        self._courier = courier

    async def submit(self, user: User, view: View, answers: Mapping[str, Any]) -> Outcome:
        """Presses a modal's submit button; the client refuses what is missing before the app hears of it."""
        state, complaints = block_kit.state_values(view.body["blocks"], answers)
        if complaints:
            return Outcome(errors=complaints)
        payload = payloads.view_submission(
            self._workspace,
            user=user,
            view=view,
            state=state,
            trigger_id=self._services.tickets.trigger(user.id, channel=view.channel),
            urls=self._response_urls(user, view, state),
        )
        ack = await self._courier.ask(Kind.INTERACTIVE, "view_submission", payload)
        if not ack.is_good:
            return Outcome(error="trouble_connecting", detail=_TROUBLE)
        return self._after_submission(user, view, ack.body)

    async def close(self, user: User, view: View, *, is_clearing: bool = False) -> Outcome:
        """Closes a modal, or with `is_clearing` all of them."""
        stack = self._workspace.stacks.get(user.id, [])
        gone = list(stack) if is_clearing else [view]
        for one in gone:
            if one in stack:
                stack.remove(one)
        self._workspace.views_changed(user.id)
        outcome = Outcome()
        for one in gone:
            if one.body.get("notify_on_close"):
                payload = payloads.view_closed(
                    self._workspace, user=user, view=one, is_cleared=is_clearing
                )
                outcome = Outcome.of(
                    await self._courier.ask(Kind.INTERACTIVE, "view_closed", payload)
                )
        return outcome

    def _after_submission(self, user: User, view: View, body: Any) -> Outcome:
        stack = self._workspace.stacks.get(user.id, [])
        if body in (None, "", {}):
            if view in stack:
                stack.remove(view)
            self._workspace.views_changed(user.id)
            return Outcome()
        action = body.get("response_action") if isinstance(body, dict) else None
        try:
            match action:
                case "errors":
                    return _input_errors(view, body.get("errors"))
                case "update":
                    replace_view(self._services, view, modal_body(body.get("view")))
                case "push":
                    new = modal_body(body.get("view"))
                    add_modal(self._services, user.id, new, channel=view.channel, on_top=True)
                case "clear":
                    stack.clear()
                    self._workspace.views_changed(user.id)
                case _:
                    return Outcome(error="trouble_connecting", detail=_TROUBLE)
        except ApiError as error:
            return Outcome(error="trouble_connecting", detail=f"{_TROUBLE} ({error.code})")
        return Outcome()

    def _response_urls(self, user: User, view: View, state: Json) -> list[Json]:
        urls: list[Json] = []
        for element in block_kit.elements(view.body["blocks"]):
            if element.body.get("response_url_enabled"):
                value = state.get(element.block_id, {}).get(element.action_id, {})
                channel = value.get("selected_conversation") or value.get("selected_channel")
                if channel in self._workspace.channels:
                    origin = self._services.tickets.response_url(user.id, channel)
                    urls.append(
                        {
                            "block_id": element.block_id,
                            "action_id": element.action_id,
                            "channel_id": channel,
                            "response_url": f"{self._workspace.base_url}/response/{origin.id}",
                        }
                    )
        return urls


def _input_errors(view: View, errors: Any) -> Outcome:
    inputs = {block["block_id"] for block in view.body["blocks"] if block["type"] == "input"}
    if not isinstance(errors, dict) or not errors or not errors.keys() <= inputs:
        return Outcome(
            error="trouble_connecting", detail=f"{_TROUBLE} (errors must name input blocks)"
        )
    return Outcome(errors={str(key): str(value) for key, value in errors.items()})
