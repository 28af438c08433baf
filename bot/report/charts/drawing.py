"""One chart on a figure: panels on a shared time axis, marks above them, where the numbers came from below."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator

from bot.domain.evidence import ChartMark, ChartPanel, ChartSpec, Series
from bot.domain.text import Locale, Localized
from bot.locales import say, translate
from bot.report import palette
from bot.report.charts.curves import DAY, days, gaps, is_alone, known_values, points, ticks
from bot.report.charts.lane import Flag, flags
from bot.report.charts.lettering import DPI, cut_middle, fit, shorten, width
from bot.report.charts.words import Scale, names_of, scale_of, significant, step_text, values_of
from bot.report.clock import Clock
from bot.report.plain import visible

WIDTH = 1000
"""Pixels; about what Slack shows of an image that a reader opened."""

_LEFT, _RIGHT = 74, 176
_HEAD, _LANE_ROW, _PANEL, _PANEL_GAP, _AXIS, _FOOT_ROW = 58, 19, 168, 38, 30, 17
_MOST_SERIES = 6
# Behind a label, so that the line of another mark does not run through it.
_OPAQUE = {"facecolor": palette.SURFACE, "edgecolor": "none", "pad": 1.2}
_MARK_COLOURS = {
    "alert": palette.ALERT,
    "change": palette.CHANGE,
    "fix": palette.FIX,
    "mitigation": palette.FIX,
}


class Drawing:
    """One chart being drawn. All positions are pixels from the top left until they reach matplotlib."""

    def __init__(
        self,
        figure: Figure,
        drawable: Callable[[str], str],
        spec: ChartSpec,
        locale: Locale,
        zone: ZoneInfo,
    ) -> None:
        self.figure = figure
        self.drawable = drawable
        self.spec = spec
        self.locale = locale
        self.zone = zone
        self.start, self.end = spec.window.start, spec.window.end
        if self.end <= self.start:
            self.end = self.start + timedelta(seconds=1)
        self.lane = self._lane()
        rows = max((flag.row for flag in self.lane), default=-1) + 1
        self.top = _HEAD + rows * _LANE_ROW + (26 if len(spec.panels) else 0)
        self.footers = self._footers()
        panels = max(1, len(spec.panels))
        self.bottom = self.top + panels * _PANEL + (panels - 1) * _PANEL_GAP
        self.height = self.bottom + _AXIS + len(self.footers) * _FOOT_ROW + 14

    def t(self, key: str, **fields: object) -> str:
        return translate(self.locale, f"report.drawn.{key}", **fields)

    def say(self, text: Localized) -> str:
        return self.drawable(text.in_locale(self.locale))

    def draw(self) -> None:
        self.figure.set_size_inches(WIDTH / DPI, self.height / DPI)
        clock = Clock(self.zone)
        self._write(
            _LEFT - 56, 26, fit(self.say(self.spec.title), 15, WIDTH - 40), 15, weight="bold"
        )
        zone = f"{clock.span(self.spec.window)} ({self.zone.key})"
        self._write(_LEFT - 56, 47, self.drawable(zone), 10, colour=palette.MUTED)
        axes = [self._panel(panel, index) for index, panel in enumerate(self.spec.panels)]
        if axes:
            self._time_axis(axes[-1])
        self._marks(axes)
        for row, text in enumerate(self.footers):
            y = self.bottom + _AXIS + 18 + row * _FOOT_ROW
            self._write(_LEFT - 56, y, fit(text, 9, WIDTH - 36), 9, colour=palette.MUTED)

    def _panel(self, panel: ChartPanel, index: int) -> Axes:
        top = self.top + index * (_PANEL + _PANEL_GAP)
        axes = self.figure.add_axes(
            (
                _LEFT / WIDTH,
                1 - (top + _PANEL) / self.height,
                (WIDTH - _LEFT - _RIGHT) / WIDTH,
                _PANEL / self.height,
            )
        )
        values = values_of(panel)
        scale = scale_of(panel.unit, values)
        self._frame(axes, index == len(self.spec.panels) - 1)
        number = f"{index + 1}. " if len(self.spec.panels) > 1 else ""
        unit = f" ({self.drawable(scale.label)})" if scale.label else ""
        room = WIDTH - _LEFT - 40 - width(number + unit, 11)
        title = f"{number}{fit(self.say(panel.title), 11, room)}{unit}"
        self._write(_LEFT, top - 8, title, 11, weight="bold")
        if self.spec.onset:
            start, end = days(self.spec.onset.start), days(self.spec.onset.end)
            axes.axvspan(start, end, color=palette.ONSET, lw=0, zorder=0.5)
        labels = self._limits(axes, panel, scale)
        labels += self._lines(axes, panel, scale)
        _set_range(axes, [value * scale.factor for value in values])
        self._side_labels(axes, labels)
        if not any(known_values(series) for series in panel.series):
            axes.set_yticks([])
            middle = (_LEFT + WIDTH - _RIGHT) / 2
            y = top + _PANEL / 2
            text = self.t("no_data")
            self._write(middle, y, text, 11, colour=palette.MUTED, align="center", centre=True)
        return axes

    def _frame(self, axes: Axes, is_last: bool) -> None:
        axes.set_facecolor(palette.SURFACE)
        axes.set_xlim(days(self.start), days(self.end))
        axes.grid(visible=True, axis="y", color=palette.GRID, lw=0.8)
        axes.set_axisbelow(True)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(palette.LINE)
        axes.tick_params(colors=palette.MUTED, labelsize=9, length=0, labelbottom=is_last, pad=5)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _position: significant(round(value, 9)))
        )

    def _limits(self, axes: Axes, panel: ChartPanel, scale: Scale) -> list[tuple[float, str, str]]:
        labels = []
        low, high = panel.baseline_low, panel.baseline_high
        if low is not None and high is not None:
            axes.axhspan(
                low * scale.factor, high * scale.factor, color=palette.BAND, lw=0, zorder=0.6
            )
            labels.append(((low + high) / 2 * scale.factor, self.t("baseline"), palette.FIX))
        if panel.threshold is not None:
            y = panel.threshold * scale.factor
            axes.axhline(y, color=palette.THRESHOLD, lw=1.2, ls=(0, (5, 3)), zorder=1.5)
            labels.append(
                (y, self.t("threshold", value=scale.text(panel.threshold)), palette.THRESHOLD)
            )
        return labels

    def _lines(self, axes: Axes, panel: ChartPanel, scale: Scale) -> list[tuple[float, str, str]]:
        named = list(zip(names_of(panel.series), panel.series, strict=True))
        shown = sorted(named, key=lambda item: -max(known_values(item[1]), default=-math.inf))[
            :_MOST_SERIES
        ]
        labels = []
        for index, (name, series) in enumerate(item for item in named if item in shown):
            colour = palette.SERIES[index % len(palette.SERIES)]
            times, values = points(series, scale.factor)
            # Ranges are set by hand, so a line that asks the axes to find its own is wasted work.
            axes.add_artist(
                Line2D(times, values, color=colour, lw=1.7, zorder=3, solid_capstyle="round")
            )
            broken = len(values) < 2 or any(map(math.isnan, values))
            lonely = [i for i in range(len(values)) if is_alone(values, i)] if broken else []
            if lonely:
                axes.plot(
                    [times[i] for i in lonely],
                    [values[i] for i in lonely],
                    "o",
                    color=colour,
                    ms=3,
                    zorder=3,
                )
            known = [value for value in values if not math.isnan(value)]
            if known:
                value = known[-1] / scale.factor
                last = scale_of(panel.unit, [value]).text(value)
                labels.append((known[-1], self._name(name, last, len(named) > 1), colour))
        self._gaps(axes, panel.series)
        if len(named) > len(shown):
            text = self.t("more_series", count=len(named) - len(shown))
            labels.append((-math.inf, text, palette.MUTED))
        return labels

    def _name(self, name: str, last: str, is_named: bool) -> str:
        """What stands beside a line: its last value, and its name with the middle cut out where it is too long."""
        if not is_named:
            return last
        room = _RIGHT - 24 - width(f"  {last}", 9.5)
        return f"{cut_middle(self.drawable(name), 9.5, room)}  {last}"

    def _gaps(self, axes: Axes, series: Sequence[Series]) -> None:
        """Hatches the spans in which the panel knows nothing at all."""
        for begin, end in gaps(series):
            axes.axvspan(
                begin,
                end,
                facecolor=palette.PANEL,
                edgecolor=palette.LINE,
                hatch="////",
                lw=0,
                zorder=0.4,
            )

    def _side_labels(self, axes: Axes, labels: list[tuple[float, str, str]]) -> None:
        """Writes each label beside the end of its line, moved apart where two would overlap."""
        low, high = axes.get_ylim()
        height = 15.0
        wanted = sorted(
            (min(max((high - y) / (high - low), 0.0), 1.0) * _PANEL, text, colour)
            for y, text, colour in labels
        )
        placed: list[float] = []
        for y, _text, _colour in wanted:
            placed.append(max(y, placed[-1] + height if placed else 0.0))
        overflow = placed[-1] - _PANEL if placed else 0.0
        if overflow > 0:
            limit = float(_PANEL)
            for index in range(len(placed) - 1, -1, -1):
                placed[index] = min(placed[index], limit)
                limit = placed[index] - height
        for y, (_, text, colour) in zip(placed, wanted, strict=True):
            axes.annotate(
                fit(text, 9.5, _RIGHT - 18),
                (1, 1 - y / _PANEL),
                xycoords="axes fraction",
                xytext=(7, 0),
                textcoords="offset pixels",
                va="center",
                color=colour,
                fontsize=9.5,
                annotation_clip=False,
            )

    def _time_axis(self, axes: Axes) -> None:
        seconds = (self.end - self.start).total_seconds()
        form = "%H:%M:%S" if seconds <= 300 else "%H:%M" if seconds <= 129600 else "%m-%d %H:%M"
        moments = ticks(self.start, self.end, self.zone)
        for panel in self.figure.axes:
            panel.xaxis.set_major_locator(FixedLocator([at / DAY for at in moments]))
        labels = [f"{datetime.fromtimestamp(at, self.zone):{form}}" for at in moments]
        axes.xaxis.set_major_formatter(FixedFormatter(labels))

    def _lane(self) -> list[Flag]:
        marks = list(self.spec.marks)
        if self.spec.onset:
            label = say("report.drawn.onset")
            marks.append(ChartMark(at=self.spec.onset.start, label=label, kind="onset"))
        told = [
            (mark, f"{mark.at.astimezone(self.zone):%H:%M:%S} {self.say(mark.label)}")
            for mark in marks
            if self.start <= mark.at <= self.end
        ]
        room = WIDTH - _LEFT - _RIGHT
        return flags(told, lambda at: self._share(at) * room, room + _RIGHT - 10)

    def _marks(self, axes: list[Axes]) -> None:
        if not axes:
            return
        for flag in self.lane:
            mark = flag.mark
            colour = (
                palette.WARN
                if mark.kind == "onset"
                else _MARK_COLOURS.get(mark.kind, palette.NEUTRAL)
            )
            x = _LEFT + self._share(mark.at) * (WIDTH - _LEFT - _RIGHT)
            y = _HEAD + flag.row * _LANE_ROW + 8
            style = (0, (2, 2)) if mark.kind == "onset" else "-"
            ends = (1 - self.bottom / self.height, 1 - (y + 7) / self.height)
            self.figure.add_artist(
                Line2D([x / WIDTH] * 2, ends, color=colour, lw=1.0, alpha=0.75, ls=style, zorder=2)
            )
            head = 1 - y / self.height
            self.figure.add_artist(
                Line2D([x / WIDTH], [head], marker="v", ms=5, color=colour, lw=0, zorder=7)
            )
            side = "right" if flag.is_left else "left"
            self._write(
                x + (-8 if flag.is_left else 8),
                y,
                flag.text,
                9.5,
                colour=colour,
                align=side,
                centre=True,
            )

    def _share(self, at: datetime) -> float:
        return (at - self.start) / (self.end - self.start)

    def _footers(self) -> list[str]:
        lines = []
        for index, panel in enumerate(self.spec.panels):
            step = max((series.step_seconds for series in panel.series), default=0.0)
            query = " ".join(visible(panel.query).split())
            text = self.t(
                "footer",
                source=panel.source,
                query=query,
                step=step_text(step) if step else "–",
                evidence=f" · {panel.evidence_id}" if panel.evidence_id else "",
            )
            # Not the step and the evidence id that stand behind it.
            text = shorten(text, query, 9, WIDTH - 60)
            lines.append(f"{index + 1}. {text}" if len(self.spec.panels) > 1 else text)
        lines += [note.in_locale(self.locale) for note in self.spec.notes]
        return [self.drawable(line) for line in lines]

    def _write(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        colour: str = palette.INK,
        weight: str = "normal",
        align: str = "left",
        centre: bool = False,
    ) -> None:
        self.figure.text(
            x / WIDTH,
            1 - y / self.height,
            text,
            fontsize=size,
            color=colour,
            fontweight=weight,
            ha=align,
            va="center" if centre else "baseline",
            bbox=_OPAQUE if self.lane else None,
            zorder=6,
        )


def _set_range(axes: Axes, values: Sequence[float]) -> None:
    """From zero where that is fair to the data, with room above; a flat line keeps some height."""
    if not values:
        axes.set_ylim(0, 1)
        return
    low, high = min(values), max(values)
    if low > 0 and low < 0.6 * high:
        low = 0.0
    span = (high - low) or abs(high) or 1.0
    axes.set_ylim(low - (0.0 if low == 0 else 0.12 * span), high + 0.12 * span)
