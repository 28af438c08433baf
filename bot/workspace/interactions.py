"""What people do with the app: commands, presses, shortcuts, and what the app's answer does to the screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.workspace import blocks as block_kit
from bot.workspace import payloads, responses
from bot.workspace.composer import as_command
from bot.workspace.delivery import Courier, Kind
from bot.workspace.outcome import Outcome, shown_error
from bot.workspace.records import Channel, Message, User, View
from bot.workspace.services import Services
from bot.workspace.tickets import ResponseUrl

_SUGGESTIONS = 100


class Interactions:
    """People's hands on the app."""

    def __init__(self, services: Services, courier: Courier) -> None:
        self._services = services
        self._workspace = services.workspace
        self._courier = courier

    async def command(
        self, user: User, channel: Channel, line: str, *, thread_ts: str | None = None
    ) -> Outcome:
        """A line that begins with a slash. Slack takes none in a thread."""
        # Any white space ends the command: an input method of Chinese types the wide one.
        command, text = [*line.split(maxsplit=1), "", ""][:2]
        if command not in self._services.config.commands:
            return self._complain(
                user, channel, "invalid_command", f"`{command}` is not a valid command."
            )
        if thread_ts is not None:
            return self._complain(
                user,
                channel,
                "not_in_thread",
                f"`{command}` is not supported in threads. Sorry!",
                thread_ts=thread_ts,
            )
        origin = self._services.tickets.response_url(user.id, channel.id)
        payload = payloads.slash_command(
            self._workspace,
            user=user,
            channel=channel,
            command=command,
            text=as_command(self._workspace, text.strip()),
            response_url=self._url(origin),
            trigger_id=self._services.tickets.trigger(user.id, channel=channel.id),
        )
        ack = await self._courier.ask(Kind.COMMAND, command, payload)
        if not ack.is_good:
            error = shown_error(ack)
            return self._complain(
                user, channel, error, f"{command} failed with the error “{error}”"
            )
        body = {"text": ack.body} if isinstance(ack.body, str) else ack.body
        if isinstance(body, dict) and body:
            try:
                responses.show(self._services, origin, body)
            except responses.ResponseRefusedError as refusal:
                return self._complain(
                    user, channel, "dispatch_failed", f"{command} failed with the error “{refusal}”"
                )
        return Outcome()

    async def act_on_message(
        self,
        user: User,
        message: Message,
        action_id: str,
        *,
        block_id: str | None = None,
        value: Any = None,
        answers: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Presses or chooses in a message.

        value: for a button, tells apart several with one action_id; for anything else, what is chosen.
        answers: what the person has put into the message's other inputs.

        Raises:
            ChoiceError: nothing there fits.
        """
        found = list(block_kit.elements(message.blocks, message.attachments))
        element = block_kit.find(found, action_id, block_id=block_id, value=value)
        state, _ = block_kit.state_values(message.blocks, answers or {})
        chosen = block_kit.chosen(element, value)
        if element.kind not in ("button", "overflow"):
            state.setdefault(element.block_id, {})[element.action_id] = {
                "type": element.kind,
                **chosen,
            }
        origin = self._services.tickets.response_url(
            user.id,
            message.channel,
            message_ts=message.ts,
            thread_ts=message.thread_ts if message.is_reply else None,
        )
        payload = payloads.block_actions(
            self._workspace,
            user=user,
            actions=[payloads.action(element, chosen, self._workspace.timestamp())],
            trigger_id=self._services.tickets.trigger(user.id, channel=message.channel),
            state=state,
            message=message,
            response_url=self._url(origin),
        )
        return Outcome.of(await self._courier.ask(Kind.INTERACTIVE, "block_actions", payload))

    async def act_in_view(
        self,
        user: User,
        view: View,
        action_id: str,
        *,
        block_id: str | None = None,
        value: Any = None,
        answers: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Presses or chooses in a modal or the Home tab.

        Raises:
            ChoiceError: nothing there fits.
        """
        blocks = view.body["blocks"]
        found = list(block_kit.elements(blocks))
        element = block_kit.find(found, action_id, block_id=block_id, value=value)
        chosen = block_kit.chosen(element, value)
        given = dict(answers or {})
        if element.kind not in ("button", "overflow"):
            given[f"{element.block_id}/{element.action_id}"] = value
        state, _ = block_kit.state_values(blocks, given)
        payload = payloads.block_actions(
            self._workspace,
            user=user,
            actions=[payloads.action(element, chosen, self._workspace.timestamp())],
            trigger_id=self._services.tickets.trigger(user.id, view_id=view.id),
            state=state,
            view=view,
        )
        return Outcome.of(await self._courier.ask(Kind.INTERACTIVE, "block_actions", payload))

    async def suggest(
        self,
        user: User,
        action_id: str,
        typed: str,
        *,
        block_id: str | None = None,
        message: Message | None = None,
        view: View | None = None,
    ) -> Outcome:
        """Types into a select whose options the app supplies. More than a hundred options give none, as in Slack.

        Raises:
            ChoiceError: there is no such select.
        """
        blocks = message.blocks if message else view.body["blocks"] if view else []
        element = block_kit.find(list(block_kit.elements(blocks)), action_id, block_id=block_id)
        payload = payloads.block_suggestion(
            self._workspace, user=user, element=element, typed=typed, message=message, view=view
        )
        ack = await self._courier.ask(Kind.INTERACTIVE, "block_suggestion", payload)
        if not ack.is_good:
            return Outcome.of(ack)
        body = ack.body if isinstance(ack.body, dict) else {}
        groups = body.get("option_groups") or []
        options = [*(body.get("options") or []), *(o for g in groups for o in g["options"])]
        return Outcome(options=tuple(options) if len(options) <= _SUGGESTIONS else ())

    async def shortcut(self, user: User, message: Message, callback_id: str) -> Outcome:
        """Uses a message shortcut."""
        thread_ts = message.thread_ts if message.is_reply else None
        origin = self._services.tickets.response_url(user.id, message.channel, thread_ts=thread_ts)
        payload = payloads.message_action(
            self._workspace,
            user=user,
            message=message,
            callback_id=callback_id,
            trigger_id=self._services.tickets.trigger(user.id, channel=message.channel),
            response_url=self._url(origin),
            action_ts=self._workspace.timestamp(),
        )
        return Outcome.of(await self._courier.ask(Kind.INTERACTIVE, "message_action", payload))

    def _url(self, origin: ResponseUrl) -> str:
        return f"{self._workspace.base_url}/response/{origin.id}"

    def _complain(
        self,
        user: User,
        channel: Channel,
        error: str,
        text: str,
        *,
        thread_ts: str | None = None,
    ) -> Outcome:
        self._workspace.post_ephemeral(
            Message(
                channel=channel.id,
                ts=self._workspace.timestamp(),
                text=text,
                user="USLACKBOT",
                thread_ts=thread_ts,
                only_for=user.id,
            )
        )
        return Outcome(error=error, detail=text)
