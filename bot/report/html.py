"""Writes blocks as one HTML file: everything inside, nothing loaded, no script; jinja2 escapes every text."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache, partial

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bot.domain.text import Locale
from bot.locales import templates_root, translate
from bot.report import palette
from bot.report.blocks import Page
from bot.report.breaking import breakable
from bot.report.plain import visible
from bot.report.svg import themed
from bot.report.wording import web_address

_VARIABLE = re.compile(r"(--[a-z0-9-]+): ([^;]+);")
_FOLD = re.compile(r"(?<=[_,({\[|/:])(?=\w)")
_FOLDED = 16
"""Characters of a word that fits into a column as it is."""
_USE = re.compile(r"var\((--[a-z0-9-]+)\)")


@cache
def _environment(*, is_paged: bool) -> Environment:
    broken = breakable if is_paged else str
    environment = Environment(
        loader=FileSystemLoader(templates_root() / "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        shown=partial(_shown, broken=broken),
        foldable=_foldable,
        kept=lambda text: escape(broken(visible(text))),
        named=lambda text: " ".join(visible(text).split()),
        link=_link,
        kind=lambda block: type(block).__name__,
        drawing=lambda content: Markup(themed(content.decode())),  # noqa: S704 - cut down by clean_svg
        data=lambda content: base64.b64encode(content).decode(),
    )
    return environment


def write_html(
    page: Page, *, is_paged: bool = False, is_first: bool = True, is_numbered: bool = True
) -> str:
    """The page as HTML.

    is_paged: for paper: drawings keep their colours, nothing is folded away. There, `is_first` says whether it begins
    the report with its title, and `is_numbered` whether the page numbers are set here.
    """
    locale = Locale(page.lang)
    written = (
        _environment(is_paged=is_paged)
        .get_template("postmortem.html.j2")
        .render(
            page=page,
            is_paged=is_paged,
            is_first=is_first,
            is_numbered=is_numbered,
            colours={
                palette.variable(light): (light, dark) for light, dark in palette.DARK.items()
            },
            t=lambda key: translate(locale, f"report.{key}"),
        )
    )
    return _settled(written) if is_paged else written


def _settled(html: str) -> str:
    """The page with the values of its variables in their place: paper has one theme, and each look-up costs time."""
    style, end, rest = html.partition("</style>")
    values = dict(_VARIABLE.findall(style))
    return _USE.sub(lambda match: values[match[1]], style) + end + rest


def _shown(text: str, broken: Callable[[str], str] = str) -> Markup:
    """The text with every character visible and its line breaks kept; `broken` says where long words may break."""
    return Markup("<br>").join(escape(broken(line)) for line in visible(text).split("\n"))


def _foldable(text: str) -> Markup:
    """`_shown` for code: a query in a narrow column breaks between its words; copied, it is what it was."""
    parts = _FOLD.split(visible(text)) if len(text) > _FOLDED else [visible(text)]
    return Markup("<wbr>").join(_shown(part) for part in parts)


def _link(href: str | None) -> str | None:
    """What may stand in an `href`: a place in this report, or a plain web address."""
    return href if href and (href.startswith("#") or web_address(href)) else None
