"""Reads the body of a control call and finds what it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from bot.workspace.records import Channel, Json, Message, User, View
from bot.workspace.state import Workspace


class ControlError(ValueError):
    """A control call that cannot be done; the text says why."""


class ControlBody:
    """The JSON object of a control call."""

    def __init__(self, workspace: Workspace, body: Mapping[str, Any]) -> None:
        self._workspace = workspace
        self._body = body

    @classmethod
    async def of(cls, workspace: Workspace, request: Request) -> ControlBody:
        """Reads the request. Only JSON is taken: another site's page cannot send that here unasked.

        Raises:
            ControlError: not a JSON object.
        """
        if "application/json" not in request.headers.get("content-type", ""):
            raise ControlError("send JSON with Content-Type: application/json")
        try:
            body = json.loads(await request.body() or b"{}")
        except ValueError as error:
            raise ControlError(f"the body is no JSON: {error}") from error
        if not isinstance(body, dict):
            raise ControlError("the body must be an object")
        return cls(workspace, body)

    def get(self, name: str, default: Any = None) -> Any:
        """A value as it was sent."""
        return self._body.get(name, default)

    def text(self, name: str) -> str:
        """A text that must be there.

        Raises:
            ControlError: it is not.
        """
        value = self._body.get(name)
        if not isinstance(value, str) or not value:
            raise ControlError(f"{name!r} is missing or no text")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, None when absent or empty."""
        return self.text(name) if self._body.get(name) else None

    def seconds(self, name: str) -> float:
        """A number of seconds.

        Raises:
            ControlError: it is none.
        """
        value = self._body.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ControlError(f"{name!r} is missing or no number")
        return float(value)

    def user(self) -> User:
        """The person who acts, by id or name.

        Raises:
            ControlError: nobody.
        """
        wanted = self.text("user")
        for user in self._workspace.users.values():
            if wanted in (user.id, user.name):
                return user
        raise ControlError(f"no user {wanted!r}; there are: {', '.join(self._workspace.users)}")

    def channel(self) -> Channel:
        """A channel by id or name.

        Raises:
            ControlError: none.
        """
        wanted = self.text("channel")
        channel = self._workspace.find_channel(wanted)
        if channel is None:
            known = ", ".join(self._workspace.channels)
            raise ControlError(f"no channel {wanted!r}; there are: {known}")
        return channel

    def message(self) -> Message:
        """A message by channel and ts.

        Raises:
            ControlError: none.
        """
        channel, ts = self.channel(), self.text("ts")
        message = self._workspace.message(channel.id, ts)
        if message is None:
            raise ControlError(f"no message {ts} in {channel.id}")
        return message

    def view(self, user: User) -> View:
        """One of the person's modals or their Home tab, by id; the top modal where none is named.

        Raises:
            ControlError: none.
        """
        wanted = self.optional_text("view_id")
        stack = self._workspace.stacks.get(user.id, [])
        home = self._workspace.homes.get(user.id)
        if wanted is None and stack:
            return stack[-1]
        for view in [*stack, *([home] if home else [])]:
            if view.id == wanted:
                return view
        raise ControlError(f"{user.id} has no view {wanted or 'open'!r}")

    def answers(self) -> Json:
        """What was put into inputs, by action_id, block_id or `block_id/action_id`."""
        answers = self._body.get("values") or {}
        if not isinstance(answers, dict):
            raise ControlError("'values' must be an object")
        return answers
