"""The figure and the fonts that charts are drawn with: one figure, cleared and used again."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from zoneinfo import ZoneInfo

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from bot.domain.evidence import ChartSpec
from bot.domain.text import Locale
from bot.report import palette
from bot.report.charts.drawing import Drawing
from bot.report.charts.lettering import DPI
from bot.report.fonts import INSTALL_HINT, FontFiles, find_chinese_font
from bot.report.plain import visible

_FIRST_WIDE = 0x2E80
"""From here on characters are Chinese, Japanese or Korean. Source: Unicode's block CJK Radicals Supplement."""

_log = logging.getLogger(__name__)


@cache
def shared_painter() -> Painter:
    """The painter of this process, with the fonts that it has."""
    return Painter.with_fonts(find_chinese_font())


@dataclass(slots=True)
class Painter:
    """One figure that is cleared and used again (a new one costs twice the time), and the fonts that it draws with.

    families: tried in order for each character. covered: code points that one of them has.
    """

    families: tuple[str, ...]
    covered: frozenset[int]
    has_chinese: bool
    figure: Figure = field(default_factory=lambda: Figure(dpi=DPI, facecolor=palette.SURFACE))
    lock: Lock = field(default_factory=Lock)

    @classmethod
    def with_fonts(cls, chinese: FontFiles | None) -> Painter:
        """A painter that draws with `chinese` before matplotlib's own DejaVu Sans."""
        mpl.rcParams.update(
            {
                "text.parse_math": False,  # a label with two dollar signs is no formula
                "svg.fonttype": "none",  # text stays text: it can be read, searched and masked
                "svg.hashsalt": "rca-bot",
                "axes.unicode_minus": True,
                "text.hinting": "none",  # a tenth of the drawing, and no word looks different for it
                "path.simplify_threshold": 0.5,
            }
        )
        families, covered = ["DejaVu Sans"], set(_charmap(font_manager.findfont("DejaVu Sans")))
        if chinese is None:
            _log.warning("no font covers Chinese, charts are drawn in English: %s", INSTALL_HINT)
        else:
            families.insert(0, _register(chinese))
            covered |= set(_charmap(font_manager.findfont(families[0])))
        return cls(tuple(families), frozenset(covered), chinese is not None)

    def paint(self, spec: ChartSpec, locale: Locale, zone: ZoneInfo) -> tuple[bytes, bytes]:
        """PNG and SVG of the chart."""
        return self.paint_png(spec, locale, zone), self._as_svg()

    def paint_svg(self, spec: ChartSpec, locale: Locale, zone: ZoneInfo) -> bytes:
        """SVG of the chart alone."""
        self._set_up(spec, locale, zone)
        return self._as_svg()

    def paint_png(self, spec: ChartSpec, locale: Locale, zone: ZoneInfo) -> bytes:
        """PNG of the chart; the figure stays as drawn."""
        canvas = self._set_up(spec, locale, zone)
        canvas.draw()  # type: ignore[no-untyped-call]
        png = io.BytesIO()
        # The surface is opaque, and three bytes a pixel pack faster than four.
        picture = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        picture.convert("RGB").save(png, "PNG", compress_level=1)
        return png.getvalue()

    def _set_up(self, spec: ChartSpec, locale: Locale, zone: ZoneInfo) -> FigureCanvasAgg:
        speaks = locale if locale is not Locale.ZH_CN or self.has_chinese else Locale.EN
        mpl.rcParams["font.family"] = list(self._families_for(spec, speaks))
        canvas = FigureCanvasAgg(self.figure)
        self.figure.clear()
        Drawing(self.figure, self.drawable, spec, speaks, zone).draw()
        return canvas

    def _as_svg(self) -> bytes:
        svg = io.BytesIO()
        self.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        return svg.getvalue()

    def _families_for(self, spec: ChartSpec, locale: Locale) -> tuple[str, ...]:
        """Without a Chinese character only the small Latin font: laying text out with both takes twice as long."""
        if locale is Locale.ZH_CN:
            return self.families
        said = [spec.title, *spec.notes, *(mark.label for mark in spec.marks)]
        written = [text.in_locale(locale) for text in said]
        for panel in spec.panels:
            written += [panel.title.in_locale(locale), panel.unit, panel.query, panel.source]
            written += [
                value for series in panel.series for value in (series.name, *series.labels.values())
            ]
        is_latin = all(ord(letter) < _FIRST_WIDE for text in written for letter in text)
        return self.families[-1:] if is_latin else self.families

    def drawable(self, text: str) -> str:
        """`text` on one line, without the characters that no font has; a question mark if none is left."""
        line = " ".join(visible(text).split())
        kept = "".join(letter for letter in line if ord(letter) in self.covered or letter == " ")
        return " ".join(kept.split()) or ("?" if line else "")


def _charmap(path: str) -> dict[int, int]:
    return dict(font_manager.get_font(path).get_charmap())


def _register(files: FontFiles) -> str:
    """Makes the files known to matplotlib whatever its cache says, and returns the family's name for simplified Chinese."""
    names: list[str] = []
    for path in (files.regular, files.bold):
        if path is not None:
            before = len(font_manager.fontManager.ttflist)
            font_manager.fontManager.addfont(str(path))
            names += [entry.name for entry in font_manager.fontManager.ttflist[before:]]
    sans = [name for name in names if "Mono" not in name] or [Path(files.regular).stem]
    return next((name for name in sans if name.endswith((" SC", " CN"))), sans[0])
