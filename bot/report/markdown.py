"""Writes blocks as Markdown in which a reader's parser finds our headings, tables and links, and nobody else's."""

from __future__ import annotations

import html
import re

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

# What is markup only at the beginning of a line: lists, headings, rules, setext underlines, delimiter rows.
_LINE_START = re.compile(r"^(\d{0,9})([-+.)](?=\s|$)|#(?=[#\s]|$)|[-=:](?=[-=: ]|$))")
_INERT = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {letter: f"\\{letter}" for letter in "\\`*_[]|~$"}
)
_QUOTED_TONES = {Tone.WARN: "⚠️ ", Tone.BAD: "⚠️ ", Tone.MUTED: "", Tone.GOOD: ""}


def write_markdown(page: Page, *, folder: str) -> tuple[str, dict[str, bytes]]:
    """The page as Markdown, and the files that it refers to below `folder`."""
    writer = _Writer(folder)
    lines = [
        f"# {escape(page.title)}",
        "",
        f"{escape(page.subtitle)} · "
        + " · ".join(f"**{escape(badge.text)}**" for badge in page.badges),
        "",
    ]
    lines += [f"- [{escape(section.title)}](#{section.id})" for section in page.sections]
    for section in page.sections:
        lines += ["", *writer.section(section)]
    lines += ["", "---", "", f"*{escape(page.footer)}*", ""]
    return "\n".join(lines), writer.files


def escape(text: str) -> str:
    r"""`text` as one line of inert Markdown: no character of it is markup, line breaks become `<br>`.

    >>> print(escape("a | <b>*x*</b>"))
    a \| &lt;b&gt;\*x\*&lt;/b&gt;
    """
    lines = visible(text).strip("\n").split("\n")
    return "<br>".join(_escape_line(line) for line in lines)


def _escape_line(line: str) -> str:
    line = line.replace("\t", "    ").strip()
    return _LINE_START.sub(r"\1\\\2", line.translate(_INERT))


def fenced(text: str, language: str = "") -> list[str]:
    """A code block whose fence is longer than any run of backticks inside."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *shown.rstrip("\n").split("\n"), fence]


class _Writer:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.title = ""
        self.files: dict[str, bytes] = {}

    def section(self, section: Section) -> list[str]:
        self.title = section.title
        lines = [f'<a id="{section.id}"></a>', "", f"## {escape(section.title)}"]
        for block in section.blocks:
            lines += ["", *self.block(block)]
        return lines

    def block(self, block: Block) -> list[str]:
        match block:
            case Paragraph():
                text = inline(block.spans)
                if block.tone in _QUOTED_TONES:
                    return [f"> {_QUOTED_TONES[block.tone]}{text}"]
                return [text]
            case Subhead():
                return [f"### {escape(block.text)}"]
            case Facts():
                rows = [
                    Row(cells=((Span(label, Tone.STRONG),), value)) for label, value in block.rows
                ]
                return _grid(("", ""), rows)
            case Cards():
                lines: list[str] = []
                for card in block.cards:
                    lines += [f"### {escape(card.title)}", "", inline(card.body), ""]
                return lines[:-1]
            case Table():
                grid = _grid(block.columns, block.rows)
                # A caption that repeats the heading above it is noise.
                return (
                    grid
                    if block.caption == self.title
                    else [f"**{escape(block.caption)}**", "", *grid]
                )
            case Items():
                return [f"- {inline(item)}" for item in block.items]
            case Figure():
                return self._figure(block)
            case Diff():
                return fenced(block.text, "diff")
            case Details():
                return [
                    "<details>",
                    f"<summary>{html.escape(_one_line(block.summary))}</summary>",
                    "",
                    *fenced(block.text, "json"),
                    "",
                    "</details>",
                ]

    def _figure(self, figure: Figure) -> list[str]:
        lines = [f"**{escape(figure.caption)}**", ""]
        suffix, image = ("svg", figure.svg) if figure.svg is not None else ("png", figure.png)
        if image is not None:
            path = f"{self.folder}/{figure.name}.{suffix}"
            self.files[path] = image
            lines += [f"![{escape(figure.alt)}]({path})", ""]
        if figure.csv is not None:
            path = f"{self.folder}/{figure.name}.csv"
            self.files[path] = figure.csv
            lines += [f"[{figure.name}.csv]({path})", ""]
        return lines[:-1]


def _one_line(text: str) -> str:
    return " ".join(visible(text).split())


def _grid(columns: tuple[str, ...], rows: tuple[Row, ...] | list[Row]) -> list[str]:
    lines = [
        "| " + " | ".join(escape(column) for column in columns) + " |",
        "| " + " | ".join("---" for _ in columns) + " |",
    ]
    for row in rows:
        cells = [inline(cell) for cell in row.cells]
        anchors = (row.anchor, *row.also) if row.anchor else row.also
        if cells and anchors:
            cells[0] = "".join(f'<a id="{anchor}"></a>' for anchor in anchors) + cells[0]
        lines.append("| " + " | ".join(cell or " " for cell in cells) + " |")
    return lines


def inline(spans: Inline) -> str:
    """A run of spans on one line."""
    return "".join(_span(span) for span in spans)


def _span(span: Span) -> str:
    if span.text == "\n":
        return "<br>"
    if not span.text.strip():
        return " "
    text = _code(span.text) if span.tone is Tone.CODE else escape(span.text)
    if span.tone in (Tone.STRONG, Tone.BAD, Tone.WARN, Tone.GOOD):
        text = f"**{text}**" if "<br>" not in text else text
    if span.href and (span.href.startswith("#") or web_address(span.href)):
        target = span.href.replace("(", "%28").replace(")", "%29").replace("|", "%7C")
        text = f"[{text}]({target})"
    lead = " " if span.text[0] == " " else ""
    trail = " " if span.text[-1] == " " else ""
    return f"{lead}{text}{trail}"


def _code(text: str) -> str:
    """Code that survives a table cell: as HTML, since backticks cannot hold a pipe or a line break there."""
    return f"<code>{escape(text)}</code>"
