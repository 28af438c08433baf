"""What goes out, as the channel sees it: how much is said, and in which order, whatever Slack's limits do."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.domain.text import Localized
from bot.jobs import outbox
from bot.message import Message
from bot.settings import ChannelSettings, FollowupSettings
from tests.jobs.test_followups_in_slack import OFF, anchor, deliver
from tests.slack.conftest import CHANNEL, staged

SAID = 8


def notification(*states: str) -> dict[str, object]:
    """One group with an alert of each state."""
    return {
        "version": "4",
        "groupKey": "g",
        "alerts": [
            {
                "status": state,
                "labels": {"alertname": f"A{n}", "service": "translate-api"},
                "annotations": {"summary": f"queue of pod {n} is long"},
                "startsAt": "2026-03-04T01:10:00Z",
                "endsAt": "2026-03-04T01:20:00Z",
                "fingerprint": f"f{n}",
            }
            for n, state in enumerate(states)
        ],
    }


@pytest.mark.parametrize(
    ("verbosity", "tells_sources", "tells_alerts"),
    [("quiet", False, False), ("normal", True, False), ("chatty", True, True)],
)
async def test_a_channels_verbosity_decides_what_is_said_unasked(
    redis_url: str, tmp_path: Path, verbosity: str, tells_sources: bool, tells_alerts: bool
) -> None:
    more = {
        "followup": FollowupSettings(**OFF),
        "alert_channel": CHANNEL,
        "channels": (ChannelSettings(id=CHANNEL, verbosity=verbosity),),
    }
    async with staged(redis_url, tmp_path, **more) as stage:
        await deliver(stage, "alertmanager", notification("firing", "firing"))
        thread = await anchor(stage, "INC-1")
        await stage.reply(thread, lambda m: "most likely first" in m.all_text)
        await deliver(stage, "alertmanager", notification("firing", "resolved", "firing"))
        await stage.calm()
        said = [m.all_text for m in await stage.lead.thread(CHANNEL, thread)]
        card, replies = said[0], "\n".join(said[1:])
        assert "1/6" in replies
        assert ("*Evidence" in replies or "Metrics" in replies) is tells_sources, replies
        assert ("queue of pod 2 is long" in replies) is tells_alerts, replies
        assert "2 firing, 1 over" in card
        # Nothing is lost by not being said.
        kinds = [entry.kind.value for entry in await stage.entries()]
        assert kinds.count("alert") == 4


async def test_a_thread_keeps_its_order_under_slacks_limits_faults_and_another_thread(
    redis_url: str, tmp_path: Path
) -> None:
    more = {"followup": FollowupSettings(**OFF), "workspace": {"is_rate_limited": True}}
    async with staged(redis_url, tmp_path, **more) as stage:
        thread = await stage.start()
        assert (await stage.lead.command(CHANNEL, "/rca start sev3 another")).is_good
        await stage.client.inject(
            "error", "chat.postMessage", times=1, error="ratelimited", retry_after_s=1
        )
        incident = await stage.incident()
        for number in range(SAID):
            text = Localized.verbatim(f"line {number}")
            job = outbox.thread_post(
                incident, Message(view="notice", context={"text": text.to_json()})
            )
            await stage.bot.services.outbox.send(job, once=f"n{number}")
            if number == SAID // 2:
                await stage.client.inject("lost_answer", "chat.postMessage", times=1)
        await stage.client.wait_for(
            lambda m: m.all_text == f"line {SAID - 1}", channel=CHANNEL, thread_ts=thread
        )
        lines = [
            m.all_text
            for m in await stage.lead.thread(CHANNEL, thread)
            if m.all_text.startswith("line ")
        ]
        assert lines == [f"line {number}" for number in range(SAID)]
