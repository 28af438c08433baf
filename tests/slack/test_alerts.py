"""Alerts that other apps post in attached channels, by the poster's id and never by a phrase."""

from __future__ import annotations

from pathlib import Path

from bot.settings import ChannelSettings
from tests.slack.conftest import ALERTS, CHANNEL, Stage, staged

BOTS = {"B0ALERTMGR": "alertmanager", "B0GRAFANA": "grafana", "B0PAGER": "pagerduty"}
ATTACHED = {"channels": (ChannelSettings(id=ALERTS, alert_bots=BOTS),)}


async def _incidents(stage: Stage) -> list[str]:
    return [str(i) for i in await stage.store.text.zrange("rca:incidents", 0, -1)]


async def test_alert_of_another_app_opens_on_its_own_message(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **ATTACHED) as stage:
        for app in ("alertmanager", "grafana", "pagerduty"):
            ts = await stage.client.alert_message(app, ALERTS)
            card = await stage.client.wait_for(
                lambda m, ts=ts: m.thread_ts == ts and m.bot_id == "B0RCABOT", channel=ALERTS
            )
            assert "INC-" in card.all_text
        await stage.calm()
        roots = [m for m in await stage.lead.history(ALERTS) if m.bot_id == "B0RCABOT"]
        assert not roots
        first = await stage.incident("INC-1")
        assert first.service == "translate-api"
        assert first.labels["alertname"] == "InferenceLatencyHigh"


async def test_same_alert_by_webhook_and_by_an_app_is_one_incident(
    redis_url: str, tmp_path: Path
) -> None:
    more = {**ATTACHED, "alert_channel": CHANNEL}
    async with staged(redis_url, tmp_path, workspace={"webhook_token": "hook"}, **more) as stage:
        assert (await stage.client.webhook()).is_good
        await stage.until(lambda: _incidents(stage), "the webhook opened an incident")
        await stage.client.alert_message("alertmanager", ALERTS)
        await stage.calm()
        assert await _incidents(stage) == ["INC-1"]
        assert len((await stage.incident()).alerts) == 1
        assert (await stage.client.webhook(is_resolved=True)).is_good

        async def recovered() -> bool:
            return (await stage.incident()).status.value == "recovered"

        await stage.until(recovered, "the incident is recovered")


async def test_unlisted_poster_or_chatter_of_a_listed_one_opens_nothing(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **ATTACHED) as stage:
        await stage.sre.say(ALERTS, "[FIRING:1] InferenceLatencyHigh translate-api")
        await stage.client.alert_message("alertmanager", CHANNEL)
        await stage.calm()
        assert await _incidents(stage) == []


async def test_resolved_message_recovers_what_the_firing_one_opened(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, **ATTACHED) as stage:

        def attachment(state: str) -> list[dict[str, object]]:
            return [
                {
                    "fallback": f"[{state}] TTFTHigh translate-api",
                    "title": f"[{state}] TTFTHigh translate-api",
                    "fields": [{"title": "Severity", "value": "page", "short": True}],
                }
            ]

        await stage.client.alert_message("alertmanager", ALERTS, attachments=attachment("FIRING:1"))
        await stage.until(lambda: _incidents(stage), "the alert opened an incident")
        await stage.client.alert_message("alertmanager", ALERTS, attachments=attachment("RESOLVED"))

        async def recovered() -> bool:
            return (await stage.incident()).status.value == "recovered"

        await stage.until(recovered, "the incident is recovered")
        assert await _incidents(stage) == ["INC-1"]
