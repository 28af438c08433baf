"""Follow-ups, notes and storms as the channel sees them: through the real poster and the schema."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from bot.settings import FollowupSettings
from tests.slack.conftest import CHANNEL, Stage, staged
from tests.web.door import payload

OFF = {"unacknowledged_s": 0, "step_idle_s": 0, "source_back_s": 0}


async def deliver(stage: Stage, sender: str, body: object) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.post(
            f"http://127.0.0.1:{stage.settings.port}/webhooks/{sender}",
            json=body,
            headers={"Authorization": "Bearer hook"},
        )
    assert answer.status_code == 200, answer.text


async def anchor(stage: Stage, words: str) -> str:
    seen = await stage.client.wait_for(
        # The channel's pace is a message a second, and a storm's first ten groups have several each.
        lambda m: words in m.all_text and not m.is_reply and m.only_for is None,
        60,
        channel=CHANNEL,
    )
    return seen.ts


async def test_nobody_takes_it_on_and_the_group_is_called_with_buttons(
    redis_url: str, tmp_path: Path
) -> None:
    soon = FollowupSettings(**{**OFF, "unacknowledged_s": 0.3})
    more = {"followup": soon, "on_call_group": "S0ONCALL", "alert_channel": CHANNEL}
    async with staged(redis_url, tmp_path, **more) as stage:
        await deliver(stage, "alertmanager", payload("pair_first.json"))
        thread = await anchor(stage, "INC-1")
        reminder = await stage.reply(thread, lambda m: "<!subteam^S0ONCALL>" in m.all_text)
        assert reminder.button("rca.followup.snooze") is not None
        assert reminder.button("rca.followup.stop") is not None
        assert reminder.blocks, "the schema refused the message"


async def test_left_out_alerts_and_broken_templates_are_said_in_the_thread(
    redis_url: str, tmp_path: Path
) -> None:
    more = {"followup": FollowupSettings(**OFF), "alert_channel": CHANNEL}
    async with staged(redis_url, tmp_path, **more) as stage:
        await deliver(stage, "alertmanager", payload("truncated.json"))
        thread = await anchor(stage, "39 alerts, 2 delivered")
        await stage.reply(thread, lambda m: "of which 2 were delivered" in m.all_text)
        await deliver(stage, "alertmanager", payload("broken_templates.json"))
        second = await anchor(stage, "INC-2")
        note = await stage.reply(second, lambda m: "template failed in" in m.all_text)
        assert "summary" in note.all_text


async def test_a_storm_has_eleven_messages_in_the_channel_and_its_list_in_one_thread(
    redis_url: str, tmp_path: Path
) -> None:
    more = {"followup": FollowupSettings(**OFF), "alert_channel": CHANNEL}
    async with staged(redis_url, tmp_path, **more) as stage:
        base = payload("pair_first.json")

        def body(number: int) -> dict[str, object]:
            alerts = [
                {
                    **base["alerts"][0],
                    "fingerprint": f"f{number}",
                    "labels": {"alertname": "A", "n": str(number)},
                }
            ]
            labels = {"alertname": "A", "n": str(number)}
            return {**base, "groupKey": f"g{number}", "alerts": alerts, "commonLabels": labels}

        await asyncio.gather(*(deliver(stage, "alertmanager", body(n)) for n in range(25)))
        storm = await anchor(stage, "Alert storm")
        listing = await stage.client.wait_for(
            lambda m: m.is_reply and "15 alert groups joined" in m.all_text,
            60,
            channel=CHANNEL,
            thread_ts=storm,
        )
        assert listing.all_text.count("INC-") >= 15
        roots = [m for m in await stage.lead.history(CHANNEL) if m.bot_id == "B0RCABOT"]
        assert len(roots) == 11
