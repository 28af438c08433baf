"""Cuts a long report into parts that are typeset one by one, so that time and memory stay in proportion to its length.

WeasyPrint holds every box of a document at once and its layout of long tables grows faster than the table: one document
of 10,000 entries took two minutes and 2.3 GiB. Measured 2026-11-30, CPU per entry: 8 ms as a table row, 2 ms as a
paragraph; per chart: 170 ms inside the page, 100 ms as an image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bot.report.blocks import Block, Details, Figure, Inline, Page, Row, Section, Span, Table

DIGITS = "0123456789/ "
"""Every character of a page number, `n / all`."""

PART_COST = 1000
"""Cost of a part, one for each paragraph: about two seconds and 100 MiB of typesetting."""

WHOLE_COST = 1800
"""A report up to this cost stays one document, with links, outline and tags throughout."""

RUNNING_ROWS = 250
"""A table of entries that is longer than this is set as paragraphs: easier on paper, and a quarter of the time."""

_ROW, _RUNNING_ROW, _FIGURE = 4, 1, 50
_CHARACTERS = 2000
"""Of one cell or text that cost as much as another paragraph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some sections of a report; `is_first` carries the title. A section that goes on has an empty title."""

    page: Page
    is_first: bool


def running(page: Page) -> Page:
    """The page with its long lists of entries set as paragraphs."""
    return replace(
        page,
        sections=tuple(
            replace(section, blocks=tuple(_running(block) for block in section.blocks))
            for section in page.sections
        ),
    )


def parts_of(page: Page) -> tuple[Part, ...]:
    """The page in one part, or in as many as its length asks for; every block and row is in exactly one of them."""
    if sum(_cost(block) for section in page.sections for block in section.blocks) <= WHOLE_COST:
        return (Part(page=page, is_first=True),)
    filled: list[list[Section]] = [[]]
    room = PART_COST
    for section in page.sections:
        title = section.title
        for block in _pieces(section.blocks):
            cost = _cost(block)
            if cost > room and filled[-1]:
                filled.append([])
                room = PART_COST
            _put(filled[-1], replace(section, title=title, blocks=(block,)))
            title = ""
            room -= cost
    return tuple(
        Part(page=replace(page, sections=tuple(sections)), is_first=number == 0)
        for number, sections in enumerate(filled)
    )


def _put(sections: list[Section], piece: Section) -> None:
    if sections and sections[-1].id == piece.id:
        last = sections[-1]
        sections[-1] = replace(last, blocks=(*last.blocks, *piece.blocks))
    else:
        sections.append(piece)


def _running(block: Block) -> Block:
    if isinstance(block, Table) and block.is_log and len(block.rows) > RUNNING_ROWS:
        rows = tuple(replace(row, cells=(_head(row), row.cells[-1])) for row in block.rows)
        return replace(block, rows=rows, is_running=True)
    return block


def _head(row: Row) -> Inline:
    """All cells but the last in one run of text, which is as many boxes less to set, under the first one's link."""
    cells = ("".join(span.text for span in cell) for cell in row.cells[:-1])
    href = next((span.href for span in row.cells[0] if span.href), None)
    return (Span(" · ".join(cell.replace("\n", " ") for cell in cells), href=href),)


def _pieces(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """The blocks, a table too long for one part as several tables under the same columns."""
    for block in blocks:
        if not isinstance(block, Table):
            yield block
            continue
        start = cost = 0
        for end, row in enumerate(block.rows):
            added = _row_cost(block, row)
            if cost + added > PART_COST and end > start:
                yield _rows(block, start, end)
                start, cost = end, 0
            cost += added
        yield _rows(block, start, len(block.rows))


def _rows(table: Table, start: int, end: int) -> Table:
    caption = table.caption if start == 0 else ""
    return replace(table, caption=caption, rows=table.rows[start:end])


def _cost(block: Block) -> int:
    match block:
        case Table():
            return sum(_row_cost(block, row) for row in block.rows)
        case Figure():
            return _FIGURE
        case Details():
            return 1 + len(block.text) // _CHARACTERS
        case _:
            return 1


def _row_cost(table: Table, row: Row) -> int:
    letters = sum(len(span.text) for cell in row.cells for span in cell)
    return (_RUNNING_ROW if table.is_running else _ROW) + letters // _CHARACTERS
