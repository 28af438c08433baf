"""Writes blocks as a Confluence page: well-formed XHTML in storage format, macros and attachments by reference.

Source: Atlassian, "Confluence Storage Format" (Data Center documentation, read 2026-11): elements `ac:` and `ri:`,
macros `toc`, `status`, `info`, `tip`, `note`, `warning`, `code`, `expand` and `anchor`, images and links to attachments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape as xml_escape
from xml.sax.saxutils import quoteattr

from bot.report.blocks import (
    Block,
    Cards,
    Details,
    Diff,
    Facts,
    Figure,
    Inline,
    Items,
    Page,
    Paragraph,
    Row,
    Section,
    Span,
    Subhead,
    Table,
    Tone,
)
from bot.report.plain import visible
from bot.report.wording import web_address

_PANELS = {Tone.WARN: "note", Tone.BAD: "warning", Tone.GOOD: "tip", Tone.MUTED: "info"}
_STATUS_COLOURS = {Tone.BAD: "Red", Tone.WARN: "Yellow", Tone.GOOD: "Green"}
_INK = {Tone.BAD: "rgb(191,38,0)", Tone.WARN: "rgb(151,79,12)", Tone.GOOD: "rgb(0,102,68)"}


def write_storage(page: Page) -> tuple[str, dict[str, bytes]]:
    """The page's body, and the files that have to be attached to it."""
    writer = _Writer(frozenset(_targets(page.sections)))
    parts = [
        f"<p>{text_of(page.subtitle)} {' '.join(_badge(badge) for badge in page.badges)}</p>",
        macro("toc", {"maxLevel": "2"}),
    ]
    parts += [writer.section(section) for section in page.sections]
    parts.append(f"<hr /><p><em>{text_of(page.footer)}</em></p>")
    return "\n".join(parts), writer.files


def text_of(text: str) -> str:
    """`text` with nothing in it acting: entities for markup, line breaks as elements, hidden characters written out.

    >>> text_of('<script>&"')
    '&lt;script&gt;&amp;"'
    """
    return "<br />".join(xml_escape(line) for line in visible(text).split("\n"))


def cdata(text: str) -> str:
    """`text` as a CDATA section that it cannot end.

    >>> cdata("a]]>b")
    '<![CDATA[a]]]]><![CDATA[>b]]>'
    """
    return "<![CDATA[" + visible(text).replace("]]>", "]]]]><![CDATA[>") + "]]>"


def macro(
    name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    body: str | None = None,
    plain: str | None = None,
) -> str:
    """A macro; `body` is storage format, `plain` any text."""
    inside = "".join(
        f"<ac:parameter ac:name={quoteattr(key)}>{xml_escape(visible(value))}</ac:parameter>"
        for key, value in (parameters or {}).items()
    )
    if body is not None:
        inside += f"<ac:rich-text-body>{body}</ac:rich-text-body>"
    if plain is not None:
        inside += f"<ac:plain-text-body>{cdata(plain)}</ac:plain-text-body>"
    return f'<ac:structured-macro ac:name="{name}">{inside}</ac:structured-macro>'


def anchor(name: str) -> str:
    """A place that links point at."""
    return macro("anchor", {"": name})


def _badge(span: Span) -> str:
    colour = _STATUS_COLOURS.get(span.tone, "Grey")
    return macro("status", {"colour": colour, "title": " ".join(span.text.split())})


def _targets(sections: Iterable[Section]) -> Iterable[str]:
    """The places that some link of the report points at: only these need an anchor, and a long report has few."""
    for section in sections:
        for block in section.blocks:
            for spans in _inlines(block):
                for span in spans:
                    if span.href and span.href.startswith("#"):
                        yield span.href[1:]


def _inlines(block: Block) -> Sequence[Inline]:
    match block:
        case Paragraph():
            return (block.spans,)
        case Facts():
            return tuple(value for _, value in block.rows)
        case Cards():
            return tuple(card.body for card in block.cards)
        case Table():
            return tuple(cell for row in block.rows for cell in row.cells)
        case Items():
            return block.items
        case Figure() | Diff() | Details() | Subhead():
            return ()


class _Writer:
    def __init__(self, targets: frozenset[str]) -> None:
        self._targets = targets
        self._title = ""
        self.files: dict[str, bytes] = {}

    def section(self, section: Section) -> str:
        self._title = section.title
        head = f"{self._anchor(section.id)}<h2>{text_of(section.title)}</h2>"
        return "\n".join([head, *(self._block(block) for block in section.blocks)])

    def _anchor(self, name: str | None) -> str:
        return anchor(name) if name and name in self._targets else ""

    def _block(self, block: Block) -> str:
        match block:
            case Paragraph():
                paragraph = f"<p>{self._inline(block.spans)}</p>"
                panel = _PANELS.get(block.tone)
                return macro(panel, body=paragraph) if panel else paragraph
            case Subhead():
                return f"{self._anchor(block.anchor)}<h3>{text_of(block.text)}</h3>"
            case Facts():
                rows = (
                    f"<tr><th>{text_of(label)}</th><td>{self._cell(value)}</td></tr>"
                    for label, value in block.rows
                )
                return f"<table><tbody>{''.join(rows)}</tbody></table>"
            case Cards():
                return "\n".join(
                    f"<h3>{text_of(card.title)}</h3><p>{self._inline(card.body)}</p>"
                    for card in block.cards
                )
            case Table():
                return self._table(block)
            case Items():
                rows = (f"<li>{self._inline(item)}</li>" for item in block.items)
                return f"<ul>{''.join(rows)}</ul>"
            case Figure():
                return self._figure(block)
            case Diff():
                return macro("code", {"language": "diff"}, plain=block.text)
            case Details():
                code = macro("code", {"language": "text"}, plain=block.text)
                title = {"title": " ".join(block.summary.split())}
                return self._anchor(block.anchor) + macro("expand", title, body=code)

    def _table(self, table: Table) -> str:
        head = "".join(f"<th>{text_of(column)}</th>" for column in table.columns)
        rows = "".join(self._row(row) for row in table.rows)
        grid = f"<table><tbody><tr>{head}</tr>{rows}</tbody></table>"
        # A caption that repeats the heading above it is noise.
        if table.caption == self._title:
            return grid
        return f"<p><strong>{text_of(table.caption)}</strong></p>{grid}"

    def _row(self, row: Row) -> str:
        cells = [self._cell(cell) for cell in row.cells]
        if cells:
            cells[0] = "".join(map(self._anchor, (row.anchor, *row.also))) + cells[0]
        return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"

    def _cell(self, spans: Inline) -> str:
        return f"<p>{self._inline(spans)}</p>" if spans else "<p />"

    def _figure(self, figure: Figure) -> str:
        # A secret in a drawing's text was masked; one in pixels could not be.
        suffix, image = ("svg", figure.svg) if figure.svg is not None else ("png", figure.png)
        parts = []
        if image is not None:
            name = f"{figure.name}.{suffix}"
            self.files[name] = image
            alt = quoteattr(" ".join(visible(figure.alt).split()))
            parts.append(
                f'<ac:image ac:align="center" ac:alt={alt} ac:width="900">'
                f"<ri:attachment ri:filename={quoteattr(name)} /></ac:image>"
            )
        caption = f"<em>{text_of(figure.caption)}</em>"
        if figure.csv is not None:
            name = f"{figure.name}.csv"
            self.files[name] = figure.csv
            caption += (
                f" <ac:link><ri:attachment ri:filename={quoteattr(name)} />"
                f"<ac:plain-text-link-body>{cdata(name)}</ac:plain-text-link-body></ac:link>"
            )
        parts.append(f"<p>{caption}</p>")
        return "\n".join(parts)

    def _inline(self, spans: Inline) -> str:
        return "".join(_span(span) for span in spans)


def _span(span: Span) -> str:
    text = text_of(span.text)
    if not span.text.strip():
        return text
    if span.href and span.href.startswith("#"):
        body = cdata(" ".join(span.text.split()))
        return (
            f"<ac:link ac:anchor={quoteattr(span.href[1:])}>"
            f"<ac:plain-text-link-body>{body}</ac:plain-text-link-body></ac:link>"
        )
    match span.tone:
        case Tone.CODE:
            text = f"<code>{text}</code>"
        case Tone.STRONG:
            text = f"<strong>{text}</strong>"
        case Tone.MUTED:
            text = f'<span style="color: rgb(94,108,132);">{text}</span>'
        case Tone.BAD | Tone.WARN | Tone.GOOD:
            text = f'<span style="color: {_INK[span.tone]};"><strong>{text}</strong></span>'
        case Tone.PLAIN:
            pass
    if span.href and web_address(span.href):
        return f"<a href={quoteattr(span.href)}>{text}</a>"
    return text
