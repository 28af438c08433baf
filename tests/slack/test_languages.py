"""What one person sees is in their language; what a channel sees is in the incident's."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.domain.text import Locale
from bot.settings import ChannelSettings
from bot.slack.directory import remembered_locale
from bot.store import surface
from bot.store.transaction import Store
from tests.slack.conftest import CHANNEL, Stage, staged


@pytest.mark.parametrize(
    ("tag", "locale"),
    [
        ("zh-CN", Locale.ZH_CN),
        ("zh-TW", Locale.ZH_CN),
        ("en-GB", Locale.EN),
        ("ja-JP", Locale.ZH_CN),
        ("", Locale.ZH_CN),
        ("zhx", Locale.ZH_CN),
    ],
)
async def test_language_that_the_bot_does_not_speak_is_the_deployments(
    redis_url: str, tag: str, locale: Locale
) -> None:
    store = Store(redis_url)
    await store.commit(surface.remember_language("U1", tag), doing="test")
    assert await remembered_locale(store, "U1", Locale.ZH_CN) is locale
    await store.close()


async def test_answers_and_forms_follow_the_person_and_the_thread_the_incident(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, locales={"U0LEAD": "zh-CN"}) as stage:
        thread = await stage.start()
        await stage.lead.command(CHANNEL, "/rca note gpu-1 空转")
        await stage.whispered(stage.lead, "已记录")
        await stage.sre.command(CHANNEL, "/rca note gpu-2 too")
        await stage.whispered(stage.sre, "Noted as evidence")
        prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
        assert prompt.button("rca.step.next").text == "Next step"
        await stage.lead.click(CHANNEL, prompt.ts, "rca.symptom")
        view = await stage.lead.wait_for_view()
        assert view["title"]["text"] == "现象"
        wrong = await stage.lead.submit({"text": "P99 600 ms", "scope": "all", "since": "x"})
        assert "不是有效的过去时间" in wrong.errors["since"]


async def test_slack_that_does_not_say_leaves_the_deployments_language(stage: Stage) -> None:
    await stage.client.inject("error", "users.info", times=50, error="user_not_found")
    await stage.lead.command(CHANNEL, "/rca status")
    await stage.whispered(stage.lead, "No incident is open")


async def test_channel_with_a_language_of_its_own_speaks_it(redis_url: str, tmp_path: Path) -> None:
    channels = (ChannelSettings(id=CHANNEL, locale=Locale.ZH_CN),)
    async with staged(redis_url, tmp_path, channels=channels, alert_channel=CHANNEL) as stage:
        thread = await stage.start()
        prompt = await stage.reply(thread, lambda m: m.button("rca.step.next") is not None)
        assert prompt.button("rca.step.next").text == "下一步"
        # What only one person sees is in that person's language still.
        await stage.sre.command(CHANNEL, "/rca note gpu-2 too")
        await stage.whispered(stage.sre, "Noted as evidence")
        assert (await stage.incident()).locale is Locale.ZH_CN
        assert stage.settings.locale_of("C0ALERTS") is Locale.EN


async def test_times_are_in_the_viewers_zone_with_utc_beside(stage: Stage) -> None:
    thread = await stage.start()
    card = next(m for m in await stage.lead.history(CHANNEL) if m.ts == thread)
    opened = (await stage.incident()).opened_at
    utc = f"{opened:%Y-%m-%d %H:%M:%S} UTC"
    token = f"<!date^{int(opened.timestamp())}^{{date_short_pretty}} {{time}}|{utc}>"
    assert f"{token} ({opened:%m-%d %H:%M} UTC)" in str(card.raw["blocks"])
