"""Command lines as people type them: phones, Chinese, smart punctuation, Slack's own links."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import CommandError
from bot.slack.text import command_text
from commands import _line
from commands._words import split_incident, split_word

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("raw", "word", "text"),
    [
        ("note “OOM on gpu-node-17”", "note", "OOM on gpu-node-17"),
        ("resolve ‘误报 false alarm’", "resolve", "误报 false alarm"),
        ("severity：sev1", "severity", "sev1"),
        ("note restart done — watching", "note", "restart done — watching"),
        ("note it’s back", "note", "it’s back"),
        ("note “unfinished", "note", "“unfinished"),
        ("　状态", "status", ""),
        ("note a\u00a0b", "note", "a b"),
        (
            "probe gpu on <http://gpu-17.prod.example|gpu-17.prod.example>",
            "probe",
            "gpu on gpu-17.prod.example",
        ),
        ('note say "yes" or "no"', "note", 'say "yes" or "no"'),
    ],
    ids=range(10),
)
def test_free_text_keeps_what_was_meant(raw: str, word: str, text: str) -> None:
    found, rest = split_word(command_text(raw))
    assert (found, _line.read(rest).text) == (word, text)


def test_dashed_option_of_a_word_processor_is_an_option() -> None:
    _, rest = split_word(
        command_text("chart “rate(vllm:num_preemptions_total[5m]) &gt; 0” ––window 2h")
    )
    line = _line.read(rest, short=("range",), window="range")
    assert line.text == "rate(vllm:num_preemptions_total[5m]) > 0"
    assert line.options == {"range": "2h"}
    named, text = split_incident("INC-12 —format md,pdf")
    assert named == "INC-12"
    assert _line.read(text, short=("format",)).options == {"format": "md,pdf"}


def test_equals_signs_of_a_query_are_not_options() -> None:
    line = _line.read('sum(rate(x{job="api",le="+Inf"}[5m])) range=30m', short=("range",))
    assert line.text == 'sum(rate(x{job="api",le="+Inf"}[5m]))'
    assert line.options == {"range": "30m"}


def test_long_options_run_to_the_next_one() -> None:
    line = _line.read(
        "P99 is 600 ms metric=histogram_quantile(0.99, x) > 0.3 scope=gpu-1, all tenants since=20:05",
        short=("since",),
        long=("metric", "scope"),
    )
    assert line.text == "P99 is 600 ms"
    assert line.options == {
        "metric": "histogram_quantile(0.99, x) > 0.3",
        "scope": "gpu-1, all tenants",
        "since": "20:05",
    }


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("19:30", "2026-11-30T11:30:00+00:00"),
        ("21:00", "2026-11-29T13:00:00+00:00"),
        ("30m", "2026-11-30T11:30:00+00:00"),
        ("2026-11-30T16:15:00+08:00", "2026-11-30T08:15:00+00:00"),
        ("2026-11-30 16:15", "2026-11-30T08:15:00+00:00"),
    ],
)
def test_time_is_read_in_the_deployments_zone(text: str, utc: str) -> None:
    assert _line.moment(text, NOW, SHANGHAI, "u").isoformat() == utc


@pytest.mark.parametrize("text", ["25:00", "tomorrow", "2027-01-01T00:00:00Z", "", "0m", "99999d"])
def test_time_that_is_none_is_refused_with_the_usage(text: str) -> None:
    with pytest.raises(CommandError, match="symptom"):
        _line.moment(text, NOW, SHANGHAI, "symptom since=TIME")


@given(st.text(max_size=200))
def test_any_line_is_read_without_a_crash(text: str) -> None:
    word, rest = split_word(command_text(text))
    line = _line.read(rest, short=("since", "range"), long=("metric",))
    assert isinstance(word, str)
    assert all(isinstance(value, str) for value in line.options.values())
