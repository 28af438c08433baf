"""Lines as phones and input methods send them, through the bot's own door: what is recorded is what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bot.domain.timeline import Entry, EntryKind
from bot.slack.directory import Identity
from tests.slack.conftest import CHANNEL, Stage, staged
from tests.slack.test_receiver import post

WAYS = ("command", "mention")


async def send(stage: Stage, way: str, line: str, thread: str, n: int) -> None:
    """One line as Slack delivers it; every delivery carries the same trigger, as a careless sender might."""
    if way == "command":
        form = {
            "command": "/rca",
            "text": line,
            "user_id": "U0SRE",
            "channel_id": CHANNEL,
            "team_id": "T0LOCAL",
            "trigger_id": "1.1.same",
        }
        response = await post(stage, urlencode(form), form=True)
    else:
        event: dict[str, Any] = {
            "type": "app_mention",
            "channel": CHANNEL,
            "user": "U0SRE",
            "text": f"\u200b<@U0RCABOT|rca>： {line}",
            "ts": f"1796070000.{n:06d}",
            "event_ts": f"1796070000.{n:06d}",
            "thread_ts": thread,
        }
        response = await stage.deliver(stage.event(event, f"EvT{n}"))
    assert (response.status_code, response.text) == (200, "")


async def noted(stage: Stage, text: str) -> Entry:
    return await stage.entry(
        lambda e: e.kind is EntryKind.EVIDENCE and e.text is not None and e.text.en == text, text
    )


@pytest.mark.parametrize("way", WAYS)
async def test_lines_are_recorded_as_they_were_meant(stage: Stage, way: str) -> None:
    thread = await stage.start()
    lines = [
        ("note “OOM on gpu-node-17”", "OOM on gpu-node-17"),
        ("note restart done — watching", "restart done — watching"),
        ("note it’s back", "it’s back"),
        ("note “unfinished", "“unfinished"),
        (
            "记录：<@U0LEAD|lin> 看到 p95 &lt; 2 &amp;&amp; 没有报错",
            "@lin.mei 看到 p95 < 2 && 没有报错",
        ),
        ("NOTE see <http://gpu-17.prod.example|gpu-17.prod.example>", "see gpu-17.prod.example"),
        ("note <http://x.example/a?b=1&amp;c=2|the log>", "the log (http://x.example/a?b=1&c=2)"),
        ("note <!here> look", "@here look"),
        ("note ```\nThread 1\n  at a.py:1\n```", "```\nThread 1\n  at a.py:1\n```"),
        ("note two   gaps", "two gaps"),
        ("note\u00a0two　wide\u200b spaces  ", "two wide spaces"),
    ]
    for n, (line, _) in enumerate(lines):
        await send(stage, way, line, thread, n)
    for _, kept in lines:
        await noted(stage, kept)
    await stage.calm()
    evidence = (await stage.incident()).evidence
    assert len([item for item in evidence if item.source.value == "person"]) == len(lines)
    spoken = "".join(str(m.raw) for m in await stage.client.messages(CHANNEL))
    assert "No closing quotation" not in spoken
    assert "Traceback" not in spoken


@pytest.mark.parametrize("way", WAYS)
async def test_options_and_words_are_understood_with_smart_punctuation(
    stage: Stage, way: str
) -> None:
    thread = await stage.start()
    await send(stage, way, "severity：sev1", thread, 1)
    await stage.entry(lambda e: e.kind is EntryKind.SEVERITY and e.data.get("severity") == "sev1")
    await send(
        stage, way, "chart “rate(vllm:num_preemptions_total[5m]) &gt; 0” ––window 2h", thread, 2
    )
    await send(stage, way, "export INC-1 —format md,html", thread, 3)
    await stage.whispered(stage.sre, "md, html")
    await send(stage, way, "　状态", thread, 4)
    await stage.whispered(stage.sre, "INC-1")
    await send(
        stage, way, "probe gpu on <http://gpu-17.prod.example|gpu-17.prod.example>", thread, 5
    )
    await stage.whispered(stage.sre, "gpu-17.prod.example")
    await send(stage, way, "role lead <@U0LEAD|lin.mei>，", thread, 6)
    await stage.entry(lambda e: e.kind is EntryKind.ROLE and e.data.get("user") == "U0LEAD")
    await send(stage, way, "statsu", thread, 7)
    await stage.whispered(stage.sre, "status")
    await send(stage, way, "resolve ‘误报 false alarm’", thread, 8)
    gate = await stage.entry(lambda e: e.kind is EntryKind.GATE and e.text is not None)
    assert gate.text is not None
    assert "误报 false alarm" in gate.text.en
    assert "‘" not in gate.text.en


async def test_start_takes_severity_and_title_out_of_smart_quotes(stage: Stage) -> None:
    await send(stage, "command", "start sev2 “TTFT high — atlas-chat”", "", 1)
    await stage.entry(lambda _: True)
    incident = await stage.incident()
    assert (incident.title, incident.severity.value) == ("TTFT high — atlas-chat", "sev2")


async def test_chinese_deployment_answers_a_chinese_word_in_chinese(
    redis_url: str, tmp_path: Path
) -> None:
    more = {"environment": {"RCA_LOCALE": "zh-CN"}, "locales": {"U0SRE": "zh-CN"}}
    async with staged(redis_url, tmp_path, **more) as stage:
        await send(stage, "command", "　狀態", "", 1)
        await stage.whispered(stage.sre, "没有")
        await send(stage, "command", "装态", "", 2)
        await stage.whispered(stage.sre, "装态")


async def test_mention_is_understood_while_slack_does_not_say_who_the_bot_is(stage: Stage) -> None:
    # As after a start without an answer of Slack's, and nothing remembered from before.
    stage.bot._slack._directory._identity = Identity()
    event = {
        "type": "app_mention",
        "channel": CHANNEL,
        "user": "U0SRE",
        "text": "<@U0RCABOT> start sev2 P99 600 ms",
        "ts": "1796070000.000990",
    }
    assert (await stage.deliver(stage.event(event, "EvWho"))).status_code == 200
    await stage.entry(lambda _: True, "the incident is open")
    assert (await stage.incident()).title == "P99 600 ms"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/rca　状态", "INC-1"),
        ("/rca　　状态　INC-1", "INC-1"),
        ("/rca　ＳＴＡＴＵＳ　ＩＮＣ－１", "INC-1"),
        ("/rca status　inc-１", "INC-1"),
        ("/rca　ｈｅｌｐ　ｐｒｏｂｅ", "/rca probe NAME"),
        ("/rca　探针　ｈｏｓｔ＿ｃｐｕ　在　ｇｐｕ－１，gpu-2", "1 probes on 2 nodes"),
        ("/rca　级别：ＳＥＶ１", "Severity is sev1"),
        ("/rca　记录：“显存　不足”", "Noted as evidence"),
    ],
)
async def test_whole_line_may_be_typed_wide(stage: Stage, line: str, words: str) -> None:
    """From the page to the answer, with the wide space that a Chinese input method puts behind the command."""
    await stage.start()
    assert (await stage.sre.command(CHANNEL, line)).is_good
    await stage.whispered(stage.sre, words)
