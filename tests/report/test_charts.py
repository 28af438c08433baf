"""Charts: gaps are gaps, texts are drawn and never parsed, Chinese is Chinese or else English, never boxes."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import pytest
from PIL import Image

from bot.domain.evidence import ChartMark, ChartPanel, Sample, Series
from bot.domain.text import Locale, Localized
from bot.report.charts import draw, draw_in_worker
from bot.report.charts.painter import Painter
from bot.report.charts.words import alternative, data_csv, names_of, scale_of, step_text
from bot.report.fonts import find_chinese_font
from tests.report.sample_chart import chart_spec
from tests.report.sample_facts import BEGAN

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: bytes) -> str:
    root = ElementTree.fromstring(re.sub(rb"<!DOCTYPE[^>]*>", b"", svg))
    return "\n".join(node.text or "" for node in root.iter(f"{SVG}text"))


def line_of(svg: bytes, colour: str) -> str:
    """The path data of the thick line of one colour."""
    found = re.findall(rf'<path d="([^"]*)"[^>]*stroke: {colour}; stroke-width: 1.7', svg.decode())
    assert len(found) == 1
    return found[0]


def test_chart_is_a_thousand_pixels_wide_and_says_everything_that_it_must():
    chart = draw(chart_spec(), Locale.EN, zone="Asia/Shanghai")
    assert Image.open(io.BytesIO(chart.png)).width == 1000
    said = texts(chart.svg)
    for wanted in (
        "Pinned-memory contention: deciding evidence",
        "2026-11-30 18:50:10 – 19:20:10 +08:00 (Asia/Shanghai)",
        "1. Request latency, P99 (ms)",
        "3. CPU pressure, waiting share (%)",
        "threshold 300 ms",
        "usual range",
        "19:02:50 alert TranslateP99High",
        "19:01:55 onset",
        "step 5 s",
        "Prometheus: ",
    ):
        assert wanted in said, wanted


def test_gap_breaks_the_line():
    with_gap = draw(chart_spec(panels=1), Locale.EN)
    spec = chart_spec(panels=1)
    series = spec.panels[0].series[0]
    filled = replace(
        series, samples=tuple(replace(s, value=s.value or 0.6) for s in series.samples)
    )
    whole = draw(replace(spec, panels=(replace(spec.panels[0], series=(filled,)),)), Locale.EN)
    assert line_of(with_gap.svg, "#0072b2").count("M ") == 2
    assert line_of(whole.svg, "#0072b2").count("M ") == 1


def test_samples_that_are_simply_absent_are_a_gap_too():
    spec = chart_spec(panels=1)
    series = spec.panels[0].series[0]
    thinned = replace(series, samples=tuple(s for s in series.samples if s.value is not None))
    chart = draw(replace(spec, panels=(replace(spec.panels[0], series=(thinned,)),)), Locale.EN)
    assert line_of(chart.svg, "#0072b2").count("M ") == 2


def test_chinese_chart_is_chinese():
    said = texts(draw(chart_spec(), Locale.ZH_CN).svg)
    assert "锁页内存争用：决定性证据" in said
    assert "阈值 300 ms" in said
    assert "平时范围" in said


def test_without_a_chinese_font_the_chart_is_english_and_a_warning_says_so(caplog):
    painter = Painter.with_fonts(None)
    spec = chart_spec()
    mark = ChartMark(at=BEGAN, label=Localized("部署 gateway", "部署 gateway"), kind="change")
    _, svg = painter.paint(replace(spec, marks=(mark,)), Locale.ZH_CN, ZoneInfo("UTC"))
    said = texts(svg)
    assert "fonts-noto-cjk" in caplog.text
    assert "Pinned-memory contention" in said
    assert "gateway" in said
    assert not re.search("[\u4e00-\u9fff]", said)


def test_font_is_found_by_looking_not_by_a_cache(tmp_path):
    assert find_chinese_font([tmp_path]) is None
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "NotoSansCJK-Regular.ttc").write_bytes(b"")
    assert find_chinese_font([tmp_path]).regular.name == "NotoSansCJK-Regular.ttc"


@pytest.mark.parametrize(
    "name", ["cost $a$ and $b$", "_hidden", "🔥 hot", "<script>&", "$\\frac{", ""]
)
def test_series_name_is_text_whatever_it_holds(name):
    spec = chart_spec(panels=2)
    panel = spec.panels[1]
    first = replace(panel.series[0], labels={"phase": name})
    chart = draw(
        replace(spec, panels=(replace(panel, series=(first, *panel.series[1:])),)), Locale.EN
    )
    said = texts(chart.svg)
    assert "4.17 ms" in said
    if "$" in name:
        assert "$" in said


def test_negative_values_have_a_visible_minus():
    series = Series(
        name="delta",
        labels={},
        unit="",
        samples=tuple(
            Sample(at=BEGAN + timedelta(seconds=s), value=v)
            for s, v in ((0, -12.5), (5, -3), (10, 7.25))
        ),
        step_seconds=5,
    )
    panel = ChartPanel(
        title=Localized("Change", "变化量"), unit="", series=(series,), query="q", source="s"
    )
    assert "\u2212" in texts(draw(replace(chart_spec(), panels=(panel,)), Locale.ZH_CN).svg)


def test_panel_without_data_says_so():
    panel = ChartPanel(
        title=Localized("GPU", "GPU"), unit="celsius", series=(), query="q", source="s"
    )
    chart = draw(replace(chart_spec(), panels=(panel,)), Locale.EN)
    assert "no data" in texts(chart.svg)
    assert "no data" in chart.alt.en


def test_crowded_marks_do_not_share_a_row():
    marks = tuple(
        ChartMark(
            at=BEGAN + timedelta(seconds=20 * n),
            label=Localized.verbatim(f"change {n}"),
            kind="change",
        )
        for n in range(6)
    )
    chart = draw(replace(chart_spec(panels=1), marks=marks), Locale.EN)
    found = re.findall(r'y="([\d.]+)"[^>]*>[\d:]+ change \d', chart.svg.decode())
    assert len(found) == 6
    assert len(set(found)) == 6


def test_same_spec_gives_the_same_bytes():
    assert draw(chart_spec(), Locale.EN) == draw(chart_spec(), Locale.EN)


async def test_worker_draws_the_same_chart():
    assert await draw_in_worker(chart_spec(), Locale.EN) == draw(chart_spec(), Locale.EN)


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("s", 0.0812, "81.2 ms"),
        ("seconds", 4.25, "4.25 s"),
        ("s", 0.00002, "20 µs"),
        ("ms", 612.0, "612 ms"),
        ("ms", 2500.0, "2.5 s"),
        ("ratio", 0.004, "0.4%"),
        ("bytes", 3 * 1024**2, "3 MiB"),
        ("bytes/s", 1536.0, "1.5 KiB/s"),
        ("celsius", 83.0, "83 °C"),
        ("MHz", 1410.0, "1\u2009410 MHz"),
        ("req/s", 12400.0, "12.4 k req/s"),
        ("", -3.0, "\u22123"),
    ],
)
def test_units_are_scaled_sensibly(unit, value, text):
    assert scale_of(unit, [value]).text(value) == text


def test_series_are_named_by_the_labels_that_tell_them_apart():
    a = Series(name="m", labels={"job": "x", "gpu": "0"}, unit="", samples=(), step_seconds=1)
    assert names_of([a, replace(a, labels={"job": "x", "gpu": "1"})]) == ["0", "1"]
    assert names_of([a]) == ["m"]


def test_alternative_text_tells_range_limits_onset_and_marks():
    words = alternative(chart_spec(), ZoneInfo("Asia/Shanghai"))
    for part in (
        "from 73.7 ms to",
        "usual range 70 ms to 95 ms",
        "threshold 300 ms",
        "Onset between 19:01:55",
        "fix: preallocated pool",
    ):
        assert part in words.en
    assert "阈值 300 ms" in words.zh


def test_csv_holds_each_sample_in_its_own_unit_and_gaps_as_empty_cells():
    spec = chart_spec(panels=1)
    rows = list(csv.reader(io.StringIO(data_csv(spec).decode())))
    assert rows[0] == ["time", "Request latency, P99 | p99 [s]"]
    assert len(rows) == 1 + len(spec.panels[0].series[0].samples)
    assert rows[1][0] == "2026-11-30T10:50:10Z"
    assert sum(row[1] == "" for row in rows[1:]) == sum(
        s.value is None for s in spec.panels[0].series[0].samples
    )


def test_csv_header_is_no_formula():
    panel = replace(chart_spec().panels[0], title=Localized.verbatim("=cmd|'/C calc'!A0"))
    header = data_csv(replace(chart_spec(), panels=(panel,))).decode().splitlines()[0]
    assert "'=cmd" in header


def test_step_reads_naturally():
    assert [step_text(s) for s in (0.5, 5, 60, 90)] == ["0.5 s", "5 s", "1 min", "90 s"]
