"""Buttons, forms and the message shortcut: each becomes a word, or a small step of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from bot.command import Call
from bot.domain.incident import Incident
from bot.domain.text import Locale, Localized
from bot.errors import CommandError, DeliveryError
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Message
from bot.slack import checks, forms, report_form
from bot.slack.capture import Capture
from bot.slack.directory import remembered_locale
from bot.slack.dispatch import Dispatcher, private
from bot.slack.gate import Actor, Door, Gate
from bot.slack.home import refresh
from bot.slack.presses import MEANINGS, Ask, Do, Say, spoken
from bot.slack.reading import Json, text_of
from bot.slack.report_form import ReportSteps
from bot.slack.small_steps import SmallSteps
from bot.slack.text import cut, plain
from bot.slack.web import QUICK_SECONDS, SlackRefusalError, Web
from bot.store import surface
from bot.store.queue import Job

log = structlog.get_logger(__name__)

START_HERE = "rca_start_here"


class Interactions:
    """What people press and fill in."""

    def __init__(
        self,
        services: Services,
        web: Web,
        capture: Capture,
        dispatcher: Dispatcher,
        gate: Gate,
    ) -> None:
        self._gate = gate
        self._services = services
        self._web = web
        self._capture = capture
        self._dispatcher = dispatcher
        self._steps = SmallSteps(services)
        self._reports = ReportSteps(services)

    async def pressed(self, body: Json, key: str) -> None:
        """A button. Its value is an opaque id; what that means is stored here and nowhere else."""
        if self._is_foreign(body):
            # In a shared channel everybody sees the buttons; who may press them is our own rule.
            url = str(body.get("response_url") or "") or None
            call = self._call(body, key, "", "", None)
            await self._tell(call, say("slack.foreign"), key, url)
            return
        for place, action in enumerate(body.get("actions") or ()):
            await self._press(body, action, f"{key}:{place}")
        if _is_at_home(body):
            await self._show_home(str((body.get("user") or {}).get("id") or ""))

    def _is_foreign(self, body: Json) -> bool:
        own = self._capture.team
        theirs = (body.get("user") or {}).get("team_id")
        return bool(own and theirs and own != theirs)

    async def _press(self, body: Json, action: Json, key: str) -> None:
        action_id = str(action.get("action_id") or "")
        meaning = MEANINGS.get(action_id)
        held = await surface.button(self._services.store, str(action.get("value") or ""))
        if action.get("type") != "button":
            # A choice inside a form: it is read when the form is sent.
            return
        if meaning is None or held is None or held.get("action") != action_id:
            await self._tell(self._call(body, key, "", "", None), say("slack.outdated"), key)
            return
        incident = held.get("incident")
        payload = dict(held.get("payload") or {})
        call = self._call(body, key, "", "", str(incident) if incident else None, payload)
        url = str(body.get("response_url") or "") or None
        if await self._is_refused(Door.BUTTON, action_id, call, url):
            return
        match meaning:
            case Say(word=word, text=text):
                call = replace(await self._localised(call), word=word, text=text)
                await self._dispatcher.answer(call, url)
            case Ask():
                await self._ask(body, call, meaning, key)
            case Do(what=what):
                await self._do(await self._localised(call), what, url, key)

    async def _ask(self, body: Json, call: Call, ask: Ask, key: str) -> None:
        """Opens the form. A trigger lives three seconds, so nothing that waits for others stands before it."""
        locale, given = self._services.settings.locale_of(call.channel), {}
        if call.incident is not None:
            incident = (await self._services.journal.load(call.incident)).incident
            locale = incident.locale
            if ask.form == forms.SYMPTOM:
                given = _symptom_so_far(incident, locale)
            if ask.form in (checks.ANSWER, checks.EDIT):
                begun = checks.begins_with(ask.form, incident, call.payload)
                if begun is None:
                    await self._tell(call, say("slack.outdated"), key)
                    return
                given = begun
            if ask.form == report_form.EDIT:
                given = await report_form.begins_with(self._services, call.incident)
                call = replace(call, payload={**call.payload, "before": given})
        meaning = {
            "form": ask.form,
            "incident": call.incident,
            "channel": call.channel,
            "thread_ts": call.thread_ts,
            "word": ask.word,
            "text": ask.text,
            "payload": dict(call.payload),
            "home": _is_at_home(body),
        }
        await self._open(body, call, ask.form, meaning, locale, given, key)

    async def _open(
        self,
        body: Json,
        call: Call,
        form: str,
        meaning: Mapping[str, Any],
        locale: Locale,
        given: Mapping[str, str],
        key: str,
    ) -> None:
        # A form is one person's: in their language, as far as it is known without asking.
        locale = await remembered_locale(self._services.store, call.user, locale)
        text = json.dumps(meaning, sort_keys=True, ensure_ascii=False)
        opaque = hashlib.sha256(text.encode()).hexdigest()[:24]
        step = surface.remember_button(opaque, meaning)
        await self._services.store.commit(step, doing="store what a form means")
        view = forms.form(form, opaque, locale, **given)
        try:
            await self._web.call(
                "views.open",
                timeout_seconds=QUICK_SECONDS,
                trigger_id=str(body.get("trigger_id") or ""),
                view=view,
            )
        except DeliveryError as error:
            code = error.code if isinstance(error, SlackRefusalError) else error.reason.value
            log.warning("slack.form_not_opened", form=form, code=code)
            await self._tell(replace(call, locale=locale), say("slack.press_again"), key)

    async def submitted(self, body: Json, key: str) -> None:
        """A form was sent; it has been checked before it was acknowledged."""
        view: Json = body.get("view") or {}
        form = str(view.get("callback_id") or "")
        held = await surface.button(self._services.store, str(view.get("private_metadata") or ""))
        user = str((body.get("user") or {}).get("id") or "")
        if held is None or held.get("form") != form:
            log.warning("slack.unknown_form", form=form[:60])
            channel = str((held or {}).get("channel") or user)
            await self._tell(self._plain_call(user, channel, key), say("slack.outdated"), key)
            return
        said = spoken(form, held, forms.answers(view))
        incident = held.get("incident")
        call = Call(
            word=said.word,
            text=said.text,
            user=user,
            channel=str(held.get("channel") or user),
            thread_ts=held.get("thread_ts"),
            message_ts=None,
            incident=str(incident) if incident else None,
            key=key,
            at=self._services.clock(),
            locale=self._services.settings.locale_of(str(held.get("channel") or "")),
            payload=said.payload,
        )
        call = await self._localised(call)
        if await self._is_refused(Door.FORM, form, call):
            return
        match said.word:
            case "fix" | "action_item" as what:
                if told := await self._steps.record(call, what):
                    await self._tell(call, told, key)
            case "report_edit":
                await self._tell(call, await self._reports.edited(call), key)
            case _:
                await self._dispatcher.answer(call, None)
        if said.word == "start" and call.thread_ts is not None:
            await self._capture.backfill(call.channel, call.thread_ts)
        if held.get("home"):
            await self._show_home(user)

    async def shortcut(self, body: Json, key: str) -> None:
        """“Start RCA here” on any message: asks what and how bad, then opens on that message's thread."""
        message: Json = body.get("message") or {}
        channel = str((body.get("channel") or {}).get("id") or "")
        call = self._call(body, key, "start", "", None)
        if body.get("callback_id") != START_HERE or not channel:
            await self._tell(call, say("slack.outdated"), key)
            return
        if await self._is_refused(Door.SHORTCUT, START_HERE, call):
            return
        ts = str(body.get("message_ts") or message.get("ts") or "")
        thread_ts = str(message.get("thread_ts") or ts)
        words = " ".join(plain(text_of(message), {}).split())
        meaning: dict[str, Any] = {
            "form": forms.START,
            "incident": None,
            "channel": channel,
            "thread_ts": thread_ts,
            "word": "start",
            "text": "",
            "payload": {},
        }
        given = {"text": cut(words, 200)}
        locale = self._services.settings.locale_of(channel)
        await self._open(body, call, forms.START, meaning, locale, given, key)

    async def _do(self, call: Call, what: str, url: str | None, key: str) -> None:
        match what:
            case "choice":
                chosen = call.payload
                again = replace(
                    call,
                    word=str(chosen.get("word")),
                    text=str(chosen.get("text") or ""),
                    incident=str(chosen.get("incident")),
                    payload=dict(chosen.get("payload") or {}),
                )
                await self._dispatcher.answer(again, url)
                return
            case "approve":
                approval = {"approve": dict(call.payload)}
                await self._dispatcher.answer(replace(call, word="probe", payload=approval), url)
                return
        if call.incident is None:
            await self._tell(call, say("commands.no_incident"), key, url)
            return
        try:
            if what.startswith("report_"):
                told = await self._reports.take(call, call.incident, what)
            else:
                told = await self._steps.take(call, call.incident, what, key)
        except CommandError as error:
            told = error.text
        await self._tell(call, told, key, url)

    async def _is_refused(self, door: Door, name: str, call: Call, url: str | None = None) -> bool:
        refusal = await self._gate.refusal(door, name, Actor.of(call))
        if refusal is None:
            return False
        await self._tell(call, refusal, call.key, url)
        return True

    async def _show_home(self, user: str) -> None:
        """What was pressed in the Home tab is no longer waiting there."""
        step = refresh(user, self._services)
        await self._services.store.commit(step, doing="queue a Home tab")
        self._services.wake()

    async def _tell(self, call: Call, text: Localized, key: str, url: str | None = None) -> None:
        message = Message(view="notice", context={"text": text.to_json()})
        job: Job = private(call, message, url)
        await self._services.outbox.send(job, once=f"{key}:told")

    async def _localised(self, call: Call) -> Call:
        if call.incident is None:
            return call
        incident = (await self._services.journal.load(call.incident)).incident
        return replace(call, locale=incident.locale)

    def _call(
        self,
        body: Json,
        key: str,
        word: str,
        text: str,
        incident: str | None,
        payload: Mapping[str, Any] | None = None,
    ) -> Call:
        container: Json = body.get("container") or {}
        user = str((body.get("user") or {}).get("id") or "")
        channel = str((body.get("channel") or {}).get("id") or container.get("channel_id") or user)
        message: Json = body.get("message") or {}
        thread_ts = container.get("thread_ts") or message.get("thread_ts")
        return Call(
            word=word,
            text=text,
            user=user,
            channel=channel,
            thread_ts=str(thread_ts) if thread_ts else None,
            message_ts=None,
            incident=incident,
            key=key,
            at=self._services.clock(),
            locale=self._services.settings.locale_of(channel),
            payload=payload or {},
        )

    def _plain_call(self, user: str, channel: str, key: str) -> Call:
        return self._call({"user": {"id": user}, "channel": {"id": channel}}, key, "", "", None)


def _is_at_home(body: Json) -> bool:
    return (body.get("view") or {}).get("type") == "home"


def _symptom_so_far(incident: Incident, locale: Locale) -> dict[str, str]:
    newest = incident.symptoms[-1] if incident.symptoms else None
    scope = incident.scope
    proposed = ", ".join((*scope.nodes, *scope.replicas, *scope.models, *scope.tenants))
    return {
        "text": forms.words(newest.summary, locale) if newest else "",
        "scope": (newest.scope if newest and newest.scope else proposed) or "",
        "since": forms.utc(newest.since) if newest else "",
        "metric": (newest.metric or "") if newest else "",
    }
