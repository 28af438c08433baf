"""Joins the parts of a long PDF and numbers its pages; the only importer of pypdf."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    StreamObject,
    TextStringObject,
)

from bot.report.pdf_parts import DIGITS
from bot.report.pdf_tags import Tags

SIZE = 8.0
"""Points: as the other words at the foot of a page."""

_RIGHT, _BASELINE = 552.76, 22.6
"""Points from the left and from the bottom of A4: the right margin of 15 mm, the middle of the lower one of 18 mm."""

_FONT = NameObject("/RcaPage")
_INK = "0.349 0.388 0.431 rg"
_MAPPED = re.compile(rb"<([0-9a-fA-F]{4})>\s*<([0-9a-fA-F]{4})>")


class _Digits:
    """The font of a sheet that holds `DIGITS`: which glyph shows which character, and how wide it is."""

    def __init__(self, sheet: PageObject) -> None:
        for font in sheet["/Resources"]["/Font"].values():  # type: ignore[index]
            held = font.get_object()
            glyphs = {
                chr(int(letter, 16)): int(glyph, 16)
                for glyph, letter in _MAPPED.findall(held["/ToUnicode"].get_object().get_data())
            }
            if set(DIGITS) - {" "} <= set(glyphs):
                self.font = held
                self._glyphs = glyphs
                self._widths = _widths(held["/DescendantFonts"][0].get_object())
                return
        raise ValueError("the sheet of digits holds no font with all of them")

    def stamp(self, text: str) -> bytes:
        """What draws `text`, right-aligned at the foot of a page."""
        shown = [self._glyphs[letter] for letter in text if letter in self._glyphs]
        width = sum(self._widths.get(glyph, 555.0) for glyph in shown) / 1000 * SIZE
        codes = "".join(f"{glyph:04x}" for glyph in shown)
        return (
            f"\nQ /Artifact BMC q BT {_INK} {_FONT} {SIZE:g} Tf {_RIGHT - width:.2f} {_BASELINE:g} Td "
            f"<{codes}> Tj ET Q EMC"
        ).encode()


def _widths(font: DictionaryObject) -> dict[int, float]:
    widths: dict[int, float] = {}
    array = [item.get_object() for item in font["/W"]]  # type: ignore[attr-defined]
    for start, given in zip(array[::2], array[1::2], strict=False):
        if isinstance(given, ArrayObject):
            for place, width in enumerate(given):
                widths[int(start) + place] = float(width)
    return widths


def join(parts: Iterable[bytes], sheet: bytes, *, title: str, lang: str) -> bytes:
    """One PDF of all pages in order, each numbered `n / all`; the same parts give the same bytes.

    sheet: a PDF whose first page shows `DIGITS` in the font of the page numbers.
    """
    writer = PdfWriter()
    tags = Tags(writer)
    for content in parts:
        reader = PdfReader(io.BytesIO(content))
        before = len(writer.pages)
        writer.append(reader, import_outline=True)
        tags.add(reader, writer.pages[before:])
    tags.finish()
    sheet_writer_page = writer.add_page(PdfReader(io.BytesIO(sheet)).pages[0])
    digits = _Digits(sheet_writer_page)
    writer.remove_page(len(writer.pages) - 1)
    begin = StreamObject()
    begin.set_data(b"q ")
    # There is no public door for a new object of its own.
    opening = writer._add_object(begin)  # noqa: SLF001
    font = digits.font.indirect_reference
    count = len(writer.pages)
    for number, page in enumerate(writer.pages, 1):
        fonts = (
            page["/Resources"]
            .get_object()
            .setdefault(  # type: ignore[union-attr]
                NameObject("/Font"), DictionaryObject()
            )
        )
        fonts.get_object()[_FONT] = font
        stamp = StreamObject()
        stamp.set_data(digits.stamp(f"{number} / {count}"))
        drawing = writer._add_object(stamp)  # noqa: SLF001
        drawn = page.raw_get("/Contents")
        page[NameObject("/Contents")] = ArrayObject([opening, drawn, drawing])
    writer.root_object[NameObject("/Lang")] = TextStringObject(lang)
    writer.add_metadata({"/Title": title, "/Producer": "rca-bot"})
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()
