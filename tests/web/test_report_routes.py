"""Reports over HTTP: revisions can be compared, the schema is public, a private channel's report stays where it may go."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from jsonschema import Draft202012Validator

from bot.domain.timeline import EntryKind
from bot.incidents.responding import Via
from bot.settings import ExportSettings, RedactionSettings
from bot.signed_link import signed_link
from bot.workspace.records import ChannelKind
from tests.slack.conftest import CHANNEL, Stage, staged
from tests.waiting import PATIENCE_SECONDS

READ = {"Authorization": "Bearer hook"}


@pytest.fixture
async def stage(redis_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(redis_url, tmp_path) as made:
        yield made


@pytest.fixture
async def closed(redis_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """A deployment whose private reports go nowhere, with rules of its own."""
    redaction = RedactionSettings(
        patterns=(r"tenant-(?P<secret>\d+)",),
        names=("Umbrella Corp", "保护伞"),
        allow=("10.0.0.9",),
    )
    export = ExportSettings(private=())
    async with staged(redis_url, tmp_path, redaction=redaction, export=export) as made:
        yield made


async def _get(stage: Stage, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as http:
        return await http.get(f"http://127.0.0.1:{stage.settings.port}{path}", headers=headers)


@pytest.mark.parametrize("before", ["²", "9" * 5000, "-1", "1e3", "٣", " "])
async def test_a_place_in_the_list_that_is_no_number_shows_its_beginning(
    stage: Stage, before: str
) -> None:
    await stage.start()
    answer = await _get(
        stage, f"/incidents?{urlencode({'before': before})}", Accept="application/json", **READ
    )
    assert answer.status_code == 200
    assert [item["id"] for item in answer.json()["incidents"]] == ["INC-1"]


async def test_the_lists_links_keep_the_readers_language_and_no_signature(stage: Stage) -> None:
    await stage.start()
    path = signed_link(stage.settings, "/incidents", valid_seconds=600, now=time.time())
    path = path.removeprefix(stage.settings.base_url) + "&locale=zh-CN"
    answer = await _get(stage, path)
    assert answer.status_code == 200
    assert 'href="/incidents/INC-1?locale=zh-CN"' in answer.text


async def test_revisions_are_compared_and_wrong_numbers_are_one_line(stage: Stage) -> None:
    await stage.start()
    await stage.lead.command(CHANNEL, "/rca export INC-1 json")
    await stage.entry(lambda e: e.kind is EntryKind.REPORT)
    await stage.lead.command(CHANNEL, "/rca severity INC-1 sev1")
    await stage.entry(lambda e: e.kind is EntryKind.SEVERITY)
    await stage.lead.command(CHANNEL, "/rca export INC-1 json")

    async def twice() -> bool:
        return sum(e.kind is EntryKind.REPORT for e in await stage.entries()) == 2

    await stage.until(twice, "two revisions")
    found = await _get(stage, "/incidents/INC-1/report.diff?from=1&to=2", **READ)
    assert found.status_code == 200
    assert "sev1" in found.text
    assert found.text.startswith("--- INC-1 r1\n+++ INC-1 r2\n")
    assert (await _get(stage, "/incidents/INC-1/report.diff?from=1&to=2")).status_code == 401
    for query, status in (("?from=1&to=9", 404), ("?from=x&to=2", 400), ("", 400)):
        answer = await _get(stage, f"/incidents/INC-1/report.diff{query}", **READ)
        assert answer.status_code == status
        assert "\n" not in answer.json()["error"]
    assert (
        await _get(stage, "/incidents/INC-9/report.diff?from=1&to=2", **READ)
    ).status_code == 404


async def test_bundle_holds_the_markdown_and_all_that_it_refers_to(stage: Stage) -> None:
    await stage.start()
    await stage.calm()
    answer = await _get(stage, "/incidents/INC-1/report.zip", **READ)
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = archive.namelist()
        text = archive.read("INC-1.md").decode()
    assert names[0] == "INC-1.md"
    referred = set(re.findall(r"\]\((INC-1/[^)]+)\)", text))
    assert referred <= set(names)
    assert (await _get(stage, "/incidents/INC-1/report.zip", **READ)).content == answer.content


async def test_schema_is_published_and_the_export_fits_it(stage: Stage) -> None:
    await stage.start()
    schema = await _get(stage, "/schemas/postmortem/1.json")
    assert schema.status_code == 200
    report = await _get(stage, "/incidents/INC-1/report.json", **READ)
    Draft202012Validator(json.loads(schema.content)).validate(report.json())


async def test_report_of_a_private_channel_goes_only_where_it_may(closed: Stage) -> None:
    thread = await closed.start()
    closed.workspace.workspace.channels[CHANNEL].kind = ChannelKind.PRIVATE
    answer = await _get(closed, "/incidents/INC-1/report.md", **READ)
    assert answer.status_code == 403
    assert "private channel" in answer.json()["error"]
    await closed.lead.command(CHANNEL, "/rca export INC-1 md")
    await closed.reply(thread, lambda m: "export.private" in m.all_text)
    assert not any(e.kind is EntryKind.REPORT for e in await closed.entries())


async def test_slack_that_does_not_tell_whether_a_channel_is_private_only_delays_the_report(
    closed: Stage,
) -> None:
    thread = await closed.start()
    await closed.client.inject("drop_call", "conversations.info", times=50)
    answer = await _get(closed, "/incidents/INC-1/report.md", **READ)
    assert answer.status_code == 503
    assert "private" not in answer.json()["error"]
    await closed.lead.command(CHANNEL, "/rca export INC-1 md")
    await closed.client.post("faults/clear", {})
    await closed.reply(thread, lambda m: bool(m.raw.get("files")))
    assert (await _get(closed, "/incidents/INC-1/report.md", **READ)).status_code == 200


async def test_own_rules_mask_customers_the_same_way_in_every_format(closed: Stage) -> None:
    await closed.start("sev2 Umbrella Corp waits")
    via = Via(by="U0LEAD", at=closed.bot.services.clock(), key="k1")
    said = "umbrella corp is tenant-4711 on 10.0.0.9, not 10.0.0.8; 保护伞公司也是"
    await closed.bot.services.responding.note("INC-1", said, via)
    masked = set()
    for suffix in ("md", "html", "json"):
        text = (await _get(closed, f"/incidents/INC-1/report.{suffix}", **READ)).text
        for gone in ("mbrella", "4711", "10.0.0.8", "保护伞"):
            assert gone not in text, (suffix, gone)
        assert "10.0.0.9" in text
        masked.add(text.count("masked-name-1"))
    assert all(masked)
