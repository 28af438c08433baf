"""The numbers behind a chart as CSV: whatever a query or a label holds, a spreadsheet shows it and runs nothing."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.domain.text import Localized
from bot.report.charts.words import data_csv
from bot.report.plain import harmless_cell
from bot.report.redact import redact
from tests.conftest import examples
from tests.report.sample import HOSTILE, SECRETS, sample_case
from tests.report.sample_chart import chart_spec

# Source: OWASP, CSV Injection; the wide forms are signs to a Chinese or Japanese spreadsheet.
RUNS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
texts = st.one_of(
    st.sampled_from([*HOSTILE, '",=1+1,"', "\n=1+1", "\t@SUM(A1)", "＝1+1", " -2+3", "\ufeff=1"]),
    st.text(max_size=40),
    st.tuples(st.sampled_from(RUNS), st.text(max_size=20)).map("".join),
)


@settings(max_examples=examples(60), deadline=None)
@given(texts, texts)
@example("=cmd|' /C calc'!A0", '"\r\n=1')
def test_no_cell_runs_and_none_breaks_the_table(title: str, label: str) -> None:
    spec = chart_spec(panels=1, step=60.0)
    panel = spec.panels[0]
    series = replace(panel.series[0], name=title or "x", labels={"replica": label})
    changed = replace(panel, title=Localized.verbatim(title), series=(series, panel.series[0]))
    rows = list(csv.reader(io.StringIO(data_csv(replace(spec, panels=(changed,))).decode())))
    assert {len(row) for row in rows} == {3}
    assert len(rows) == 1 + len(series.samples)
    for cell in rows[0]:
        assert not cell.lstrip().startswith(RUNS), cell
        assert not cell.startswith(("\t", "\r", "\n")), cell
    for row in rows[1:]:
        assert all(cell == "" or float(cell) >= 0 for cell in row[1:])


@given(st.one_of(texts, st.integers().map(str), st.floats(allow_nan=False).map(repr)))
def test_any_cell_is_shown_and_numbers_stay_numbers(text: str) -> None:
    cell = harmless_cell(text)
    assert cell.removeprefix("'") == text or cell == text
    if cell == text and text.lstrip().startswith(RUNS):
        float(text)


def test_masked_secret_is_in_no_table() -> None:
    spec = chart_spec(panels=1, step=60.0)
    said = Localized.verbatim(f"up{{instance='{SECRETS[4]}:9100', token={SECRETS[0]}}}")
    table = data_csv(replace(spec, panels=(replace(spec.panels[0], title=said),)))
    report = redact(sample_case(charts={"symptom.svg": b"<svg/>", "symptom.csv": table}).compile())
    kept = next(chart.csv for chart in report.charts if chart.csv is not None)
    assert not any(secret.encode() in kept for secret in SECRETS)
    assert {len(row) for row in csv.reader(io.StringIO(kept.decode()))} == {2}
