"""The HTML report is one file that loads nothing and runs nothing, with every entry in it once."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

import pytest

from bot.domain.text import Locale
from bot.exporter import ExportOptions
from bot.exporters.html import export
from bot.report.charts import draw
from bot.report.plain import visible
from tests.report.sample import HOSTILE, WITHHELD_TEXT, sample_case
from tests.report.sample_chart import chart_spec


class Reader(HTMLParser):
    """Collects what a browser would act on, and what a reader would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.handlers: list[str] = []
        self.ids: Counter[str] = Counter()
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        if tag == "br":
            self.texts.append(" ")
        for name, value in attrs:
            if name == "href":
                self.links.append(value)
            if name in ("src", "srcset", "data", "action", "xlink:href"):
                self.sources.append(value)
            if name.startswith("on"):
                self.handlers.append(name)
            if name == "id":
                self.ids[value] += 1

    def handle_data(self, data):
        self.texts.append(data)


def read(locale: Locale = Locale.EN, *, charts: bool = False) -> tuple[Reader, str]:
    blobs = {}
    if charts:
        chart = draw(chart_spec(), locale)
        for name in ("symptom", "deciding"):
            blobs |= {f"{name}.svg": chart.svg, f"{name}.csv": chart.csv}
    page = export(sample_case(locale=locale, charts=blobs).compile(), ExportOptions(locale=locale))
    text = page.content.decode()
    reader = Reader()
    reader.feed(text)
    return reader, text


def test_page_loads_nothing_and_runs_nothing():
    reader, text = read(charts=True)
    assert not {"script", "iframe", "object", "embed", "link", "base", "form"} & set(reader.tags)
    assert reader.handlers == []
    assert reader.sources == []
    assert all(
        link.startswith(("#", "https://example.slack.com/", "data:text/csv;base64,"))
        for link in reader.links
    )
    assert "url(http" not in text
    assert "Content-Security-Policy" in text


def test_hostile_messages_are_seen_as_written():
    reader, _ = read()
    seen = " ".join("".join(reader.texts).split())
    for message in HOSTILE:
        assert " ".join(visible(message.replace("\ud83d", "\ufffd")).split()) in seen, message


def test_every_entry_has_one_row_and_every_id_is_unique():
    reader, _ = read(charts=True)
    case = sample_case()
    rows = {name: count for name, count in reader.ids.items() if name.startswith("t-")}
    assert rows == {f"t-{entry.seq}": 1 for entry in case.entries}
    assert [name for name, count in reader.ids.items() if count > 1] == []


def test_links_inside_the_report_lead_somewhere():
    reader, _ = read()
    inner = {link[1:] for link in reader.links if link.startswith("#")}
    assert inner <= set(reader.ids)


def test_withheld_text_is_nowhere():
    assert WITHHELD_TEXT not in read()[1]


@pytest.mark.parametrize("locale", list(Locale))
def test_page_names_its_language_and_is_usable_without_eyes(locale):
    reader, text = read(locale, charts=True)
    assert f'<html lang="{locale.value}">' in text
    assert text.count('role="img"') == reader.tags["svg"] == text.count("aria-label=") - 1
    assert reader.tags["h1"] == 1
    assert reader.tags["th"] == text.count('scope="col"')


def test_drawing_follows_the_dark_theme():
    _, text = read(charts=True)
    assert "prefers-color-scheme: dark" in text
    assert "var(--c0072b2,#0072b2)" in text
