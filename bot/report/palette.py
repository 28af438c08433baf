"""The colours of drawings, on paper and in the dark.

Source: series colours are Okabe and Ito's colour-blind-safe set (jfly.uni-koeln.de/color, 2008), without its yellow,
which is too pale for a line on white.
"""

from __future__ import annotations

from collections.abc import Mapping

INK = "#1f2328"
MUTED = "#59636e"
LINE = "#d1d9e0"
GRID = "#e6eaef"
SURFACE = "#ffffff"
PANEL = "#f6f8fa"
ACCENT = "#0969da"
ACCENT_TINT = "#ddf0ff"
BAND = "#cfe3d8"
ONSET = "#fbe3b8"
THRESHOLD = "#b42318"
ALERT = "#c4320a"
CHANGE = "#6941c6"
FIX = "#027a48"
NEUTRAL = "#475467"
WARN = "#9a6700"

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d1f")

DARK: Mapping[str, str] = {
    INK: "#e6edf3",
    MUTED: "#9da7b3",
    LINE: "#3d444d",
    GRID: "#2a313a",
    SURFACE: "#161b22",
    PANEL: "#1c232c",
    ACCENT: "#58a6ff",
    ACCENT_TINT: "#11304f",
    BAND: "#1d3a2d",
    ONSET: "#4a3a14",
    THRESHOLD: "#ff7b72",
    ALERT: "#ff9b6b",
    CHANGE: "#bca4ff",
    FIX: "#56d364",
    NEUTRAL: "#a8b3c1",
    WARN: "#e3b341",
    SERIES[0]: "#4aa8e0",
    SERIES[1]: "#ff8b4a",
    SERIES[2]: "#3fc9a0",
    SERIES[3]: "#e5a3c6",
    SERIES[4]: "#8fd0f5",
    SERIES[5]: "#d0ae5c",
}
"""What each colour becomes on a dark page."""


def variable(colour: str) -> str:
    """The CSS variable that carries a colour, so that a drawing inside a page follows the page's theme."""
    return f"--c{colour[1:]}"
