"""A chart speaks the language of the report that it stands in, whatever the thread speaks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bot.domain.text import Locale
from bot.exporter import ExportOptions
from bot.exporters import render_report
from bot.jobs.reporting import compile_report
from bot.learning.case_folder import read_case
from tests.report import golden
from tests.report.replayed import INCIDENT, firing, played

FORMATS = ("md", "html")


@pytest.mark.parametrize("spoken", list(Locale))
async def test_charts_are_drawn_in_the_language_of_the_report(
    spoken: Locale, redis_url: str, tmp_path: Path
) -> None:
    case = read_case(golden.CASE)
    an_hour = timedelta(hours=1)
    async with played(redis_url, tmp_path, case, recovers_after=an_hour, locale=spoken) as play:
        await play.webhook("alertmanager", firing(case.alert))
        await play.until(0.7)
        report = await compile_report(play.services, INCIDENT)
    words = {Locale.EN: ("usual range", "onset"), Locale.ZH_CN: ("平时范围", "起始")}
    for locale in Locale:
        files = render_report(report, FORMATS, ExportOptions(locale=locale))
        pictures = [
            content.decode() for name, content in files["md"].files.items()
            if name.endswith(".svg") and "causal-chain" not in name
        ]  # fmt: skip
        assert pictures
        figures = files["html"].content.decode().split("<figure>")[1:]
        for picture in [*pictures, *figures]:
            drawing = picture.partition("<svg")[2].partition("</svg>")[0]
            for other in Locale:
                for word in words[other]:
                    assert (word in drawing) == (other is locale), (locale, word)
