"""What the team learned shows where people work: at the start of an incident, in a search, in an exercise."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.app import utc_now
from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.domain.hypothesis import Hypothesis
from bot.domain.incident import IncidentStatus
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.incidents.opening import Opening
from bot.incidents.responding import Via
from bot.workspace.seed import DRILLS, LEADS
from tests.slack import conftest
from tests.slack.conftest import ALERTS, CHANNEL, Stage, staged


async def earlier(
    stage: Stage, title: str, *, channel: str = CHANNEL, cause: str | None = None
) -> str:
    """An incident of yesterday, with its confirmed cause."""
    services = stage.bot.services
    at = utc_now() - timedelta(days=1)
    taken = await services.openings.open(
        Opening(
            title=title, channel=channel, severity=Severity.SEV3, locale=Locale.EN, at=at,
            services=("translate-api",), thread_ts=f"{at.timestamp():.6f}", source="slack",
        ),
        once=f"test:{title}",
    )  # fmt: skip
    if cause:
        via = Via(by="U0LEAD", at=at + timedelta(minutes=9), key=f"confirm:{title}")
        text = Localized("a pool without bound", "连接池没有上限")
        await services.responding.confirm_cause(
            taken.incident_id,
            Hypothesis(cause=cause, title=text, probability=1.0, chain=(cause,)),
            via,
            trigger=None,
            deep_cause=text,
            prevention=text,
        )
    return taken.incident_id


async def test_a_new_incident_shows_what_is_alike_and_claims_nothing(stage: Stage) -> None:
    old = await earlier(stage, "P99 of translate-api is 600 ms", cause="lock_contention")
    assert (
        await stage.lead.command(
            CHANNEL, "/rca start P99 of translate-api is 700 ms service=translate-api"
        )
    ).is_good

    shown = await stage.client.wait_for(
        lambda m: "Not proven to be the same today" in m.all_text, channel=CHANNEL
    )
    assert old in shown.all_text
    assert f"archives/{CHANNEL}/p" in str(shown.blocks)
    incident = await stage.incident("INC-2")
    assert [item.id for item in incident.precedents] == [old]
    assert incident.root_cause is None
    await stage.calm()
    again = [m for m in await stage.lead.history(CHANNEL) if "Not proven" in m.all_text]
    assert len(again) <= 1


@pytest.fixture
async def alerted(redis_url: str, tmp_path: Path):
    async with staged(redis_url, tmp_path, alert_channel=ALERTS) as made:
        yield made


async def test_an_alert_that_came_before_is_counted_on_the_card(alerted: Stage) -> None:
    stage = alerted
    body = {
        "version": "4", "status": "firing", "groupKey": "g", "receiver": "r", "groupLabels": {},
        "commonLabels": {}, "commonAnnotations": {}, "externalURL": "", "truncatedAlerts": 0,
        "alerts": [
            {
                "status": "firing", "fingerprint": "f1", "startsAt": "2026-11-30T08:00:00Z",
                "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "", "annotations": {},
                "labels": {"alertname": "LatencyHigh", "service": "translate-api", "instance": "a"},
            }
        ],
    }  # fmt: skip

    async def post(key: str, instance: str) -> None:
        alert = {**body["alerts"][0], "fingerprint": f"f-{key}"}
        alert["labels"] = {**alert["labels"], "instance": instance}
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(
                f"http://127.0.0.1:{stage.settings.port}/webhooks/alertmanager",
                json={**body, "groupKey": key, "alerts": [alert]},
                headers={"Authorization": "Bearer hook"},
            )
            assert answer.status_code == 200, answer.text

    await post("one", "gpu-1:9100")
    await stage.calm()
    await post("two", "gpu-2:9100")

    async def counted() -> Any:
        found = await stage.incident("INC-2")
        return [item.incidents for item in found.recurrences if item.by == "signature"]

    assert await stage.until(counted, "the recurrence is counted") == [("INC-1",)]
    await stage.client.wait_for(
        lambda m: "INC-2" in m.all_text and "1 × the same alert" in m.all_text and not m.is_reply
    )


async def test_a_cause_that_was_confirmed_before_is_counted_when_it_is_confirmed_again(
    stage: Stage,
) -> None:
    old = await earlier(stage, "answers are slow", cause="lock_contention")
    new = await earlier(stage, "requests fail now and then")
    via = Via(by="U0LEAD", at=utc_now(), key="confirm")
    text = Localized.verbatim("x")
    await stage.bot.services.responding.confirm_cause(
        new,
        Hypothesis(
            cause="lock_contention", title=text, probability=1.0, chain=("lock_contention",)
        ),
        via,
        trigger=None,
        deep_cause=text,
        prevention=text,
    )
    stage.bot.services.wake()

    async def counted() -> Any:
        found = (await stage.incident(new)).recurrences
        return [item.incidents for item in found if item.by == "cause"]

    assert await stage.until(counted, "the recurrence is counted") == [(old,)]


async def test_a_search_shows_private_incidents_to_members_only(stage: Stage) -> None:
    await earlier(stage, "tokenizer of translate-api is stuck")
    await earlier(stage, "tokenizer secret of the leads", channel=LEADS, cause="lock_contention")
    assert await stage.lead.invite_app(LEADS)
    await stage.lead.command(CHANNEL, "/rca search tokenizer")
    everything = await stage.whispered(stage.lead, "INC-1")
    assert "INC-2" in everything.all_text
    await stage.sre.command(CHANNEL, "/rca search tokenizer")
    less = await stage.whispered(stage.sre, "INC-1")
    assert "INC-2" not in less.all_text
    assert "secret" not in less.all_text


async def test_a_channel_that_slack_does_not_tell_of_is_private(stage: Stage) -> None:
    await earlier(stage, "tokenizer secret", channel=LEADS)
    await stage.lead.command(CHANNEL, "/rca search tokenizer")
    await stage.whispered(stage.lead, "No incident")


async def test_a_private_incident_is_not_recalled_in_a_public_thread(stage: Stage) -> None:
    await earlier(stage, "P99 of translate-api is 600 ms", channel=LEADS, cause="lock_contention")
    assert await stage.lead.invite_app(LEADS)
    line = "/rca start P99 of translate-api is 700 ms service=translate-api"
    assert (await stage.lead.command(CHANNEL, line)).is_good
    await stage.client.wait_for(lambda m: "INC-2" in m.all_text and not m.is_reply, channel=CHANNEL)
    await stage.calm()
    said = " ".join(m.all_text for m in await stage.client.messages())
    assert "Not proven" not in said
    assert (await stage.incident("INC-2")).precedents == ()


async def test_stats_say_n_and_no_median_of_one(stage: Stage) -> None:
    await earlier(stage, "P99 is high", cause="lock_contention")
    await stage.lead.command(CHANNEL, "/rca stats range=30d")
    told = await stage.whispered(stage.lead, "Incidents in 30 days: 1")
    assert "(n=1)" in told.all_text
    assert "median" not in told.all_text.split("Median from")[0]
    assert "/stats?" in str(told.blocks)


@pytest.fixture
async def school(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    full = load_causes([shipped_causes()])
    monkeypatch.setattr(conftest, "small_catalogue", lambda: full)
    async with staged(
        redis_url, tmp_path, training_channel=DRILLS, on_call_group="S0ONCALL"
    ) as made:
        yield made


async def test_an_exercise_is_played_scored_and_debriefed(school: Stage) -> None:
    stage = school
    assert (await stage.lead.command(CHANNEL, "/rca drill cpu_contention")).is_good
    anchor = await stage.client.wait_for(
        lambda m: "INC-1" in m.all_text and not m.is_reply and m.only_for is None, channel=DRILLS
    )
    assert "[drill]" in anchor.all_text
    assert "Nothing here is real" in anchor.all_text
    assert "cpu_contention" not in str(anchor.blocks)

    async def ranked() -> Any:
        return (await stage.incident()).hypotheses

    first = (await stage.until(ranked, "the evidence is ranked"))[0]
    assert first.cause == "cpu_contention"
    await stage.lead.command(DRILLS, "/rca probe host_cpu on gpu-1")

    async def probed() -> Any:
        return [e for e in await stage.entries() if e.data.get("purpose") == "asked"]

    (entry,) = await stage.until(probed, "the probe answered from the script")
    assert entry.data["result"]["findings"][0]["id"].startswith("cpu.")
    await stage.lead.command(DRILLS, "/rca resolve that was practice")
    debrief = await stage.client.wait_for(
        lambda m: "Debrief:" in m.all_text and "of 100 points" in m.all_text, channel=DRILLS
    )
    assert "CPU contention" in debrief.all_text
    assert "model responder" in debrief.all_text
    await stage.calm()
    incident = await stage.incident()
    assert incident.status is IncidentStatus.RESOLVED
    posted = [m for m in await stage.client.messages() if "S0ONCALL" in str(m.blocks) + m.text]
    assert not posted, "an exercise pages nobody"
    timers = await stage.store.text.keys("rca:q:pending:followup:INC-1:*")
    assert timers == []
    await stage.lead.command(CHANNEL, "/rca stats")
    told = await stage.whispered(stage.lead, "Incidents in 90 days: 0")
    assert "exercises, not counted: 1" in told.all_text


async def test_an_unknown_cause_names_the_nearest(school: Stage) -> None:
    await school.lead.command(CHANNEL, "/rca drill cpu_contentoin")
    told = await school.whispered(school.lead, "cpu_contention")
    assert "Did you mean" in told.all_text


async def test_a_saved_case_is_played_in_chinese(
    redis_url: str, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = load_causes([shipped_causes()])
    monkeypatch.setattr(conftest, "small_catalogue", lambda: full)
    cases = tmp_path / "knowledge" / "cases"
    shutil.copytree(repository / "tests/diagnosis/cases/INC-1.case", cases / "evening-surge.case")
    async with staged(
        redis_url, tmp_path, training_channel=DRILLS, knowledge_dir=tmp_path / "knowledge",
        locale=Locale.ZH_CN, locales={"U0LEAD": "zh-CN"},
    ) as stage:  # fmt: skip
        assert (await stage.lead.command(CHANNEL, "/rca 演练 evening-surge")).is_good
        anchor = await stage.client.wait_for(
            lambda m: "INC-1" in m.all_text and not m.is_reply and m.only_for is None,
            channel=DRILLS,
        )
        assert "[演练]" in anchor.all_text
        assert "以下均非真实故障" in anchor.all_text

        async def ranked() -> Any:
            return (await stage.incident()).hypotheses

        first = (await stage.until(ranked, "the evidence is ranked"))[0]
        assert (first.cause, first.node) == ("log_write_surge", "gpu-1")
        drill = (await stage.incident()).drill
        assert drill is not None
        assert drill.case == "evening-surge.case"
        await stage.lead.command(DRILLS, "/rca 关闭 练习结束")
        debrief = await stage.client.wait_for(lambda m: "演练复盘" in m.all_text, channel=DRILLS)
        assert "参考排查路径" in debrief.all_text
        assert "日志写入激增" in debrief.all_text
