"""A stored drawing gets into a page only as shapes and text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bot.domain.text import Locale
from bot.report.chain_svg import WIDTH, chain_svg, wrap
from bot.report.svg import clean_svg, themed
from bot.report.wording import Wording
from tests.report.sample import sample_case

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 10">'


def cleaned(inner: str) -> str:
    content = clean_svg(f"{HEAD}{inner}</svg>".encode(), name="c1", alt='a "quoted" <alt>')
    assert content is not None
    return content.decode()


@pytest.mark.parametrize(
    "inner",
    [
        "<script>alert(1)</script>",
        '<g onclick="alert(1)"><path d="M0 0"/></g>',
        '<a xlink:href="javascript:alert(1)"><text>x</text></a>',
        '<image href="https://tracker.example/p.png"/>',
        "<foreignObject><body/></foreignObject>",
        "<style>@import url(https://evil.example/x.css)</style>",
        '<path style="fill: url(https://evil.example/x)"/>',
        '<use xlink:href="https://evil.example/x.svg#a"/>',
        '<path fill="url(javascript:alert(1))"/>',
    ],
)
def test_active_content_is_gone(inner):
    text = cleaned(inner)
    for word in ("script", "onclick", "javascript", "evil", "tracker", "foreignObject", "@import"):
        assert word not in text


def test_ids_of_two_drawings_never_meet():
    text = cleaned(
        '<defs><clipPath id="p1"><rect/></clipPath></defs><path clip-path="url(#p1)"/><use xlink:href="#p1"/>'
    )
    assert 'id="c1-p1"' in text
    assert "url(#c1-p1)" in text
    assert 'href="#c1-p1"' in text


def test_drawing_says_what_it_shows():
    root = ElementTree.fromstring(cleaned("<path/>"))
    assert root.get("aria-label") == 'a "quoted" <alt>'
    assert root.get("role") == "img"


@pytest.mark.parametrize(
    "content",
    [
        b"no drawing",
        b"<html></html>",
        b'<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
        b"<svg xmlns='http://www.w3.org/2000/svg'><g></svg>",
    ],
)
def test_what_is_no_drawing_is_left_out(content):
    assert clean_svg(content, name="c", alt="") is None


def test_colours_follow_the_page():
    assert themed('fill="#1f2328"') == 'fill="var(--c1f2328,#1f2328)"'


def test_chain_shows_each_link_with_its_evidence_and_marks_the_one_without():
    report = sample_case().compile()
    drawing = chain_svg(Wording.of(report, Locale.ZH_CN))
    root = ElementTree.fromstring(drawing)
    text = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "锁页内存分配被锁竞争阻塞" in text
    assert all(ref in text for ref in report.chain[-1].evidence)
    assert "h2d_copy_slow · 未引用证据" in text
    assert "chg-pool" in text


def test_long_text_wraps_and_ends_in_an_ellipsis():
    lines = wrap("等待缓冲池" * 60, WIDTH - 60, 17, most=4)
    assert len(lines) == 4
    assert lines[-1].endswith("…")
    assert wrap("one two", 1000, 17, most=4) == ["one two"]
    assert all(len(line) < 100 for line in wrap("x" * 400, WIDTH, 17, most=9))
