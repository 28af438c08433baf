"""The report in Slack: its buttons by how far it is taken, the form in which people write, and what each press does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot.command import Call, Permission, allowed
from bot.domain.incident import Incident
from bot.domain.postmortem import REQUIRED_TOPICS, JudgementTopic, ReportState
from bot.domain.text import Locale, Localized, listed
from bot.errors import CommandError, Reason
from bot.incidents.responding import Via
from bot.incidents.reviewing import Reviewing
from bot.jobs import outbox
from bot.jobs.reporting import draft_of
from bot.jobs.services import Services
from bot.locales import say
from bot.message import Button, Message
from bot.slack.text import cut
from commands._may import refused

Json = dict[str, Any]

EDIT = "rca_report_edit"
_CLAIM = "claim:"
_MOST_CLAIMS = 10
_MOST_LETTERS = 3000
"""Of one answer: what a text input takes."""


def report_buttons(incident: Incident) -> dict[str, tuple[Button, ...]]:
    """What can be done with the report as it stands."""
    edit = Button(action_id="rca.report.edit", label=say("review.button_edit"))
    item = Button(action_id="rca.action_item", label=say("slack.button_action_item"))
    back = Button(action_id="rca.report.reopen", label=say("review.button_reopen"))
    match incident.report_state:
        case ReportState.FINAL:
            return {"": (back,)}
        case ReportState.REVIEWED:
            final = Button(
                action_id="rca.report.final", label=say("review.button_final"), style="primary"
            )
            return {"": (final, edit, item, back)}
        case _:
            review = Button(action_id="rca.report.review", label=say("review.button_review"))
            return {"": (edit, review, item)}


async def begins_with(services: Services, incident_id: str) -> dict[str, str]:
    """What the form starts with: the words that stand, and which claims lack evidence (JSON, under `claims`)."""
    report = await draft_of(services, incident_id)
    given = {
        item.topic.value: item.answer.in_locale(report.header.locale)
        for item in report.judgements
        if item.answer is not None
    }
    given["claims"] = json.dumps(list(report.unsupported[:_MOST_CLAIMS]))
    return given


def blocks(locale: Locale, given: Mapping[str, str]) -> list[Json]:
    """An input for each section of people, the required ones first, then one for each claim without evidence."""
    topics = sorted(JudgementTopic, key=lambda topic: topic not in REQUIRED_TOPICS)
    made = [_question(topic, locale, given.get(topic.value, "")) for topic in topics]
    claims = json.loads(given.get("claims") or "[]")
    return made + [_claim(str(claim), locale) for claim in claims]


def _claim(claim: str, locale: Locale) -> Json:
    return {
        "type": "input",
        "block_id": cut(f"{_CLAIM}{claim}", 255),
        "optional": True,
        "label": _plain(say("review.form_claim", claim=claim), locale, 2000),
        "hint": _plain(say("review.form_claim_hint"), locale, 2000),
        "element": {
            "type": "plain_text_input",
            "action_id": "value",
            "multiline": False,
            "max_length": 300,
        },
    }


def _question(topic: JudgementTopic, locale: Locale, answer: str) -> Json:
    question = say(f"report.judgement.{topic.value}")
    if topic not in REQUIRED_TOPICS:
        question = say("review.form_optional", question=question)
    element: Json = {
        "type": "plain_text_input",
        "action_id": "value",
        "multiline": True,
        "max_length": _MOST_LETTERS,
    }
    if answer:
        element["initial_value"] = cut(answer, _MOST_LETTERS)
    return {
        "type": "input",
        "block_id": topic.value,
        # Empty is an answer too: nobody has to write all of it at once.
        "optional": True,
        "label": _plain(question, locale, 2000),
        "element": element,
    }


def _plain(text: Localized, locale: Locale, most: int) -> Json:
    return {"type": "plain_text", "text": cut(text.in_locale(locale), most), "emoji": True}


class ReportSteps:
    """What the presses below a report do."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._reviewing = Reviewing(services.responding)

    async def take(self, call: Call, incident_id: str, what: str) -> Localized:
        """Reviews, releases or takes back the report, and tells the thread.

        Raises:
            CommandError: it cannot be done; the text says why.
        """
        self._ask_policy(call)
        via = _via(call)
        match what:
            case "report_review":
                recorded = await self._reviewing.review(incident_id, via)
                told = say("review.now_reviewed", incident=incident_id)
            case "report_final":
                report = await draft_of(self._services, incident_id)
                recorded = await self._reviewing.finalise(incident_id, via, report)
                told = say("review.now_final", incident=incident_id)
            case _:
                recorded = await self._reviewing.reopen(incident_id, via)
                told = say("review.now_draft", incident=incident_id)
        await self._tell_thread(recorded.incident, told, call)
        return told

    async def edited(self, call: Call) -> Localized:
        """Keeps what the form says; only what differs from what it began with was changed by this person."""
        if call.incident is None:
            return say("commands.no_incident")
        given: Mapping[str, Any] = call.payload
        before: Mapping[str, Any] = given.get("before") or {}
        texts = {
            topic: new
            for topic in JudgementTopic
            if (new := _settled(given.get(topic.value))) != _settled(before.get(topic.value))
        }
        evidence = {
            key.removeprefix(_CLAIM): tuple(str(value).replace(",", " ").replace("，", " ").split())
            for key, value in given.items()
            if key.startswith(_CLAIM) and str(value).strip()
        }
        if not texts and not evidence:
            return say("review.nothing_changed")
        try:
            recorded = await self._reviewing.edit(
                call.incident, _via(call), texts=texts, evidence=evidence
            )
        except CommandError as error:
            return error.text
        names = [say(f"report.judgement.short_{topic.value}") for topic in texts]
        names += [Localized.verbatim(claim) for claim in evidence]
        told = say("review.edited", changed=listed(names))
        await self._tell_thread(recorded.incident, told, call)
        return told

    def _ask_policy(self, call: Call) -> None:
        if not allowed(self._services.settings.policy, call.user, Permission.REVIEW):
            raise CommandError(
                refused(self._services.settings.policy, Permission.REVIEW),
                reason=Reason.UNAUTHORISED,
            )

    async def _tell_thread(self, incident: Incident, text: Localized, call: Call) -> None:
        message = Message(
            view="report_state",
            context={"text": text.to_json(), "by": call.user, "state": incident.report_state},
        )
        post = outbox.thread_post(incident, message)
        await self._services.outbox.send(post, once=f"{call.key}:report_state")
        self._services.wake()


def _settled(value: object) -> str:
    return str(value or "").replace("\r\n", "\n").strip()


def _via(call: Call) -> Via:
    return Via(by=call.user, at=call.at, key=call.key)
