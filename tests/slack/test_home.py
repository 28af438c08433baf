"""The Home tab: what is open, what is mine, what waits for me; in my language, and acted on from there."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.blockkit.validate import validate_view
from bot.domain.action_item import ActionItem, ActionStatus
from bot.domain.checklist import ChecklistChange
from bot.domain.text import Locale, Localized
from bot.domain.timeline import EntryKind
from bot.incidents.responding import Via
from bot.settings import PolicySettings
from bot.slack.directory import Identity
from bot.slack.home import Desk, Proposal, Task, rows
from bot.slack.home_view import HomeView
from bot.store import approvals
from bot.store.approvals import Approval
from tests.conftest import examples
from tests.slack.conftest import CHANNEL, Stage, staged
from tests.slack.test_text import NOW, PRESENTER, _incident

VIEW = HomeView(PRESENTER._renderer)


def _words(view: dict[str, Any]) -> str:
    return json.dumps(view["blocks"], ensure_ascii=False)


async def _home(stage: Stage, person: Any, words: str) -> str:
    """Opens the Home tab and waits until it says `words`."""
    await person.open_home()

    async def shown() -> str:
        view = await person.home()
        text = _words(view) if view else ""
        return text if words in text else ""

    return str(await stage.until(shown, f"the Home tab says {words!r}"))


async def test_home_without_an_incident_says_so(stage: Stage) -> None:
    text = await _home(stage, stage.sre, "No incident is open")
    assert "Nothing is assigned to you" in text
    assert "Nothing waits for you" in text


async def test_home_lists_open_incidents_with_a_link_to_their_thread(stage: Stage) -> None:
    thread = await stage.start()
    text = await _home(stage, stage.sre, "INC-1")
    assert f"archives/{CHANNEL}/p{thread.replace('.', '')}" in text
    await stage.lead.command(CHANNEL, "/rca resolve false alarm")
    await stage.whispered(stage.lead, "is resolved")
    assert "INC-1" not in await _home(stage, stage.sre, "No incident is open")


async def test_home_speaks_the_persons_language_and_not_the_channels(
    redis_url: str, tmp_path: Path
) -> None:
    async with staged(redis_url, tmp_path, locales={"U0LEAD": "zh-CN"}) as stage:
        await stage.start()
        await _home(stage, stage.lead, "未关闭的事件：1")
        await _home(stage, stage.sre, "Open incidents: 1")
        asked = await stage.client.traffic("users.info")
        await stage.lead.open_home()
        await stage.calm()
        # Asked once a day and person, not once a look.
        assert len(await stage.client.traffic("users.info")) == len(asked)


async def test_action_item_is_on_its_owners_home_until_it_is_ticked_off_there(stage: Stage) -> None:
    await stage.start()
    via = Via(by="U0LEAD", at=stage.bot.services.clock(), key="k1")
    await stage.bot.services.responding.add_action_item(
        "INC-1", "alert on <pool> wait", via, owner="U0SRE", due="2026-12-15"
    )
    text = await _home(stage, stage.sre, "alert on &lt;pool&gt; wait")
    assert "2026-12-15" in text
    assert "pool" not in await _home(stage, stage.lead, "Nothing is assigned to you")
    view = await stage.sre.home()
    assert (await stage.sre.click_in_view("rca.action.done", view_id=view["id"])).is_good
    await stage.entry(lambda e: e.kind is EntryKind.ACTION and e.op == "done")
    assert (await stage.incident()).action_items[0].status is ActionStatus.DONE
    await _home(stage, stage.sre, "Nothing is assigned to you")
    told = await stage.sre.wait_for(lambda m: "Done: action item 1" in m.all_text)
    assert told.channel.startswith("D")


async def test_heavy_probe_waits_on_the_approvers_home_and_runs_once(
    redis_url: str, tmp_path: Path
) -> None:
    policy = PolicySettings(approve_heavy=("U0LEAD",))
    async with staged(redis_url, tmp_path, policy=policy) as stage:
        await stage.start()
        await stage.sre.command(CHANNEL, "/rca probe h2d_bandwidth on gpu-1 gpu=0")
        await stage.whispered(stage.sre, "needs an approval")
        assert "h2d_bandwidth" not in await _home(stage, stage.sre, "Nothing waits for you")
        text = await _home(stage, stage.lead, "h2d_bandwidth")
        assert "alex.park" in text
        view = await stage.lead.home()
        assert (await stage.lead.click_in_view("rca.probe.approve", view_id=view["id"])).is_good
        entry = await stage.entry(lambda e: e.kind is EntryKind.PROBE)
        assert entry.author == "U0SRE"
        await _home(stage, stage.lead, "Nothing waits for you")


async def test_second_approval_of_the_same_request_is_refused(stage: Stage) -> None:
    await stage.start()
    await stage.lead.command(CHANNEL, "/rca probe h2d_bandwidth on gpu-1 gpu=0")
    mine = await stage.whispered(stage.lead, "needs an approval")
    await stage.lead.click(CHANNEL, mine.ts, "rca.probe.approve")
    await stage.entry(lambda e: e.kind is EntryKind.PROBE)
    await stage.lead.click(CHANNEL, mine.ts, "rca.probe.approve")
    await stage.whispered(stage.lead, "approved already")
    await stage.calm()
    assert len([e for e in await stage.entries() if e.kind is EntryKind.PROBE]) == 1


async def test_approval_of_yesterday_waits_no_more(stage: Stage) -> None:
    now = datetime.now(UTC)
    for name, age in (("old", timedelta(hours=25)), ("new", timedelta(hours=1))):
        waiting = Approval(id=name, by="U0SRE", at=now - age, probes=("profile",), nodes=("gpu-1",))
        await stage.store.commit(approvals.keep(waiting), doing="test")
    assert [item.id for item in await approvals.waiting(stage.store, now)] == ["new"]


async def test_refused_view_is_published_in_plain_words(stage: Stage) -> None:
    await stage.start()
    await stage.client.inject("error", "views.publish", times=1, error="invalid_arguments")
    await stage.sre.open_home()

    async def shown() -> dict[str, Any] | None:
        return await stage.sre.home()

    view = await stage.until(shown, "a Home tab")
    assert "INC-1" in _words(view)
    assert {block["type"] for block in view["blocks"]} == {"section"}


async def test_home_that_is_switched_off_stops_nothing(stage: Stage) -> None:
    await stage.client.inject("error", "views.publish", times=1, error="not_enabled")
    await stage.sre.open_home()
    await stage.calm()
    assert len(await stage.client.traffic("views.publish")) >= 1
    assert await stage.sre.home() is None
    await stage.start()


@pytest.mark.parametrize("locale", Locale)
@settings(max_examples=examples(25, 1_000), deadline=None)
@given(
    text=st.text(
        st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("<>&*`!@#\n-~[]")),
        max_size=4000,
    ),
    count=st.integers(0, 40),
)
def test_any_home_is_taken_by_the_schema(locale: Locale, text: str, count: int) -> None:
    incident = replace(_incident(text), thread_ts="1.1")
    item = ActionItem(n=1, text=Localized.verbatim(text), owner="U1", due="2026-12-01")
    change = ChecklistChange(n=1, checklist="latency", diff=text)
    asked = Approval(id="x", by="U2", at=NOW, probes=("profile",), nodes=(text[:30] or "n",))
    desk = Desk(
        user="U1",
        open=(incident,) * count,
        tasks=(Task(incident=incident, item=item),) * count,
        approvals=(asked,) * count,
        proposals=(Proposal(incident=incident, change=change),) * count,
    )
    identity = Identity(url="https://example.slack.com/")
    shown = VIEW.build(rows(desk, identity), {"U2": text[:40]}, locale, NOW)
    assert validate_view(shown.body) == []
    assert validate_view(shown.plain) == []
    if count:
        # Fell back to plain words in no case: the rows and their buttons are there.
        assert shown.meanings
