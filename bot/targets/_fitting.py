"""Makes a report short enough for a page that a browser has to open and edit; what is left out is attached."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.text import Locale
from bot.locales import translate
from bot.report.blocks import Block, Details, Page, Paragraph, Section, Span, Table, Tone

ROWS = 500
"""Rows of one table on the page. Our own limit: more makes an editor slow long before a server refuses it."""
RAW_CHARACTERS = 200_000
"""Characters of raw results on the page, all together; our own limit, as above."""


def fitted(page: Page, locale: Locale) -> tuple[Page, bool]:
    """The page without the tails of very long tables and without more raw results than that; whether it is whole.

    A shortened table says how many rows are missing, and where they are: in the attached HTML and JSON.
    """
    left = RAW_CHARACTERS
    is_whole = True
    sections: list[Section] = []
    for section in page.sections:
        blocks: list[Block] = []
        dropped = 0
        for block in section.blocks:
            match block:
                case Table() if len(block.rows) > ROWS:
                    missing = len(block.rows) - ROWS
                    blocks.append(replace(block, rows=block.rows[:ROWS]))
                    blocks.append(_note(translate(locale, "delivery.rows_attached", count=missing)))
                    is_whole = False
                case Details() if len(block.text) > left:
                    dropped += 1
                case Details():
                    left -= len(block.text)
                    blocks.append(block)
                case _:
                    blocks.append(block)
        if dropped:
            blocks.append(_note(translate(locale, "delivery.raw_attached", count=dropped)))
            is_whole = False
        sections.append(replace(section, blocks=tuple(blocks)))
    return replace(page, sections=tuple(sections)), is_whole


def _note(text: str) -> Paragraph:
    return Paragraph(spans=(Span(text),), tone=Tone.WARN)
