"""The page of the figures and its tables: for readers only, in both languages, and inert."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from bot.domain.evidence import BlindSpot
from bot.domain.text import Localized
from bot.domain.timeline import EntryKind
from bot.learning.past import Past
from bot.web.statistics import StatisticsPages
from tests.learning.written import draft, past
from tests.web.door import NOW, opened

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
READER = {"Authorization": "Bearer read"}


class Remembered:
    """An archive that holds what a test gives it."""

    def __init__(self, pasts: Sequence[Past]) -> None:
        self._pasts = tuple(pasts)

    async def pasts(self) -> tuple[Past, ...]:
        return self._pasts


def some() -> list[Past]:
    spot = BlindSpot(what=Localized(HOSTILE, HOSTILE), why=Localized.verbatim("x")).to_json()
    blind = [draft(EntryKind.EVIDENCE, NOW, "found", evidence=[], blind_spots=[spot])]
    return [
        past(f"INC-{n}", days_ago=3 * n + 1, cause="lock_contention", confirmed_after=300.0 * n, alert="A",
             title=f"={HOSTILE}", more=blind)
        for n in range(1, 13)
    ]  # fmt: skip


@pytest.fixture
async def reader(redis_url: str) -> AsyncIterator[Any]:
    async with opened(redis_url, RCA_READ_TOKEN="read") as door:
        services = replace(door.services, archive=Remembered(some()))
        transport = httpx.ASGITransport(Starlette(routes=StatisticsPages(services).routes()))
        async with httpx.AsyncClient(transport=transport, base_url="http://bot") as http:
            yield http


async def test_without_the_token_nothing_is_shown(reader: httpx.AsyncClient) -> None:
    for path in ("/stats", "/stats.csv", "/stats.csv?table=summary"):
        answer = await reader.get(path)
        assert answer.status_code == 401
        assert "INC" not in answer.text


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        (
            "en",
            (
                "What our incidents teach",
                "Median",
                "Definition",
                "n=3",
                "First guess right",
                "opening to",
            ),
        ),
        ("zh-CN", ("从事件中学到的", "中位数", "定义", "n≥3", "首次猜测正确", "锁竞争")),
    ],
)
async def test_the_page_says_figures_n_and_definitions(
    reader: httpx.AsyncClient, locale: str, words: tuple[str, ...]
) -> None:
    answer = await reader.get(f"/stats?range=90d&locale={locale}", headers=READER)
    assert answer.status_code == 200
    for word in words:
        assert word in answer.text
    assert '<svg role="img" aria-label="' in answer.text


async def test_nothing_on_the_page_runs(reader: httpx.AsyncClient) -> None:
    answer = await reader.get("/stats", headers=READER)
    assert "<script" not in answer.text
    assert "onerror=alert(1)>" not in answer.text
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_the_tables_are_machine_readable_and_their_links_open_without_a_token(
    reader: httpx.AsyncClient,
) -> None:
    page = (await reader.get("/stats?range=30d", headers=READER)).text
    links = [html.unescape(found) for found in re.findall(r'href="([^"]*stats\.csv[^"]*)"', page)]
    assert len(links) == 2
    incidents, summary = [await reader.get(link.partition("8080")[2]) for link in links]
    assert incidents.status_code == summary.status_code == 200
    assert incidents.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(incidents.text, newline="")))
    since = NOW - timedelta(days=30)
    assert [row["incident"] for row in rows] == [
        item.id for item in some() if item.opened_at >= since
    ]
    assert all(row["title"].startswith("'=") for row in rows)
    assert {row["measure"] for row in csv.DictReader(io.StringIO(summary.text))} >= {
        "time_to_confirmed_cause_s",
        "recurrence",
    }
    stolen = links[0].partition("8080")[2].replace("/stats.csv", "/stats")
    assert (await reader.get(stolen)).status_code == 401


@pytest.mark.parametrize("span", ["", "0d", "-1d", "9999d", "90", "1h", "1d;x", "９０d"])
async def test_a_span_that_is_none_is_a_400(reader: httpx.AsyncClient, span: str) -> None:
    answer = await reader.get("/stats", params={"range": span}, headers=READER)
    assert answer.status_code == 400
    assert "range" in answer.json()["error"]
