"""What a chart says in words and numbers: scaled units, series names, the alternative text, the data as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.domain.evidence import ChartPanel, ChartSpec, Series
from bot.domain.instant import to_rfc3339
from bot.domain.text import Localized
from bot.locales import say
from bot.report.plain import harmless_cell, visible

_BINARY = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_DECIMAL = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SECONDS = {"s", "sec", "second", "seconds"}
_SCALED_SECONDS = {
    "ms": 1e-3,
    "milliseconds": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "microseconds": 1e-6,
    "ns": 1e-9,
}
_BYTES = {"bytes", "byte", "b"}
_RATIO = {"ratio", "share", "fraction"}
_AS_WRITTEN = {
    "percent": "%",
    "celsius": "°C",
    "c": "°C",
    "watts": "W",
    "mhz": "MHz",
    "count": "",
    "1": "",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How a unit is shown: a value is multiplied by `factor`, and `label` stands behind it."""

    factor: float
    label: str

    def text(self, value: float) -> str:
        """`value` (unscaled) with three significant digits and its unit."""
        number = significant(value * self.factor)
        if not self.label:
            return number
        return f"{number}%" if self.label == "%" else f"{number} {self.label}"


def significant(value: float) -> str:
    """Three significant digits without exponent, a real minus sign, thousands apart.

    >>> significant(0.081234), significant(612.4), significant(-3.0)
    ('0.0812', '612', '−3')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 9)}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "\u2212").replace(",", "\u2009")


def scale_of(unit: str, values: Iterable[float]) -> Scale:
    """The scale that keeps the largest of `values` readable: seconds as ms, ratios as percent, bytes as MiB."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    name = unit.strip().lower()
    per, rate = (name[: -len("/s")], "/s") if name.endswith("/s") else (name, "")
    if per in _RATIO and not rate:
        return Scale(100.0, "%")
    if per in _BYTES or per == "bytes_per_second":
        rate = rate or ("/s" if per == "bytes_per_second" else "")
        size, label = next(((size, text) for size, text in _BINARY if largest >= size), (1.0, "B"))
        return Scale(1 / size, label + rate)
    if not rate and (per in _SECONDS or per in _SCALED_SECONDS):
        return _seconds(largest, _SCALED_SECONDS.get(per, 1.0))
    label = _AS_WRITTEN.get(name, unit.strip())
    size, prefix = next(
        ((size, text) for size, text in _DECIMAL if largest >= size * 10), (1.0, "")
    )
    # A unit that has a prefix of its own (MHz) would read oddly with a second one.
    if prefix and (not label or label.startswith(("req", "tok", "1/", "/", "op"))):
        return Scale(1 / size, f"{prefix} {label}".strip())
    return Scale(1.0, label)


def _seconds(largest: float, base: float) -> Scale:
    seconds = largest * base
    if seconds < 1e-3:
        return Scale(base * 1e6, "µs")
    if seconds < 1:
        return Scale(base * 1e3, "ms")
    if seconds < 300:
        return Scale(base, "s")
    return Scale(base / 60, "min")


def values_of(panel: ChartPanel) -> list[float]:
    """Every finite number that the panel's value axis has to show."""
    values = [
        sample.value
        for series in panel.series
        for sample in series.samples
        if sample.value is not None and math.isfinite(sample.value)
    ]
    bounds = (panel.baseline_low, panel.baseline_high, panel.threshold)
    return values + [bound for bound in bounds if bound is not None and math.isfinite(bound)]


def names_of(series: Sequence[Series]) -> list[str]:
    """A short name for each series: the labels that tell it from the others, else its metric.

    >>> names_of([])
    []
    """
    keys = sorted({key for item in series for key in item.labels})
    telling = [key for key in keys if len({item.labels.get(key) for item in series}) > 1]
    names = []
    for item in series:
        parts = [item.labels.get(key, "–") for key in telling]
        names.append(visible(" ".join(parts) if parts else item.name or "–").replace("\n", " "))
    return names


def step_text(seconds: float) -> str:
    """`5 s`, `1 min`.

    >>> step_text(60), step_text(0.5)
    ('1 min', '0.5 s')
    """
    if seconds >= 60 and seconds % 60 == 0:
        return f"{seconds / 60:g} min"
    return f"{seconds:g} s"


def alternative(spec: ChartSpec, zone: ZoneInfo) -> Localized:
    """The chart in words, for those who cannot see it: each series' range, the limits, the onset, the marks."""
    sentences = [Localized(f"{spec.title.en}.", f"{spec.title.zh}。")]
    sentences += [_panel_words(panel) for panel in spec.panels]
    if spec.onset:
        start, end = (_clock(at, zone) for at in (spec.onset.start, spec.onset.end))
        sentences.append(say("report.drawn.alt_onset", start=start, end=end))
    if spec.marks:
        marks = Localized(
            "; ".join(f"{_clock(mark.at, zone)} {mark.label.en}" for mark in spec.marks),
            "；".join(f"{_clock(mark.at, zone)} {mark.label.zh}" for mark in spec.marks),
        )
        sentences.append(say("report.drawn.alt_marks", marks=marks))
    return Localized(
        visible(" ".join(item.en for item in sentences)),
        visible("".join(item.zh for item in sentences)),
    )


def _panel_words(panel: ChartPanel) -> Localized:
    scale = scale_of(panel.unit, values_of(panel))
    parts: list[Localized] = []
    for name, series in zip(names_of(panel.series), panel.series, strict=True):
        known = [s.value for s in series.samples if s.value is not None and math.isfinite(s.value)]
        if known:
            low, high, last = (scale.text(value) for value in (min(known), max(known), known[-1]))
            # A lone series without a name is the panel itself.
            named = {} if name == "–" else {"name": name}
            key = "alt_series" if named else "alt_only"
            parts.append(say(f"report.drawn.{key}", low=low, high=high, last=last, **named))
        else:
            parts.append(say("report.drawn.alt_empty", name=name))
    if not panel.series:
        parts.append(say("report.drawn.no_data"))
    if panel.baseline_low is not None and panel.baseline_high is not None:
        low, high = scale.text(panel.baseline_low), scale.text(panel.baseline_high)
        parts.append(say("report.drawn.alt_baseline", low=low, high=high))
    if panel.threshold is not None:
        parts.append(say("report.drawn.alt_threshold", value=scale.text(panel.threshold)))
    return Localized(
        f"{panel.title.en}: {'; '.join(part.en for part in parts)}.",
        f"{panel.title.zh}：{'；'.join(part.zh for part in parts)}。",
    )


def _clock(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%H:%M:%S}"


def data_csv(spec: ChartSpec) -> bytes:
    """The chart's data: one row per instant, one column per series in its own unit, gaps as empty cells. UTF-8."""
    columns: list[str] = []
    rows: dict[datetime, dict[int, float]] = {}
    for panel in spec.panels:
        for name, series in zip(names_of(panel.series), panel.series, strict=True):
            index = len(columns)
            columns.append(f"{panel.title.en} | {name} [{panel.unit}]")
            for sample in series.samples:
                row = rows.setdefault(sample.at, {})
                if sample.value is not None and math.isfinite(sample.value):
                    row[index] = sample.value
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time", *(harmless_cell(visible(column)) for column in columns)])
    for at in sorted(rows):
        cells = [
            repr(rows[at][index]) if index in rows[at] else "" for index in range(len(columns))
        ]
        writer.writerow([to_rfc3339(at), *cells])
    return out.getvalue().encode("utf-8", "replace")
