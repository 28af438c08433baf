"""Evidence as pictures. This package is the only importer of matplotlib, and it imports it only where it draws.

The import alone takes most of a second and 60 MiB, so a process that has its charts drawn by a worker never pays it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo

from bot.domain.evidence import ChartSpec
from bot.domain.text import Locale, Localized
from bot.report.charts.words import alternative, data_csv
from bot.report.worker import RenderWorker

DRAW_TIMEOUT_SECONDS = 30.0
"""A worker that starts cold needs about 2 s, a chart 0.3 s; more means that it hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawn chart. `csv` holds the numbers behind it, `alt` says the same in words."""

    png: bytes
    svg: bytes
    csv: bytes
    alt: Localized


def draw(spec: ChartSpec, locale: Locale, *, zone: str = "UTC") -> Chart:
    """Draws a chart in one language, times in `zone` (IANA name); it blocks, so call it in a worker.

    The same spec gives the same bytes. Without a font that covers Chinese a Chinese chart is drawn in English, and a
    warning is logged; no character is ever drawn as a box.
    """
    from bot.report.charts.painter import shared_painter

    painter = shared_painter()
    with painter.lock:
        png, svg = painter.paint(spec, locale, ZoneInfo(zone))
    return Chart(png=png, svg=svg, csv=data_csv(spec), alt=alternative(spec, ZoneInfo(zone)))


async def draw_in_worker(
    spec: ChartSpec,
    locale: Locale,
    *,
    zone: str = "UTC",
    timeout_seconds: float = DRAW_TIMEOUT_SECONDS,
) -> Chart:
    """`draw` in the one worker process that draws charts, so that the event loop never waits.

    Raises:
        BotError: the worker took longer than `timeout_seconds`, or died twice.
    """
    return await chart_worker().run(_draw, spec, locale, zone, timeout_seconds=timeout_seconds)


async def draw_svg_in_worker(
    spec: ChartSpec,
    locale: Locale,
    *,
    zone: str = "UTC",
    timeout_seconds: float = DRAW_TIMEOUT_SECONDS,
) -> bytes:
    """The SVG of `draw` alone, in the same worker: the same chart in another language.

    Raises:
        BotError: the worker took longer than `timeout_seconds`, or died twice.
    """
    return await chart_worker().run(_draw_svg, spec, locale, zone, timeout_seconds=timeout_seconds)


@cache
def chart_worker() -> RenderWorker:
    """The worker that draws charts; its owner closes it at the end of the process."""
    return RenderWorker(name="charts")


def _draw(spec: ChartSpec, locale: Locale, zone: str) -> Chart:
    return draw(spec, locale, zone=zone)


def _draw_svg(spec: ChartSpec, locale: Locale, zone: str) -> bytes:
    from bot.report.charts.painter import shared_painter

    painter = shared_painter()
    with painter.lock:
        return painter.paint_svg(spec, locale, ZoneInfo(zone))
