"""Socket Mode: the same surface, over a connection that is replaced when it is lost."""

from __future__ import annotations

from pathlib import Path

from bot.workspace.config import Transport, WorkspaceConfig
from tests.slack.conftest import CHANNEL, staged


async def test_socket_mode_carries_commands_and_survives_a_lost_connection(
    redis_url: str, tmp_path: Path
) -> None:
    more = {
        "workspace": {"transport": Transport.SOCKET},
        "environment": {"SLACK_APP_TOKEN": WorkspaceConfig().app_token},
    }
    async with staged(redis_url, tmp_path, **more) as stage:

        async def connected() -> bool:
            return stage.bot._slack.state()["connected"] is True

        await stage.until(connected, "the socket is connected")
        thread = await stage.start()
        prompt = await stage.reply(thread, lambda m: m.button("rca.mitigate") is not None)
        await stage.client.post("socket", {"reason": "refresh_requested"})
        await stage.sre.say(CHANNEL, "still here", thread_ts=thread)

        async def clicked() -> bool:
            return (await stage.sre.click(CHANNEL, prompt.ts, "rca.mitigate")).is_good

        await stage.until(clicked, "a press is acknowledged again", 40)
        await stage.sre.wait_for_view()
        # What was said without a connection comes again a minute later.
        await stage.client.advance_clock(61)
        await stage.entry(lambda e: e.text is not None and e.text.en == "still here")
        assert stage.bot._slack.state()["mode"] == "socket"
