"""Draws the causal chain as SVG: what people saw at the top, the root at the bottom, each link with its evidence."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from bot.report import palette
from bot.report.plain import visible
from bot.report.wording import Wording

WIDTH = 760
_MARGIN = 12
_PADDING = 16
_GAP = 44
_TITLE = 17.0
_SMALL = 12.5
_FONTS = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'Segoe UI', sans-serif"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    label: str
    title: str
    note: str
    border: str
    fill: str
    is_dashed: bool = False
    is_unsupported: bool = False

    @property
    def label_colour(self) -> str:
        return palette.MUTED if self.border == palette.LINE else self.border


def chain_svg(words: Wording) -> str:
    """The chain of the report as a standalone SVG of `WIDTH` units; a chain without links draws nothing but its frame."""
    boxes = _boxes(words)
    parts: list[str] = []
    top = float(_MARGIN)
    for position, box in enumerate(boxes):
        if position:
            label = words.t("chain.set_off_by") if box.is_dashed else words.t("chain.because")
            parts.append(_arrow(top, label))
            top += _GAP
        drawn, height = _draw(box, top)
        parts.append(drawn)
        top += height
    height = top + _MARGIN
    alt = words.t(
        "chain.alt", chain=" \u2190 ".join(words.say(link.title) for link in words.report.chain)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img" aria-label={quoteattr(visible(alt))}>'
        f'<g font-family="{_FONTS}">{"".join(parts)}</g></svg>'
    )


def _boxes(words: Wording) -> list[_Box]:
    report = words.report
    boxes = []
    if report.symptoms:
        said = "\n".join(words.say(symptom.summary) for symptom in report.symptoms)
        scope = ", ".join(dict.fromkeys(s.scope for s in report.symptoms if s.scope))
        boxes.append(
            _Box(
                label=words.t("chain.effect"),
                title=said,
                note=scope,
                border=palette.LINE,
                fill=palette.PANEL,
            )
        )
    for link in report.chain:
        is_root = link is report.chain[-1]
        cited = " ".join(link.evidence) or words.t("chain.no_evidence")
        boxes.append(
            _Box(
                label=words.t("chain.root" if is_root else "chain.cause"),
                title=words.say(link.title),
                note=f"{link.cause} · {cited}",
                border=palette.ACCENT if is_root else palette.NEUTRAL,
                fill=palette.ACCENT_TINT if is_root else palette.SURFACE,
                is_unsupported=not link.evidence,
            )
        )
    trigger = report.root_cause.trigger if report.root_cause else None
    if trigger and report.chain:
        boxes.append(
            _Box(
                label=words.t("chain.trigger"),
                title=words.say(trigger.summary),
                note=trigger.change or "",
                border=palette.CHANGE,
                fill=palette.SURFACE,
                is_dashed=True,
            )
        )
    return boxes


def _draw(box: _Box, top: float) -> tuple[str, float]:
    room = WIDTH - 2 * (_MARGIN + _PADDING)
    titles = wrap(box.title, room, _TITLE * 1.04, most=4)
    notes = wrap(box.note, room, _SMALL, most=3) if box.note else []
    height = _PADDING * 2 + 16 + len(titles) * _TITLE * 1.4 + len(notes) * _SMALL * 1.5
    dash = ' stroke-dasharray="6 4"' if box.is_dashed else ""
    parts = [
        f'<rect x="{_MARGIN}" y="{top:.1f}" width="{WIDTH - 2 * _MARGIN}" height="{height:.1f}" rx="8" '
        f'fill="{box.fill}" stroke="{box.border}" stroke-width="1.6"{dash}/>'
    ]
    left = _MARGIN + _PADDING
    line = top + _PADDING + 10
    parts.append(_text(left, line, box.label, 12, box.label_colour, weight="600"))
    line += 8
    for title in titles:
        line += _TITLE * 1.4
        parts.append(_text(left, line - 3, title, _TITLE, palette.INK, weight="600"))
    tone = palette.WARN if box.is_unsupported else palette.MUTED
    for note in notes:
        line += _SMALL * 1.5
        parts.append(_text(left, line, note, _SMALL, tone))
    return "".join(parts), height


def _arrow(top: float, label: str) -> str:
    x = WIDTH / 2
    tip = top + _GAP - 3
    return (
        f'<path d="M{x:.0f} {top + 4:.1f} L{x:.0f} {tip - 7:.1f}" stroke="{palette.NEUTRAL}" '
        f'stroke-width="1.6" fill="none"/>'
        f'<path d="M{x - 6:.0f} {tip - 9:.1f} L{x:.0f} {tip:.1f} L{x + 6:.0f} {tip - 9:.1f} Z" '
        f'fill="{palette.NEUTRAL}"/>'
        + _text(x + 14, top + _GAP / 2 + 4, label, 12.5, palette.MUTED)
    )


def _text(x: float, y: float, text: str, size: float, colour: str, *, weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" font-weight="{weight}" '
        f'fill="{colour}">{escape(text)}</text>'
    )


def wrap(text: str, room: float, size: float, *, most: int) -> list[str]:
    """Breaks `text` into at most `most` lines that fit `room`; what is left over ends in an ellipsis.

    Chinese breaks anywhere, Latin at spaces, a word longer than a line anywhere.
    """
    lines: list[str] = []
    for paragraph in visible(text).split("\n"):
        lines += _wrap_line(paragraph, room, size)
    if len(lines) <= most:
        return lines or [""]
    kept = lines[:most]
    while kept[-1] and _width(kept[-1] + "…", size) > room:
        kept[-1] = kept[-1][:-1]
    kept[-1] += "…"
    return kept


def _wrap_line(text: str, room: float, size: float) -> list[str]:
    lines: list[str] = []
    line = ""
    for token in _tokens(text):
        if line and _width(line + token.rstrip(), size) > room:
            lines.append(line.rstrip())
            line = ""
        for letter in token:
            if line and _width(line + letter, size) > room:
                lines.append(line.rstrip())
                line = ""
            line += letter
    if line.strip():
        lines.append(line.rstrip())
    return lines


def _tokens(text: str) -> list[str]:
    """Pieces that a line may break between: a word with the spaces behind it, a wide letter alone."""
    return re.findall(r"[\u2e80-\uffef]\s*|[^\s\u2e80-\uffef]+\s*|\s+", text)


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def _width(text: str, size: float) -> float:
    """An upper estimate: a wide letter is one em, capitals and digits two thirds, the rest a little over half."""
    share = sum(
        1.0
        if _is_wide(letter)
        else 0.66
        if letter.isupper() or letter.isdigit() or letter in "mw_%"
        else 0.55
        for letter in text
    )
    return share * size
