"""What is alike, what recurs, and what a search finds: in both languages, and never an exercise."""

from __future__ import annotations

import random

import pytest

from bot.learning.search import search
from bot.learning.similar import (
    recurrence_by_cause,
    recurrence_by_signature,
    recurring,
    similar_to,
)
from bot.learning.words import words_of
from tests.learning.written import past

OLD = past(
    "INC-1", title="P99 of translate-api is 600 ms", days_ago=20, alert="LatencyHigh",
    cause="lock_contention", notes=["the tokenizer pool was at its limit"],
)  # fmt: skip
CHINESE = past(
    "INC-2", title="翻译服务延迟升高", days_ago=10, symptom="P99 延迟从 80 毫秒升到 600 毫秒",
    cause="cpu_contention",
)  # fmt: skip
OTHER = past(
    "INC-3", title="disk of billing-db is full", service="billing-db", days_ago=5, alert="DiskFull"
)
EXERCISE = past(
    "INC-4",
    title="P99 of translate-api is 600 ms",
    days_ago=3,
    alert="LatencyHigh",
    drill="memory_leak",
)
ALL = (EXERCISE, OTHER, CHINESE, OLD)


def test_same_alert_rule_comes_first_and_says_why() -> None:
    now = past("INC-9", title="P99 of translate-api is 900 ms", days_ago=0, alert="LatencyHigh")
    found = similar_to(now, ALL)
    assert found[0].id == "INC-1"
    assert {"signature", "service", "words"} <= set(found[0].why)
    assert found[0].cause == "lock_contention"


def test_an_incident_told_in_chinese_is_alike_by_its_words() -> None:
    now = past(
        "INC-9", title="翻译服务 P99 延迟升高到 700 毫秒", days_ago=0, service="translate-api"
    )
    found = similar_to(now, ALL)
    assert [item.id for item in found] == ["INC-2"]
    assert "words" in found[0].why


def test_another_service_with_another_alert_is_not_alike() -> None:
    now = past(
        "INC-9", title="answers are garbled", service="chat-api", days_ago=0, alert="Quality"
    )
    assert similar_to(now, ALL) == ()


def test_an_exercise_is_neither_alike_nor_a_recurrence() -> None:
    now = past("INC-9", title="P99 of translate-api is 900 ms", days_ago=0, alert="LatencyHigh")
    assert "INC-4" not in {item.id for item in similar_to(now, ALL)}
    assert recurrence_by_signature(now, ALL).incidents == ("INC-1",)


def test_order_of_what_is_remembered_changes_nothing() -> None:
    now = past(
        "INC-9", title="P99 of translate-api 延迟 is 900 ms", days_ago=0, alert="LatencyHigh"
    )
    wanted = similar_to(now, ALL)
    for seed in range(5):
        mixed = list(ALL)
        random.Random(seed).shuffle(mixed)
        assert similar_to(now, mixed) == wanted


def test_recurrence_counts_the_same_rule_on_other_instances_within_the_days() -> None:
    pasts = [
        past("INC-1", days_ago=40, alert="LatencyHigh"),
        past("INC-2", days_ago=12, alert="LatencyHigh", labels={"instance": "gpu-1:9100"}),
        past("INC-3", days_ago=2, alert="LatencyHigh", labels={"instance": "gpu-2:9100"}),
    ]
    now = past("INC-9", days_ago=0, alert="LatencyHigh", labels={"instance": "gpu-3:9100"})
    assert recurrence_by_signature(now, pasts).incidents == ("INC-3", "INC-2")


def test_recurrence_by_cause_needs_the_same_service() -> None:
    pasts = [
        past("INC-1", days_ago=3, cause="memory_leak"),
        past("INC-2", days_ago=2, cause="memory_leak", service="chat-api"),
        past("INC-3", days_ago=1, cause="cpu_contention"),
    ]
    now = past("INC-9", days_ago=0, cause="memory_leak")
    assert recurrence_by_cause(now, pasts).incidents == ("INC-1",)


def test_counting_all_at_once_agrees_with_counting_each() -> None:
    draw = random.Random(4)
    pasts = [
        past(
            f"INC-{n}", days_ago=draw.uniform(0, 200), alert=draw.choice([None, "A", "B", "C"]),
            cause=draw.choice([None, "memory_leak", "cpu_contention"]),
            service=draw.choice(["translate-api", "chat-api"]),
            drill=draw.choice([None, None, None, "memory_leak"]),
        )
        for n in range(60)
    ]  # fmt: skip
    each = {
        item.id
        for item in pasts
        if not item.is_drill
        and (recurrence_by_signature(item, pasts).count or recurrence_by_cause(item, pasts).count)
    }
    assert recurring(pasts) == each
    assert 0 < len(each) < len(pasts)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("lock contention", "INC-1"),
        ("锁竞争", "INC-1"),
        ("tokenizer pools", "INC-1"),
        ("延迟升高", "INC-2"),
        ("争用", "INC-2"),
        ("billing disk", "INC-3"),
        ("INC-3", "INC-3"),
        ("连接池", "INC-1"),
    ],
)
def test_search_finds_titles_causes_and_notes_in_both_languages(text: str, wanted: str) -> None:
    hits = search(text, (OTHER, CHINESE, OLD))
    assert hits[0].past.id == wanted


def test_word_that_stands_nowhere_does_not_hide_what_the_others_find() -> None:
    found = [hit.past.id for hit in search("tokenizer", ALL)]
    assert found
    assert [hit.past.id for hit in search("tokenizer zebra", ALL)] == found
    assert search("tokenizer zebra quagga", ALL) == ()


def test_search_ranks_the_title_above_a_note() -> None:
    noted = past("INC-1", title="errors of chat-api", notes=["could be the tokenizer"], days_ago=1)
    titled = past("INC-2", title="tokenizer is stuck", days_ago=9)
    hits = search("tokenizer", (noted, titled))
    assert [(hit.past.id, hit.fields[0]) for hit in hits] == [("INC-2", "title"), ("INC-1", "note")]


@pytest.mark.parametrize("text", ["", "   ", "。，！", "the of", "zzz-nowhere", "()[]*+?\\"])
def test_search_without_a_known_word_finds_nothing(text: str) -> None:
    assert search(text, ALL) == ()


def test_words_are_the_same_in_any_width_and_case() -> None:
    assert words_of("ＧＰＵ Clocks") == words_of("gpu clock")
    assert words_of("锁") == ["锁"]
