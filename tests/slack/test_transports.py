"""The same incident over signed HTTP and over Socket Mode: one story, both transports, real sockets."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from bot.domain.incident import IncidentStatus
from bot.domain.timeline import EntryKind
from bot.incidents.journal import UnknownIncidentError
from bot.settings import ChannelSettings
from bot.workspace.config import Transport, WorkspaceConfig
from tests.slack.conftest import ALERTS, CHANNEL, Stage, staged
from tests.workspace.conftest import faults_on_the_wire

TRANSPORTS: dict[str, dict[str, Any]] = {
    "http": {},
    "socket": {
        "workspace": {"transport": Transport.SOCKET},
        "environment": {"SLACK_APP_TOKEN": WorkspaceConfig().app_token},
    },
}


async def _connected(stage: Stage) -> None:
    async def is_connected() -> bool:
        return stage.bot._slack.state()["connected"] is not False

    await stage.until(is_connected, "Slack reaches the bot")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_incident_is_worked_from_its_start_to_its_end(
    redis_url: str, tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.slack.poster.PAUSE_SECONDS", 0.0)
    attached = ChannelSettings(id=ALERTS, alert_bots={"B0GRAFANA": "grafana"})
    async with staged(redis_url, tmp_path, channels=(attached,), **TRANSPORTS[transport]) as stage:
        await _connected(stage)
        # A word, a form with a complaint below its field, and the form again.
        thread = await stage.start()
        prompt = await stage.reply(thread, lambda m: m.button("rca.symptom") is not None)
        assert (await stage.sre.click(CHANNEL, prompt.ts, "rca.symptom")).is_good
        await stage.sre.wait_for_view()
        filled = {"text": "P99 is 600 ms, usually 80 ms", "scope": "gpu-1", "since": "some day"}
        assert "since" in (await stage.sre.submit(filled)).errors
        assert (await stage.sre.submit({**filled, "since": "20m"})).is_good
        await stage.entry(lambda e: e.kind is EntryKind.SYMPTOM and e.author == "U0SRE")

        # A mention, words with an edit, a reaction that is taken back, a file.
        await stage.sre.say(CHANNEL, "@rca step next", thread_ts=thread)
        await stage.reply(thread, lambda m: "2/6" in m.all_text)
        ts = await stage.sre.say(CHANNEL, "gpu-1 shows Xid 78", thread_ts=thread)
        await stage.sre.edit(CHANNEL, ts, "gpu-1 shows Xid 79")
        await stage.entry(lambda e: e.data.get("ts") == ts and bool(e.history))
        await stage.lead.react(CHANNEL, ts, "pushpin")
        await stage.entry(lambda e: e.kind is EntryKind.REACTION)
        await stage.lead.unreact(CHANNEL, ts, "pushpin")
        await stage.entry(lambda e: e.kind is EntryKind.REACTION and bool(e.data.get("removed")))
        await stage.sre.upload(CHANNEL, "lock.txt", b"held", thread_ts=thread)
        await stage.entry(lambda e: bool(e.data.get("files")))

        # A select whose options the bot supplies.
        await stage.sre.say(CHANNEL, "@rca step pass nothing more to be had", thread_ts=thread)
        step = await stage.reply(thread, lambda m: m.button("rca.hypothesis.add") is not None)
        assert (await stage.sre.click(CHANNEL, step.ts, "rca.hypothesis.add")).is_good
        view = await stage.sre.wait_for_view(lambda v: v["callback_id"] == "rca_add")
        offered = await stage.sre.suggestions("rca.pick.cause", "lock", view_id=view["id"])
        assert [option["value"] for option in offered] == ["lock_contention"]
        assert (await stage.sre.submit({"cause": offered[0]})).is_good
        await stage.whispered(stage.sre, "on the list already")

        # A shortcut on an alert of another app, and the Home tab of whoever leads.
        alert = await stage.client.alert_message("alertmanager", ALERTS)
        assert (await stage.lead.shortcut(ALERTS, alert)).is_good
        await stage.lead.wait_for_view(lambda v: v["callback_id"] == "rca_start")
        assert (await stage.lead.submit({"text": "P99 600 ms", "severity": "sev1"})).is_good

        async def second() -> bool:
            with contextlib.suppress(UnknownIncidentError):
                return (await stage.incident("INC-2")).thread_ts == alert
            return False

        await stage.until(second, "the alert's own thread is the incident's")
        await stage.lead.open_home()

        async def at_home() -> bool:
            return "INC-2" in str(await stage.lead.home())

        await stage.until(at_home, "the Home tab lists both")

        await stage.lead.command(CHANNEL, "/rca resolve INC-1 false alarm")

        async def over() -> bool:
            return (await stage.incident()).status is IncidentStatus.RESOLVED

        await stage.until(over, "the incident is resolved")
        await stage.calm()
        assert await faults_on_the_wire(stage.client) == []
        # Whoever pressed, wrote or leads is named; nobody is paged for it.
        said = [m for m in await stage.client.messages() if m.bot_id == "B0RCABOT"]
        assert said
        assert not [m for m in said if "<@U" in str(m.raw.get("blocks")) + m.text]
        assert await stage.store.text.lrange("rca:parked:inbound", 0, -1) == []
        assert stage.bot._slack.state()["mode"] == transport
