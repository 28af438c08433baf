"""Writes the report as PDF; the only importer of weasyprint, which takes a second to import and needs Pango."""

from __future__ import annotations

import gc
import importlib
import logging
import multiprocessing
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from types import ModuleType

from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale
from bot.errors import BotError, Reason
from bot.locales import translate
from bot.report.blocks import Details, Figure, Page, Paragraph, Span, Tone
from bot.report.fonts import INSTALL_HINT, covered_characters, find_chinese_font
from bot.report.html import write_html
from bot.report.outline import outline
from bot.report.pdf_parts import DIGITS, parts_of, running
from bot.report.rewrite import rewrite
from bot.report.worker import end_with_owner

_log = logging.getLogger(__name__)

PROCESSES = 2
"""Parts of a long report that are typeset at a time; each takes some 250 MiB."""

TAGGED_PARTS = 8
"""A report of at most so many parts (some 6,000 entries) is tagged for assistive software throughout.

To join the tags costs 0.25 s a part; what is longer would take too long, and is better listened to as HTML.
"""

PAPER_CHARACTERS = 8_000
"""Of one text on paper: some three pages."""

# Of our own template, where every text is escaped.
_ID = re.compile(r' id="([^"]+)"')
_INNER_LINK = re.compile(r'<a href="#([^"]+)">(.*?)</a>', re.DOTALL)


def write_pdf(report: Postmortem, locale: Locale) -> bytes:
    """The report as PDF; the same report gives the same bytes. It blocks for seconds.

    A character that no font of this machine can show is written as its code point, never as an empty box. Without a
    font that covers Chinese the report is in English, says which font is missing, and a warning is logged.

    Raises:
        BotError: Pango is not installed.
    """
    font = find_chinese_font()
    if font is None:
        _log.warning("no font covers Chinese, the PDF is written in English: %s", INSTALL_HINT)
    locale = locale if font else Locale.EN
    page = _without_raw(outline(report, locale), translate(locale, "report.probe.raw_elsewhere"))
    if font is None:
        page = _with_notice(page, translate(Locale.EN, "report.no_chinese_font", hint=INSTALL_HINT))
    page = _fitted(running(page), _shower(covered_characters(font)))
    page = rewrite(page, partial(_on_paper, locale=locale))
    parts = parts_of(page)
    identifier = report.header.id
    if len(parts) == 1:
        return typeset(write_html(page, is_paged=True), identifier, is_tagged=True)
    texts = [_sheet()]
    texts += [
        _linked(write_html(part.page, is_paged=True, is_first=part.is_first, is_numbered=False))
        for part in parts
    ]
    # Only a long report needs pypdf, whose import takes a third of a second.
    from bot.report.pdf_join import join

    written = typeset_all(texts, identifier, is_tagged=len(parts) <= TAGGED_PARTS)
    sheet = next(written)
    return join(written, sheet, title=page.title, lang=page.lang)


def _on_paper(text: str, *, locale: Locale) -> str:
    """The text up to three pages of it, with a word about where the rest is; the other formats hold all of it.

    A pasted log of 100 kB in one cell took 35 s to set (measured 2026-11-30), and nobody reads it on paper.
    """
    left = len(text) - PAPER_CHARACTERS
    if left > 0:
        note = translate(locale, "report.shortened_on_paper", left=left)
        return f"{text[:PAPER_CHARACTERS]}\n{note}"
    return text


def typeset(html: str, identifier: str, *, is_tagged: bool) -> bytes:
    """The HTML as PDF; nothing is loaded but what stands in it.

    Raises:
        BotError: Pango is not installed.
    """
    weasyprint = _weasyprint()
    fetcher = weasyprint.urls.URLFetcher(allowed_protocols=("data",))
    document = weasyprint.HTML(string=html, url_fetcher=fetcher)
    content: bytes = document.write_pdf(
        pdf_identifier=identifier.encode(), pdf_tags=is_tagged, optimize_images=False
    )
    return content


def typeset_all(texts: Sequence[str], identifier: str, *, is_tagged: bool) -> Iterator[bytes]:
    """Each text as a PDF of its own, in order, as soon as it is there.

    `PROCESSES` processes of their own work at a time, and give their memory back.
    """
    context = multiprocessing.get_context("spawn")
    count = min(PROCESSES, len(texts))
    with ProcessPoolExecutor(
        count, mp_context=context, initializer=_begin, initargs=(os.getpid(),)
    ) as pool:
        work = partial(_typeset_part, identifier=identifier, is_tagged=is_tagged)
        yield from pool.map(work, texts)


def _typeset_part(html: str, identifier: str, *, is_tagged: bool) -> bytes:
    content = typeset(html, identifier, is_tagged=is_tagged)
    # The boxes of a part point at one another; they go before the next part comes.
    gc.collect()
    return content


def _begin(owner: int) -> None:
    """A typesetter makes millions of boxes that live as long as their part: the collector needs to look less often.

    Measured 2026-11-30: 15 % less processor time, the same memory.
    """
    end_with_owner(owner)
    _weasyprint()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _sheet() -> str:
    """A page with every character of the page numbers, in their font."""
    return (
        '<style>@page { size: A4 } p { font: 8pt "Noto Sans CJK SC", sans-serif }</style>'
        f"<p>{DIGITS}</p>"
    )


def _linked(html: str) -> str:
    """The part without links to places that are in another part; their text says where they lead."""
    here = set(_ID.findall(html))
    return _INNER_LINK.sub(lambda match: match[0] if match[1] in here else match[2], html)


def _weasyprint() -> ModuleType:
    try:
        return importlib.import_module("weasyprint")
    except OSError as error:
        raise BotError(
            f"PDF export: Pango cannot be loaded: {error}; install libpango-1.0-0 and libpangoft2-1.0-0",
            reason=Reason.UNSUPPORTED,
        ) from error


def _shower(covered: frozenset[int]) -> Callable[[str], str]:
    def show(text: str) -> str:
        if text.isascii():
            return text
        return "".join(
            letter if ord(letter) < 128 or ord(letter) in covered else f"<U+{ord(letter):04X}>"
            for letter in text
        )

    return show


def _fitted(page: Page, show: Callable[[str], str]) -> Page:
    shown = rewrite(page, show)
    sections = []
    for section in shown.sections:
        blocks = tuple(
            replace(block, svg=_fitted_svg(block.svg, show))
            if isinstance(block, Figure) and block.svg is not None
            else block
            for block in section.blocks
        )
        sections.append(replace(section, blocks=blocks))
    return replace(shown, sections=tuple(sections))


def _fitted_svg(content: bytes, show: Callable[[str], str]) -> bytes:
    text = content.decode("utf-8", "replace")
    return "".join(
        letter if letter.isascii() else show(letter).replace("<", "&lt;").replace(">", "&gt;")
        for letter in text
    ).encode()


def _without_raw(page: Page, note: str) -> Page:
    """Nobody reads dozens of pages of JSON on paper: the table of readings stays, the raw text is in HTML and Markdown."""
    sections = []
    for section in page.sections:
        kept = tuple(block for block in section.blocks if not isinstance(block, Details))
        if len(kept) < len(section.blocks):
            kept = (*kept, Paragraph(spans=(Span(note),), tone=Tone.MUTED))
        sections.append(replace(section, blocks=kept))
    return replace(page, sections=tuple(sections))


def _with_notice(page: Page, text: str) -> Page:
    notice = Paragraph(spans=(Span(text),), tone=Tone.WARN)
    first, *rest = page.sections
    return replace(page, sections=(replace(first, blocks=(notice, *first.blocks)), *rest))
