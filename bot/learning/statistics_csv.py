"""The figures for machines: RFC 4180, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from bot.domain.instant import to_rfc3339
from bot.learning.past import Past
from bot.learning.similar import recurring
from bot.learning.statistics import SHOWN_TIMINGS, Statistics
from bot.report.plain import harmless_cell


def incidents_csv(statistics: Statistics, pasts: Sequence[Past]) -> str:
    """One line an incident of the span, newest first; an empty cell is a milestone that was not reached."""
    rows: list[list[str]] = [
        [
            "incident", "title", "service", "severity", "status", "opened_at", "resolved_at", "cause",
            "first_guess", "recurrence", "probes_asked", "probes_wasted", "blind_spots",
            *(name.value for name in SHOWN_TIMINGS),
        ]
    ]  # fmt: skip
    again = recurring(pasts)
    for past in pasts:
        if past.is_drill or not statistics.since <= past.opened_at <= statistics.until:
            continue
        rows.append(
            [
                past.id, past.title, past.service or "", past.severity, past.status,
                to_rfc3339(past.opened_at), to_rfc3339(past.resolved_at) if past.resolved_at else "",
                past.cause or "", past.first_guess or "", "1" if past.id in again else "0",
                str(past.probes.asked), str(past.probes.wasted), str(len(past.blind_spots)),
                *(_number(past.durations.get(name)) for name in SHOWN_TIMINGS),
            ]
        )  # fmt: skip
    return _written(rows)


def summary_csv(statistics: Statistics) -> str:
    """One line a figure: `measure`, `key`, `n`, `value`, `unit`; an empty value is a figure for which n is too small."""
    rows = [["measure", "key", "n", "value", "unit"]]
    for timing in statistics.timings:
        for name, value in (("median", timing.median_s), ("p90", timing.p90_s)):
            rows.append([timing.name.value, name, str(timing.n), _number(value), "s"])
    for name, share in (
        ("probes_wasted", statistics.wasted),
        ("first_guess_right", statistics.first_guess),
        ("recurrence", statistics.recurrence),
    ):
        rows.append([name, "", str(share.n), _number(share.ratio), "ratio"])
    rows += [
        ["cause", cause, str(statistics.count), str(count), "incidents"]
        for cause, _, count in statistics.causes
    ]
    rows += [
        ["blind_spot", f"{item.service}: {item.what.en}", "", str(item.count), "incidents"]
        for item in statistics.blind_spots
    ]
    rows += [
        ["overdue_action", f"{item.incident} {item.due.isoformat()}", "", str(item.days), "days"]
        for item in statistics.overdue
    ]
    return _written(rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _written(rows: Sequence[Sequence[str]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerows([harmless_cell(cell) for cell in row] for row in rows)
    return buffer.getvalue()
