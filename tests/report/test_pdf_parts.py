"""A long report in parts: nothing is lost or said twice, pages are numbered through, the bytes are the same twice."""

from __future__ import annotations

import fcntl
import io
import os
import re
import subprocess
from collections import Counter

import pytest
from pypdf import PdfReader

from bot.domain.text import Locale
from bot.report import pdf, pdf_parts
from bot.report.blocks import Figure, Page, Paragraph, Row, Section, Span, Table
from bot.report.pdf import write_pdf
from bot.report.redact import redact
from tests.bench.report import long_case


def _page(rows: int, figures: int = 0) -> Page:
    table = Table(
        caption="Entries",
        columns=("No.", "Time", "Text"),
        rows=tuple(
            Row(
                cells=(
                    (Span(str(n)),),
                    (Span("noon"), Span("\n"), Span("via x")),
                    (Span(f"<{n}>"),),
                ),
                anchor=f"t-{n}",
            )
            for n in range(rows)
        ),
        is_log=True,
    )
    drawn = tuple(Figure(name=f"f{n}", caption="c", alt="a", svg=b"<svg/>") for n in range(figures))
    return Page(
        id="INC-1", title="T", subtitle="S", badges=(), lang="en", zone="UTC", footer="F",
        sections=(
            Section(id="summary", title="Summary", blocks=(Paragraph(spans=(Span("x"),)),)),
            Section(id="timeline", title="Timeline", blocks=(table,)),
            Section(id="charts", title="Charts", blocks=drawn),
        ),
    )  # fmt: skip


def _texts(page: Page) -> list[str]:
    return [
        "".join(span.text for span in row.cells[-1])
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Table)
        for row in block.rows
    ]


def test_short_report_is_one_part():
    page = pdf_parts.running(_page(100, figures=3))
    parts = pdf_parts.parts_of(page)
    assert [part.page for part in parts] == [page]


def test_every_row_and_figure_is_in_exactly_one_part_in_order():
    page = pdf_parts.running(_page(5000, figures=60))
    parts = pdf_parts.parts_of(page)
    assert len(parts) > 5
    assert [text for part in parts for text in _texts(part.page)] == [f"<{n}>" for n in range(5000)]
    figures = [
        block.name
        for part in parts
        for section in part.page.sections
        for block in section.blocks
        if isinstance(block, Figure)
    ]
    assert figures == [f"f{n}" for n in range(60)]


def test_only_the_first_piece_of_a_section_carries_its_title():
    parts = pdf_parts.parts_of(pdf_parts.running(_page(5000)))
    titles = [section.title for part in parts for section in part.page.sections if section.title]
    assert titles == ["Summary", "Timeline"]
    assert [part.is_first for part in parts] == [True] + [False] * (len(parts) - 1)


def test_parts_cost_no_more_than_their_measure():
    """A text of a megabyte in one cell is as much work as many entries."""
    page = _page(3000)
    long = Row(cells=((Span("1"),), (Span("t"),), (Span("x" * 1_000_000),)))
    sections = list(page.sections)
    table = sections[1].blocks[0]
    assert isinstance(table, Table)
    sections[1] = Section(
        id="timeline",
        title="Timeline",
        blocks=(Table(caption="", columns=table.columns, rows=(*table.rows, long), is_log=True),),
    )
    made = pdf_parts.running(
        Page(
            id="1", title="", subtitle="", badges=(), lang="en", zone="UTC", footer="",
            sections=tuple(sections),
        )
    )  # fmt: skip
    sizes = [len(_texts(part.page)) for part in pdf_parts.parts_of(made)]
    assert sum(sizes) == 3001
    assert max(sizes) <= pdf_parts.PART_COST


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """One long report, written twice; made once for all processes of a run, since it costs half a minute."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    kept = [folder / "long-report-1.pdf", folder / "long-report-2.pdf"]
    with (folder / "long-report.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept[-1].exists():
            for path, content in zip(kept, _write_twice(), strict=True):
                path.write_bytes(content)
    return kept[0].read_bytes(), kept[1].read_bytes()


def _write_twice() -> tuple[bytes, bytes]:
    report = redact(long_case(entries=300, charts=1, files=5).compile())
    whole, part = pdf_parts.WHOLE_COST, pdf_parts.PART_COST
    try:
        pdf_parts.WHOLE_COST, pdf_parts.PART_COST = 200, 200
        return write_pdf(report, Locale.EN), write_pdf(report, Locale.EN)
    finally:
        pdf_parts.WHOLE_COST, pdf_parts.PART_COST = whole, part


def test_joined_pages_are_numbered_through(written):
    pages = PdfReader(io.BytesIO(written[0])).pages
    assert len(pages) > 12
    for number, page in enumerate(pages, 1):
        said = re.sub(r"\s", "", page.extract_text())
        assert f"{number}/{len(pages)}" in said


def test_joined_report_is_the_same_twice(written):
    assert written[0] == written[1]


def test_joined_report_holds_every_entry_once(written):
    text = "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(written[0])).pages)
    seen = Counter(re.findall(r"^(\d+) · \d\d:\d\d:\d\d", text, re.MULTILINE))
    assert seen == {str(n): 1 for n in range(1, 301)}


def test_joined_report_has_its_outline_and_its_title(written):
    reader = PdfReader(io.BytesIO(written[0]))
    titles = [item.title for item in _flat(reader.outline)]
    for title in ("Summary", "Timeline", "Evidence", "Charts", "Raw probe results"):
        assert titles.count(title) == 1
    assert reader.metadata is not None
    assert str(reader.metadata.title).startswith("INC-7")


def _flat(items):  # type: ignore[no-untyped-def]
    for item in items:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


def test_no_glyph_is_missing_in_the_page_numbers(written):
    for page in PdfReader(io.BytesIO(written[0])).pages:
        stamps = re.findall(rb"/RcaPage 8 Tf .*? <([0-9a-f]+)> Tj", page.get_contents().get_data())
        assert len(stamps) == 1
        glyphs = {stamps[0][i : i + 4] for i in range(0, len(stamps[0]), 4)}
        assert b"0000" not in glyphs


def test_a_part_has_no_link_to_another_part():
    html = (
        '<p id="here"><a href="#here">a</a> <a href="#there">b</a> <a href="https://x/">c</a></p>'
    )
    assert (
        pdf._linked(html) == '<p id="here"><a href="#here">a</a> b <a href="https://x/">c</a></p>'
    )


def test_joined_report_is_tagged_throughout(tmp_path, written):
    """Every page names a row of its own in the parent tree, and the tree holds what every part says."""
    path = tmp_path / "joined.pdf"
    path.write_bytes(written[0])
    reader = PdfReader(path)
    root = reader.trailer["/Root"]
    numbers = list(root["/StructTreeRoot"]["/ParentTree"]["/Nums"])[::2]
    assert sorted(set(numbers)) == numbers
    pages = [page["/StructParents"] for page in reader.pages]
    assert sorted(set(pages)) == pages
    assert set(pages) <= set(numbers)
    assert root["/MarkInfo"]["/Marked"]
    told = subprocess.run(["pdfinfo", "-struct", str(path)], capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("Document\n")
    assert told.stdout.count("P (block)") > 300, "an entry is a paragraph"
