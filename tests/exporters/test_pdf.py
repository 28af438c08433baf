"""The PDF has its Chinese, its page numbers and no empty box."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import cache

import pytest
from pypdf import PdfReader

from bot.domain.text import Locale
from bot.exporter import ExportOptions
from bot.exporters.pdf import export
from bot.report import pdf as writer
from bot.report.breaking import breakable
from bot.report.charts import draw
from bot.report.html import write_html
from bot.report.outline import outline
from bot.report.pdf import typeset
from bot.report.redact import redact
from tests.report.sample import WITHHELD_TEXT, sample_case
from tests.report.sample_chart import chart_spec
from tests.report.sample_script import Script

PARAGRAPHS = (
    "根因：KV 缓存耗尽，请求被抢占并重新计算。",
    "影响：首字延迟 p95 由 0.4 秒升至 6.5 秒（−94 % 吞吐）。",
    "Root cause: KV cache exhausted. 処理: 再起動。한국어 메모.",
    "節點 🔥 hot",
)


@cache
def content() -> bytes:
    chart = draw(chart_spec(), Locale.ZH_CN)
    blobs = {"deciding.svg": chart.svg, "deciding.csv": chart.csv}
    case = sample_case(locale=Locale.ZH_CN, charts=blobs, hostile=PARAGRAPHS)
    return export(case.compile(), ExportOptions(locale=Locale.ZH_CN)).content


def text_of(pdf: bytes) -> str:
    pages = PdfReader(io.BytesIO(pdf)).pages
    # Text runs are cut where a line wraps; what was written is what is left without white space.
    return re.sub(r"\s", "", "".join(page.extract_text() for page in pages))


def test_chinese_can_be_read_out_of_the_pdf_again():
    said = text_of(content())
    for paragraph in PARAGRAPHS[:3]:
        assert re.sub(r"\s", "", paragraph) in said
    assert "锁页内存争用：决定性证据" in said, "the chart's text is text"


def test_character_that_no_font_has_is_written_as_its_code_point():
    assert "<U+1F525>" in text_of(content())


def test_no_glyph_is_missing():
    """Glyph 0 is the empty box and FFFF a character that no font had; no text of any page uses them."""
    glyphs: set[bytes] = set()
    for page in PdfReader(io.BytesIO(content())).pages:
        stream = page.get_contents().get_data()
        for shown in re.findall(
            rb"<([0-9a-fA-F]+)>", b"".join(re.findall(rb"\[.*?\] ?TJ", stream))
        ):
            glyphs |= {shown[i : i + 4] for i in range(0, len(shown), 4)}
    assert len(glyphs) > 100
    assert not {b"0000", b"ffff", b"FFFF"} & glyphs


def test_fonts_are_inside_and_small():
    assert len(content()) < 2_000_000
    fonts = {
        str(font.get_object()["/BaseFont"])
        for page in PdfReader(io.BytesIO(content())).pages
        for font in page["/Resources"]["/Font"].values()
    }
    assert fonts
    assert all("+" in name for name in fonts), "each is a subset"


def test_pages_are_numbered():
    pages = PdfReader(io.BytesIO(content())).pages
    assert len(pages) >= 5
    for number, page in enumerate(pages, 1):
        assert f"{number}/{len(pages)}" in re.sub(r"\s", "", page.extract_text())


def test_links_go_to_the_thread_or_inside_and_nothing_acts():
    reader = PdfReader(io.BytesIO(content()))
    targets = [
        str(note.get_object()["/A"]["/URI"])
        for page in reader.pages
        for note in page.get("/Annots", ())
        if "/A" in note.get_object() and "/URI" in note.get_object()["/A"]
    ]
    assert targets
    assert all(target.startswith("https://example.slack.com/") for target in targets)
    assert b"/JavaScript" not in content()
    assert b"/Launch" not in content()


def test_withheld_text_is_nowhere():
    assert re.sub(r"\s", "", WITHHELD_TEXT) not in text_of(content())


def test_without_a_chinese_font_the_report_is_english_and_says_which_font_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(writer, "find_chinese_font", lambda: None)
    report = sample_case(locale=Locale.ZH_CN, is_established=False).compile()
    said = text_of(writer.write_pdf(report, Locale.ZH_CN))
    assert "fonts-noto-cjk" in said
    assert "fonts-noto-cjk" in caplog.text
    assert "Timeline" in said
    assert not re.search("[\u4e00-\u9fff]", said)


def test_a_word_that_no_line_holds_keeps_nobody_waiting():
    # 40,000 letters without places to break take a minute or more to typeset.
    word = "QmFzZTY0" * 5000
    broken = breakable(f"before {word} after")
    assert max(len(piece) for piece in broken.split("\u200b")) < 100
    assert broken.replace("\u200b", "") == f"before {word} after"


def test_ordinary_words_stay_as_they_are():
    text = "a " + "ab" * 32 + " pod-7_b and 这是没有空格的中文" * 100
    assert breakable(text) == text


def test_names_break_between_their_parts_and_are_copied_whole():
    name = "rate(vllm:time_to_first_token_seconds_sum"
    assert breakable(name).split("\u200b") == [
        "rate(", "vllm:", "time_", "to_", "first_", "token_", "seconds_", "sum",
    ]  # fmt: skip
    script = Script()
    script.entries = list(sample_case().entries)
    script.say(900, "U0LIN", f"{name} {'y' * 700}")
    page = outline(
        redact(replace(sample_case(), entries=tuple(script.entries)).compile()), Locale.EN
    )
    told = next(section for section in page.sections if section.id == "timeline")
    said = text_of(
        typeset(write_html(replace(page, sections=(told,)), is_paged=True), "x", is_tagged=False)
    )
    assert name in "".join(said.split())
    assert "y" * 700 in "".join(said.split())
    assert "U+200B" not in said
