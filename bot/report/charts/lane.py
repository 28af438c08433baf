"""The labels of the marks above the panels, each in a row in which nothing stands in its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.evidence import ChartMark
from bot.report.charts.lettering import fit, width

SIZE = 9.5
_MOST_WIDE = 330
_GAP = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A mark with its label; `row` counts from the top, `is_left`: the label stands left of the mark's line."""

    mark: ChartMark
    row: int
    text: str
    is_left: bool


def flags(
    told: Sequence[tuple[ChartMark, str]], place: Callable[[datetime], float], room: float
) -> list[Flag]:
    """The marks in order of time. `place` gives the pixel of a moment, `room` is the last one that may be written on."""
    found: list[Flag] = []
    ends: list[float] = []
    for mark, said in sorted(told, key=lambda item: (item[0].at, item[0].label.en)):
        text = fit(said, SIZE, _MOST_WIDE)
        x = place(mark.at)
        wide = width(text, SIZE) + _GAP
        is_left = x + wide > room
        begin = x - wide if is_left else x
        row = next((i for i, end in enumerate(ends) if end <= begin), len(ends))
        ends[row : row + 1] = [begin + wide]
        found.append(Flag(mark=mark, row=row, text=text, is_left=is_left))
    return found
