"""Writes the report as PDF; the only importer of weasyprint, which takes a second to import and needs Pango."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

from bot.domain.postmortem import Postmortem
from bot.domain.text import Locale
from bot.errors import BotError, Reason
from bot.locales import translate
from bot.report.blocks import Details, Figure, Page, Paragraph, Span, Tone
from bot.report.fonts import INSTALL_HINT, covered_characters, find_chinese_font
from bot.report.html import write_html
from bot.report.outline import outline
from bot.report.rewrite import rewrite

_log = logging.getLogger(__name__)


def write_pdf(report: Postmortem, locale: Locale) -> bytes:
    """The report as PDF; the same report gives the same bytes. It blocks for seconds.

    A character that no font of this machine can show is written as its code point, never as an empty box. Without a
    font that covers Chinese the report is in English, says which font is missing, and a warning is logged.

    Raises:
        BotError: Pango is not installed.
    """
    weasyprint = _weasyprint()
    font = find_chinese_font()
    if font is None:
        _log.warning("no font covers Chinese, the PDF is written in English: %s", INSTALL_HINT)
    locale = locale if font else Locale.EN
    page = _without_raw(outline(report, locale), translate(locale, "report.probe.raw_elsewhere"))
    if font is None:
        page = _with_notice(page, translate(Locale.EN, "report.no_chinese_font", hint=INSTALL_HINT))
    page = _fitted(page, _shower(covered_characters(font)))
    fetcher = weasyprint.urls.URLFetcher(allowed_protocols=("data",))
    document = weasyprint.HTML(string=write_html(page, is_paged=True), url_fetcher=fetcher)
    content: bytes = document.write_pdf(
        pdf_identifier=report.header.id.encode(), pdf_tags=True, optimize_images=False
    )
    return content


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
