"""Searching all lines at once finds what searching each alone finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.diagnosis.line_search import LineSearch
from bot.source import LogLine

PATTERNS = (
    "time.?out",
    "(read|load).*slow",
    r"^start",
    r"done$",
    r"\bXid\b.*: \d+",
    r"[A-F]{2}",
    r"a\s+b",
    "x*",
    r"Foo\S+BAR",
)


def lines(texts: list[str]) -> list[LogLine]:
    return [LogLine(at_ns=at, labels={}, text=text) for at, text in enumerate(texts)]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(
    texts=st.lists(
        st.lists(
            st.sampled_from(
                ["timeout", "Time-Out", "read", "slow", "start", "done", "Xid", "xid: 7", ": 31", "AB", "a", "b", " ", "", "等待", "fooZBAR", "İ"]
            ), max_size=4,
        ).map(" ".join), max_size=8,
    )
)  # fmt: skip
def test_one_scan_equals_a_search_of_each_line(pattern: str, texts: list[str]) -> None:
    alone = re.compile(pattern, re.IGNORECASE)
    found = LineSearch(lines(texts)).matching(pattern)
    assert [line.at_ns for line in found] == [
        at for at, text in enumerate(texts) if alone.search(text)
    ]
