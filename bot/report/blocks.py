"""A report as neutral blocks: what is said, in order, before any format.

Each exporter that writes a page walks these blocks; the escaping is the format's own business, so every text in here
is raw and hostile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a block or span is meant: it picks a colour and, where colours do not reach, a word."""

    PLAIN = "plain"
    STRONG = "strong"
    MUTED = "muted"
    CODE = "code"
    GOOD = "good"
    BAD = "bad"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text. `href` is `#anchor` inside the report, or an http(s) address."""

    text: str
    tone: Tone = Tone.PLAIN
    href: str | None = None


Inline = tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """Running text; with a tone it is set off from the rest."""

    spans: Inline
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Labels with their values."""

    rows: tuple[tuple[str, Inline], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One titled answer."""

    title: str
    body: Inline
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Answers side by side."""

    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table; `anchor` is what links point at, `also` what links to what it stands for do."""

    cells: tuple[Inline, ...]
    anchor: str | None = None
    also: tuple[str, ...] = ()
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under column titles. `widths` are shares of the page in percent, 0 where the content decides.

    is_log: the rows are entries with what was said in their last cell. is_running: they are to be set as paragraphs,
    the other cells as their heads; only paper does that.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    widths: tuple[int, ...] = ()
    is_log: bool = False
    is_running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list without order."""

    items: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing. `name` is a safe file name without suffix; svg, png and csv are the forms it exists in."""

    name: str
    caption: str
    alt: str
    svg: bytes | None = None
    png: bytes | None = None
    csv: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A unified diff."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Raw text that is folded away until somebody asks for it."""

    summary: str
    text: str
    anchor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subhead:
    """A heading inside a section; `anchor` is what links point at."""

    text: str
    anchor: str | None = None


Block = Paragraph | Facts | Cards | Table | Items | Figure | Diff | Details | Subhead


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A numbered part of the report."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole report in one language."""

    id: str
    title: str
    subtitle: str
    badges: tuple[Span, ...]
    lang: str
    zone: str
    footer: str
    sections: tuple[Section, ...]
