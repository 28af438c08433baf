"""What keyboards, phones, word processors and Chinese input methods make of a command line."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.responder import Severity
from bot.slack.text import command_text, prose_text
from commands import _line, _typed
from commands._words import CHINESE, split_incident, split_word

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "word", "rest"),
    [
        ("STATUS", "status", ""),
        ("Status。", "status", ""),
        ("ｓｔａｔｕｓ", "status", ""),
        ("狀態", "status", ""),
        ("状态，INC-1", "status", "INC-1"),
        ("/rca status", "status", ""),
        ("／RCA　状态", "status", ""),
        ("`status`", "status", ""),
        ("\ufeffstatus\u200b ", "status", ""),
        ("sta\u200btus", "status", ""),
        ("note\u00a0a\u202fb", "note", "a b"),
        ("note first\n  second\r\nthird", "note", "first\n  second\nthird"),
        ("note：OOM，第二次", "note", "OOM，第二次"),
        ("note: http://x.example/a", "note", "http://x.example/a"),
        ("INC-12 status", "status", "INC-12"),
        ("INC-12", "status", "INC-12"),
        ("inc‑7：note it’s back", "note", "INC-7 it’s back"),
        ("记录 已回滚——观察中", "note", "已回滚——观察中"),
        ("", "", ""),
    ],
)
def test_word_is_found_however_it_is_typed(raw: str, word: str, rest: str) -> None:
    assert split_word(raw) == (word, rest)


@pytest.mark.parametrize(
    ("typed", "named", "rest"),
    [
        ("INC-12 —format md", "INC-12", "—format md"),
        ("inc-12：md", "INC-12", "md"),
        ("ＩＮＣ－１２", "INC-12", ""),
        ("INC–12", "INC-12", ""),
        ("INC12 md", "INC-12", "md"),
        # Not taken for "no incident named": it is answered with "no such incident".
        (f"INC-{'9' * 26}", f"INC-{'9' * 26}", ""),
        ("INC-12-b", None, "INC-12-b"),
        ("include this", None, "include this"),
        ("inc 5 errors", None, "inc 5 errors"),
    ],
)
def test_incident_is_named_with_any_dash(typed: str, named: str | None, rest: str) -> None:
    assert split_incident(typed) == (named, rest)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("“a b”", "a b"),
        ("”a b”", "a b"),
        ('"a b”', "a b"),
        ("„a b“", "a b"),
        ("＂a b＂", "a b"),
        ("「a b」", "a b"),
        ("『a b』", "a b"),
        ("‘it’s back’", "it’s back"),
        ("‘a’ and ‘b’", "‘a’ and ‘b’"),
        ("“a” and “b”", "“a” and “b”"),
        ("it’s back", "it’s back"),
        ("'tis so", "'tis so"),
        ("“unfinished", "“unfinished"),
        ("“", "“"),
    ],
)
def test_marks_go_only_where_they_enclose_everything(typed: str, kept: str) -> None:
    assert _line.said(typed) == kept
    assert _line.read(typed).text == kept


@pytest.mark.parametrize(
    ("typed", "text", "options"),
    [
        ("md —since 2h", "md", {"since": "2h"}),
        ("md ―since=2h", "md", {"since": "2h"}),
        ("md −−since：2h", "md", {"since": "2h"}),
        ("md --since=2h", "md", {"since": "2h"}),
        ("md since＝2h", "md", {"since": "2h"}),
        ("md since = 2h", "md", {"since": "2h"}),
        ("md SINCE=“20m ago” x", "md x", {"since": "20m ago"}),
        ("md since=2026-11-30 16:15 x", "md x", {"since": "2026-11-30 16:15"}),
        ("restart done — since then calm", "restart done — since then calm", {}),
        ("x since==2", "x since==2", {}),
    ],
)
def test_options_are_found_with_any_dash_and_equals_sign(
    typed: str, text: str, options: dict[str, str]
) -> None:
    line = _line.read(typed, short=("since",))
    assert (line.text, line.options) == (text, options)


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("“rate(vllm:num_preemptions_total[5m]) > 0”", "rate(vllm:num_preemptions_total[5m]) > 0"),
        ("rate(x{job=“api”,le=‘0.5’}[5m])", "rate(x{job=\"api\",le='0.5'}[5m])"),
        ("rate（x｛job＝“api”｝［5m］）＞0", 'rate(x{job="api"}[5m])>0'),
        ('x{msg="失败，重试（2）"}', 'x{msg="失败，重试（2）"}'),
        ("`up == 1`", "up == 1"),
        ("```\nup\n```", "up"),
        ("a − b", "a - b"),
    ],
)
def test_query_gets_the_marks_that_its_language_knows(typed: str, query: str) -> None:
    assert _typed.query(typed) == query


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        ("2h", 7200),
        ("２ｈ", 7200),
        ("15 min", 900),
        ("15分钟", 900),
        ("3天", 259_200),
        ("1周", 604_800),
    ],
)
def test_span_is_read_in_words_of_both_languages(typed: str, seconds: float) -> None:
    assert _line.duration(typed, "u") == seconds


@pytest.mark.parametrize(
    "typed", ["20：00", "20:00", "２０：００", "2026-11-30 20:00", "0.0001m ago"]
)
def test_time_may_be_typed_wide(typed: str) -> None:
    at = _line.moment(typed, NOW, ZoneInfo("Asia/Shanghai"), "u")
    assert abs((at - NOW).total_seconds()) < 1


@pytest.mark.parametrize(
    ("typed", "level", "rest"),
    [
        ("sev2 “TTFT high — atlas-chat”", Severity.SEV2, "“TTFT high — atlas-chat”"),
        ("SEV-1：翻译超时", Severity.SEV1, "翻译超时"),
        ("Ｓｅｖ３，x", Severity.SEV3, "x"),
        ("sev2", Severity.SEV2, ""),
        ("sev25 x", None, "sev25 x"),
        ("several nodes", None, "several nodes"),
    ],
)
def test_severity_stands_before_the_title(typed: str, level: Severity | None, rest: str) -> None:
    assert _line.severity(typed) == (level, rest)


def test_words_for_the_record_name_people_and_keep_addresses() -> None:
    raw = (
        "note <@U1|lin> &amp; <@U2> saw <http://gpu-17.prod.example|gpu-17.prod.example> in "
        "<https://x.example/a?b=1&amp;c=2|the log>, <!here> <!subteam^S1|@on-call> <#C1|alerts> a &lt; b"
    )
    assert prose_text(raw, {"U1": "林岚"}) == (
        "note @林岚 & @U2 saw gpu-17.prod.example in the log (https://x.example/a?b=1&c=2), "
        "@here @on-call #alerts a < b"
    )


def test_words_of_names_keep_ids_and_hosts() -> None:
    assert command_text("role lead <@U1|lin>") == "role lead <@U1|lin>"
    host = "probe gpu on <http://gpu-17.example:9477|gpu-17.example:9477>,<http://gpu-2.example|gpu-2.example>"
    assert command_text(host) == "probe gpu on gpu-17.example:9477,gpu-2.example"
    linked = 'chart up{instance="<http://gpu-17.example:9400|gpu-17.example:9400>"} &gt; 0'
    assert command_text(linked) == 'chart up{instance="gpu-17.example:9400"} > 0'


def test_typo_in_chinese_finds_its_word() -> None:
    assert _line.nearest("严重级", CHINESE) == "严重级别"


@given(st.text(max_size=300))
def test_any_text_is_read_and_reading_twice_changes_nothing(text: str) -> None:
    word, rest = split_word(text)
    assert isinstance(word, str)
    assert _typed.cleaned(rest) == rest or rest == ""
    for made in (_typed.cleaned(text), _typed.plain_spaces(text)):
        assert type(made)(made) == made
    assert _typed.cleaned(_typed.cleaned(text)) == _typed.cleaned(text)
    assert isinstance(_typed.query(text), str)
    assert _line.severity(text)[1] in text
    split_incident(text)
