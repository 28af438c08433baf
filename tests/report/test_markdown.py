"""Markdown keeps its shape whatever people have written: judged by a CommonMark parser with GitHub's tables."""

from __future__ import annotations

import html
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.domain.text import Locale
from bot.exporter import ExportOptions
from bot.exporters.markdown import export
from bot.report.markdown import escape, fenced
from bot.report.plain import harmless_cell, visible
from tests.report.sample import HOSTILE, sample_case

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def written(locale: Locale = Locale.EN) -> str:
    return export(
        sample_case(locale=locale).compile(), ExportOptions(locale=locale)
    ).content.decode()


def shown(rendered: str) -> str:
    """What a reader sees of rendered HTML."""
    text = re.sub(r"<br ?/?>\n?", "\n", rendered)
    return html.unescape(re.sub(r"<[^>]*>", "", text)).replace("\n", " ")


def test_every_row_has_as_many_cells_as_its_table_has_columns():
    columns = 0
    for line in written().splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        cells = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) - 1
        columns = columns or cells
        assert cells == columns, line


def test_hostile_messages_are_shown_whole_and_do_nothing():
    rendered = PARSER.render(written())
    text = " ".join(shown(rendered).split())
    for message in HOSTILE:
        wanted = visible(message.replace("\ud83d", "\ufffd")).replace("\n", " ")
        assert " ".join(wanted.split()) in text, message
    assert not re.search(r"<(script|img(?! src=\"INC-7/)|style|iframe)", rendered)
    assert "javascript:" not in "".join(re.findall(r'(?:href|src)="([^"]*)"', rendered))


def test_headings_are_only_our_own():
    rendered = PARSER.render(written())
    titles = re.findall(r"<h[1-6]>(.*?)</h", rendered)
    assert "not a heading" not in " ".join(titles)
    assert sum(1 for _ in re.findall("<h2>", rendered)) == 19


def test_fence_in_a_message_swallows_nothing():
    rendered = PARSER.render(written())
    assert rendered.index("unclosed fence") < rendered.index("<h2>Raw probe results</h2>")


@settings(deadline=None)  # the machine may be busy; the promise is about text, not time
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_survives_a_table_cell(text):
    cell = escape(text)
    assert "\n" not in cell
    rendered = PARSER.render(f"| a | b |\n| --- | --- |\n| {cell or ' '} | end |\n")
    cells = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
    assert len(cells) == 2
    assert shown(cells[1]) == "end"
    wanted = " ".join(visible(text).replace("\t", " ").split())
    assert " ".join(shown(cells[0]).split()) == wanted


@settings(deadline=None)  # the machine may be busy; the promise is about text, not time
@given(st.text(alphabet="`~\n ab", max_size=40))
def test_fence_is_longer_than_any_inside(text):
    block = "\n".join(fenced(text))
    rendered = PARSER.render(f"{block}\n\nafter\n")
    assert rendered.count("<pre>") == 1
    assert "<p>after</p>" in rendered


def test_chinese_report_has_chinese_headings():
    assert "## 时间线" in written(Locale.ZH_CN)


def test_formula_in_a_spreadsheet_cell_is_text_and_a_number_stays_one():
    assert harmless_cell("=cmd|' /C calc'!A0") == "'=cmd|' /C calc'!A0"
    assert harmless_cell("@SUM(A1)").startswith("'")
    assert harmless_cell(" +1+1").startswith("'")
    assert harmless_cell("-3.25e4") == "-3.25e4"
