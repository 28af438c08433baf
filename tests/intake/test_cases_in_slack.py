"""What people see of alerts as senders really write them: the thread, the list and the report."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest

from bot.settings import FollowupSettings
from tests.jobs.test_followups_in_slack import OFF, anchor, deliver
from tests.slack.conftest import CHANNEL, staged
from tests.waiting import PATIENCE_SECONDS
from tests.web.door import payload

MORE = {"followup": FollowupSettings(**OFF), "alert_channel": CHANNEL}
READ = {"Authorization": "Bearer hook", "Accept": "application/json"}


async def everything(stage, thread: str) -> str:
    await stage.calm()
    return "\n".join(m.all_text for m in await stage.lead.thread(CHANNEL, thread))


async def report(stage, incident: str, suffix: str = "md") -> str:
    url = f"http://127.0.0.1:{stage.settings.port}/incidents/{incident}/report.{suffix}"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        answer = await http.get(url, headers=READ)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_alerts_are_shown_with_their_own_state_their_labels_and_times(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **MORE, timezone="America/Los_Angeles") as stage:
        await deliver(stage, "alertmanager", payload("firing_and_resolved.json"))
        await deliver(stage, "alertmanager", payload("zero_time_and_offsets.json"))
        thread = await anchor(stage, "INC-1")
        said = await everything(stage, thread)
        # The label called `status` says the opposite and changes nothing.
        [over] = {
            line
            for line in said.split("\n")
            if "✅" in line and "atlas-chat-1" in line and "<" in line and "http" not in line
        }
        assert "2026-03-04 01:18:30 UTC" in over
        assert "after 8 m" in over
        assert "status=firing" in said
        assert "status=resolved" in said
        assert "after 15 m" in said or "after 14 m 59" in said
        markdown = await report(stage, "INC-1")
        for text in (said, markdown, await report(stage, "INC-1", "json")):
            assert "0001-01-01" not in text
            assert "None" not in text.replace("None of", "")
        roots = [m for m in await stage.lead.history(CHANNEL) if m.bot_id == "B0RCABOT"]
        assert len(roots) == 1


async def test_what_a_template_left_behind_is_shown_literally_and_is_no_link(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **MORE) as stage:
        await deliver(stage, "alertmanager", payload("broken_templates.json"))
        thread = await anchor(stage, "INC-1")
        said = await everything(stage, thread)
        for words in (
            "GPU [no value] on &lt;no value&gt; at {{ $value | humanizePercentage }}",
            "team={{ 7*7 }}",
            "owner={0._",
            "cost=%(pid)s %n",
        ):
            assert words in said, words
        assert not re.search(r"(?<![\d^])49(?!\d)", re.sub(r"<!date[^>]*>|\d\d:\d\d", "", said))
        assert "/rb/ttft|" not in said
        assert "template failed" in said
        markdown = await report(stage, "INC-1")
        assert "template failed" in markdown


async def test_a_truncated_group_says_how_many_there_are_on_card_thread_and_report(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **MORE) as stage:
        await deliver(stage, "alertmanager", payload("truncated.json"))
        thread = await anchor(stage, "39 alerts, of which 2 were delivered")
        said = await everything(stage, thread)
        assert "The sender reports 39 alerts, of which 2 were delivered" in said
        assert "not known yet" in said
        assert "39 alerts" in await report(stage, "INC-1")


async def test_pagerdutys_incident_recovers_and_nothing_says_none(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **MORE) as stage:
        for name in ("pagerduty_ping.json", "pagerduty_triggered.json", "pagerduty_resolved.json"):
            await deliver(stage, "pagerduty", payload(name))
        thread = await anchor(stage, "INC-1")
        said = await everything(stage, thread)
        assert "recovered" in said
        assert "None" not in said
        roots = [m for m in await stage.lead.history(CHANNEL) if m.bot_id == "B0RCABOT"]
        assert len(roots) == 1


def _about(said: str, gpu: str) -> str:
    """The line that tells the values of one alert."""
    [line] = {line for line in said.split("\n") if f"gpu {gpu}: " in line}
    return line.partition(": ")[2]


async def _roots(stage) -> list:
    return [m for m in await stage.lead.history(CHANNEL) if m.bot_id == "B0RCABOT"]


async def test_an_alert_without_any_usual_name_has_a_title_and_no_dead_link(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **MORE) as stage:
        for _ in range(2):
            await deliver(stage, "alertmanager", payload("no_names.json"))
        thread = await anchor(stage, "GPU scheduler unreachable")
        said = await everything(stage, thread)
        roots = await _roots(stage)
        assert [m.ts for m in roots] == [thread]
        assert "INC-2" not in said
        # What the sender calls critical is sev2 here; and no empty address became a link.
        assert "sev2" in roots[0].all_text
        for text in (said, roots[0].all_text):
            for word in ("None", "null", "undefined"):
                assert word not in text
            assert "<|" not in text
            assert "<http" not in text
            assert all(line.strip() != "·" for line in text.split("\n"))


async def test_both_of_a_pair_and_a_retry_are_one_message_in_the_channel(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **MORE) as stage:
        first, second = payload("pair_first.json"), payload("pair_second.json")
        await asyncio.gather(
            deliver(stage, "alertmanager", first), deliver(stage, "alertmanager", second)
        )
        # Whichever came first: the title is of the alert that began first. The number that the slower of the two had
        # drawn may be left out.
        thread = await anchor(stage, "Xid 79 on gpu-node-17")
        before = await everything(stage, thread)
        await deliver(stage, "alertmanager", first)
        after = await everything(stage, thread)
        assert [m.ts for m in await _roots(stage)] == [thread]
        # The third delivery says nothing again in the thread.
        assert after.count("Xid 79 on gpu-node-17") == before.count("Xid 79 on gpu-node-17")


async def test_a_missing_value_is_never_a_zero_and_a_zero_never_missing(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **MORE) as stage:
        await deliver(stage, "grafana", payload("grafana_values.json"))
        thread = await anchor(stage, "GPU memory ratio")
        said = await everything(stage, thread)
        assert _about(said, "3") == "A: no value (NaN), C = 1"
        assert _about(said, "4") == "no value sent"
        assert _about(said, "5") == "B = 0"
        # Everything that went over the wire is strict JSON: no reader meets a bare NaN.
        text = json.dumps([m.raw for m in await stage.lead.thread(CHANNEL, thread)])
        json.loads(text, parse_constant=pytest.fail)
        json.loads(await report(stage, "INC-1", "json"), parse_constant=pytest.fail)


async def test_the_always_firing_alert_opens_nothing(redis_url: str, tmp_path: Path) -> None:
    async with staged(redis_url, tmp_path, **MORE) as stage:
        await deliver(stage, "alertmanager", payload("watchdog.json"))
        await deliver(stage, "alertmanager", payload("watchdog.json"))
        await stage.calm()
        assert await _roots(stage) == []
        url = f"http://127.0.0.1:{stage.settings.port}/incidents"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            assert (await http.get(url, headers=READ)).json()["incidents"] == []


async def test_the_always_firing_alert_that_falls_silent_is_told(
    redis_url: str, tmp_path: Path
) -> None:
    soon = FollowupSettings(**{**OFF, "heartbeat_s": 1.0})
    async with staged(redis_url, tmp_path, **{**MORE, "followup": soon}) as stage:
        await deliver(stage, "alertmanager", payload("watchdog.json"))
        await anchor(stage, "Alert path may be down: no Watchdog")
