"""A follow-up can be snoozed and stopped from the message itself, and both are in the record."""

from __future__ import annotations

import pytest

from bot.domain.text import Localized
from bot.domain.timeline import EntryKind
from bot.jobs import outbox
from bot.message import Button, Message
from tests.slack.conftest import CHANNEL, Stage


async def _remind(stage: Stage, thread: str, followup: str) -> str:
    """Shows a reminder as the follow-ups do, and gives its ts."""
    buttons = tuple(
        Button(
            action_id=f"rca.followup.{what}",
            label=Localized.verbatim(what),
            payload={"incident": "INC-1", "followup": followup},
        )
        for what in ("snooze", "stop")
    )
    text = Localized.verbatim("step 1 is idle").to_json()
    message = Message(view="followup_due", context={"text": text}, buttons=buttons)
    job = outbox.thread_post(await stage.incident(), message)
    await stage.bot.services.outbox.send(job, once=f"remind:{followup}")
    return (await stage.reply(thread, lambda m: "is idle" in m.all_text)).ts


@pytest.mark.parametrize(
    ("press", "op", "words"),
    [("snooze", "snoozed", "Quiet until"), ("stop", "stopped", "No more reminders")],
)
async def test_followup_button_quiets_its_kind_in_this_incident(
    stage: Stage, press: str, op: str, words: str
) -> None:
    ts = await _remind(stage, await stage.start(), "step_idle")
    assert (await stage.sre.click(CHANNEL, ts, f"rca.followup.{press}")).is_good
    await stage.whispered(stage.sre, words)
    entry = await stage.entry(lambda e: e.kind is EntryKind.FOLLOWUP and e.op == op)
    assert entry.author == "U0SRE"
    state = (await stage.incident()).followups["step_idle"]
    assert state.is_stopped == (press == "stop")
    assert (state.snoozed_until is not None) == (press == "snooze")


async def test_followup_of_an_unknown_name_is_answered_and_changes_nothing(stage: Stage) -> None:
    ts = await _remind(stage, await stage.start(), "no_such_kind")
    await stage.sre.click(CHANNEL, ts, "rca.followup.stop")
    await stage.whispered(stage.sre, "There is no follow-up of this name")
    assert not (await stage.incident()).followups
