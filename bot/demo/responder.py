"""A responder at work in one incident's thread: reads messages, presses buttons, fills in forms."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from bot.errors import DeliveryError, Reason
from bot.workspace.client import Button, Person, SeenMessage, WorkspaceClient

_POLL_SECONDS = 0.5
_STEPS = 6
_ANSWER_SECONDS = 60.0
_FORM_TRIES = 3
_FORM_SECONDS = 10.0


class Responder:
    """One person in one incident. What they decide on, they read in the report as it stands.

    channel, thread_ts: where the incident's thread is.
    """

    def __init__(
        self,
        workspace: WorkspaceClient,
        user: str,
        *,
        incident: str,
        channel: str,
        thread_ts: str,
        read_report: Callable[[str], Any],
    ) -> None:
        self.incident = incident
        self._workspace = workspace
        self._person: Person = workspace.person(user)
        self._channel = channel
        self._thread_ts = thread_ts
        self._read_report = read_report

    async def thread(self) -> list[SeenMessage]:
        """The thread as they see it, oldest first."""
        return await self._person.thread(self._channel, self._thread_ts)

    async def say(self, text: str) -> None:
        """Writes into the thread."""
        await self._person.say(self._channel, text, thread_ts=self._thread_ts)

    async def wait_for_step(self, number: int, seconds: float = _ANSWER_SECONDS) -> SeenMessage:
        """The newest prompt of a step; the card at the top of the thread names the step too, and is none."""
        mark = f"{number}/{_STEPS} "

        def is_prompt(message: SeenMessage) -> bool:
            return message.is_reply and mark in message.all_text and bool(message.buttons)

        await self._person.wait_for(
            is_prompt, seconds, channel=self._channel, thread_ts=self._thread_ts
        )
        return [message for message in await self.thread() if is_prompt(message)][-1]

    async def find_button(
        self, action_id: str, seconds: float = _ANSWER_SECONDS
    ) -> tuple[SeenMessage, Button]:
        """The newest message of the thread with such a button."""
        await self._person.wait_for(
            lambda message: message.button(action_id) is not None,
            seconds,
            channel=self._channel,
            thread_ts=self._thread_ts,
        )
        found = [message for message in await self.thread() if message.button(action_id)][-1]
        button = found.button(action_id)
        assert button is not None  # noqa: S101 - it was just looked for
        return found, button

    async def press(self, action_id: str, message: SeenMessage | None = None) -> None:
        """Presses a button: that of `message`, else the newest in the thread.

        Raises:
            DeliveryError: there is none, or the bot did not take the press.
        """
        if message is None:
            message, button = await self.find_button(action_id)
        elif (given := message.button(action_id)) is not None:
            button = given
        else:
            raise DeliveryError(
                f"the message has no button {action_id}: {message.text[:80]}",
                reason=Reason.NOT_FOUND,
            )
        done = await self._person.click(
            self._channel, message.ts, action_id, button.value, block_id=button.block_id
        )
        if not done.is_good:
            raise DeliveryError(f"{action_id} was not taken: {done.error}", reason=Reason.REFUSED)

    async def fill_in(
        self, action_id: str, message: SeenMessage, form: str, answers: Mapping[str, Any]
    ) -> None:
        """Presses the button that opens a form, and sends the form.

        A press opens nothing when the bot took longer than Slack lets a trigger live; people press again then.

        Raises:
            DeliveryError: it did not open, or an answer was refused.
        """
        for tries_left in reversed(range(_FORM_TRIES)):
            await self.press(action_id, message)
            try:
                await self._person.wait_for_view(
                    lambda view: view.get("callback_id") == form, _FORM_SECONDS
                )
            except DeliveryError:
                if not tries_left:
                    raise
            else:
                break
        done = await self._person.submit(answers)
        if not done.is_good or done.errors:
            raise DeliveryError(
                f"the form {form} was not taken: {done.error or dict(done.errors)}",
                reason=Reason.REFUSED,
            )

    async def go_on(self, number: int) -> SeenMessage:
        """Leaves a step by its button and gives the next step's prompt.

        Raises:
            DeliveryError: the gate stays closed; the message says what the bot asked for.
        """
        prompt = await self.wait_for_step(number)
        before = {message.ts for message in await self.thread()}
        await self.press("rca.step.next", prompt)
        mark = f"{number + 1}/{_STEPS} "
        try:
            return await self._person.wait_for(
                lambda message: (
                    message.ts not in before and mark in message.all_text and bool(message.buttons)
                ),
                _ANSWER_SECONDS,
                channel=self._channel,
                thread_ts=self._thread_ts,
            )
        except DeliveryError as error:
            said = [m.text for m in await self.thread() if m.ts not in before]
            raise DeliveryError(
                f"step {number} was not left; the bot said: {' | '.join(said)[-300:] or 'nothing'}",
                reason=Reason.CONFLICT,
            ) from error

    async def wait_report(
        self, what: str, holds: Callable[[dict[str, Any]], bool], seconds: float = _ANSWER_SECONDS
    ) -> dict[str, Any]:
        """The report, once it says what is waited for.

        Raises:
            DeliveryError: it did not in time.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                report: dict[str, Any] = await self._read_report(self.incident)
            except httpx.HTTPError:
                report = {}
            if report and holds(report):
                return report
            await asyncio.sleep(_POLL_SECONDS)
        last = (await self.thread())[-1:]
        text = last[0].text[:160].replace("\n", " ") if last else ""
        raise DeliveryError(
            f"{self.incident}: {what} did not come within {seconds:g} s; the last message was: {text}",
            reason=Reason.TIMEOUT,
        )
