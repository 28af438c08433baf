"""Figures say their n, stay silent where n is too small, and leave exercises out."""

from __future__ import annotations

import csv
import io
import itertools
from datetime import timedelta
from typing import Any

import pytest

from bot.diagnosis.knowledge import load_causes, shipped_causes
from bot.diagnosis.priors import MOST_SHIFT
from bot.domain.postmortem import DurationName
from bot.domain.timeline import EntryKind
from bot.learning.priors import priors_of
from bot.learning.statistics import Statistics, statistics_of
from bot.learning.statistics_csv import incidents_csv, summary_csv
from bot.report.plain import harmless_cell
from tests.learning.written import NOW, draft, past, probed

SINCE = NOW - timedelta(days=90)


def figures(*pasts: Any) -> Statistics:
    return statistics_of(pasts, SINCE, NOW)


def timing(found: Statistics, name: DurationName) -> Any:
    return next(item for item in found.timings if item.name is name)


def confirmed(count: int) -> list[Any]:
    return [
        past(f"INC-{n}", days_ago=n + 1, cause="cpu_contention", confirmed_after=60.0 * n)
        for n in range(1, count + 1)
    ]


def test_two_incidents_give_no_median() -> None:
    found = timing(figures(*confirmed(2)), DurationName.CONFIRMED_CAUSE)
    assert (found.n, found.median_s, found.p90_s) == (2, None, None)


def test_three_give_a_median_and_ten_give_a_p90_that_really_occurred() -> None:
    three = timing(figures(*confirmed(3)), DurationName.CONFIRMED_CAUSE)
    assert (three.n, three.median_s, three.p90_s) == (3, 120.0, None)
    ten = timing(figures(*confirmed(10)), DurationName.CONFIRMED_CAUSE)
    assert (ten.n, ten.median_s, ten.p90_s) == (10, 330.0, 540.0)


def test_a_milestone_that_was_not_reached_does_not_count() -> None:
    found = figures(*confirmed(3), past("INC-9", days_ago=2))
    assert found.count == 4
    assert timing(found, DurationName.CONFIRMED_CAUSE).n == 3


def test_exercises_are_counted_as_such_and_nowhere_else() -> None:
    drill = past("INC-8", days_ago=2, cause="memory_leak", drill="memory_leak", alert="A")
    found = figures(past("INC-9", days_ago=1, cause="cpu_contention", alert="A"), drill)
    assert (found.count, found.drills) == (1, 1)
    assert [cause for cause, _, _ in found.causes] == ["cpu_contention"]
    assert found.recurrence.part == 0
    priors = priors_of([drill], NOW)
    assert priors is None


def test_first_guess_counts_only_where_a_cause_was_confirmed() -> None:
    right = past("INC-1", cause="cpu_contention")
    wrong = past("INC-2", cause="memory_leak", first="cpu_contention")
    open_one = past("INC-3", first="cpu_contention", is_over=False)
    found = figures(right, wrong, open_one).first_guess
    assert (found.part, found.n) == (1, 2)


def test_recurrence_looks_back_beyond_the_span() -> None:
    before = past("INC-1", days_ago=20, alert="LatencyHigh")
    now = past("INC-2", days_ago=1, alert="LatencyHigh")
    found = statistics_of([now, before], NOW - timedelta(days=7), NOW)
    assert (found.recurrence.part, found.recurrence.n) == (1, 1)


def test_wasted_probes_are_those_that_told_nothing() -> None:
    told = probed("host_cpu", "cpu.pressure", severity="warning")
    again = probed("host_cpu", "cpu.pressure", severity="warning")
    clean = probed("host_disk", "disk.ok")
    late = probed("gpu_state", "", status="timeout")
    automatic = probed("gpu_link", "gpu.link_ok", purpose="collection")
    found = figures(past("INC-1", more=[told, again, clean, late, automatic])).wasted
    assert (found.part, found.n) == (3, 4)


def test_overdue_items_and_blind_spots_are_listed_by_service() -> None:
    at = NOW - timedelta(days=1)
    spot = {"what": {"en": "no traces", "zh-CN": "没有调用链"}, "why": {"en": "x", "zh-CN": "x"}}
    more = [
        draft(EntryKind.ACTION, at, "bound the pool", by="U1", op="added", n=1, owner="U1", due="2026-11-20"),
        draft(EntryKind.ACTION, at, "later", by="U1", op="added", n=2, owner=None, due="2027-01-20"),
        draft(EntryKind.EVIDENCE, at, "found", evidence=[], blind_spots=[spot]),
    ]  # fmt: skip
    found = figures(past("INC-1", more=more))
    assert [(item.incident, item.days) for item in found.overdue] == [("INC-1", 10)]
    assert [(item.service, item.what.zh, item.count) for item in found.blind_spots] == [
        ("translate-api", "没有调用链", 1)
    ]


def test_weeks_have_no_gap() -> None:
    found = figures(past("INC-1", days_ago=60), past("INC-2", days_ago=1))
    days = [day for day, _ in found.weeks]
    assert all(later - one == timedelta(days=7) for one, later in itertools.pairwise(days))
    assert sum(count for _, count in found.weeks) == 2


@pytest.mark.parametrize(
    "title", ["=1+1", "+CMD()", "-2+3", "＝1", "@x", "\t=x", " =1", 'a "quote", 中文', "a\r\nb"]
)
def test_csv_is_rfc_4180_and_runs_nothing(title: str) -> None:
    one = past("INC-1", title=title, cause="cpu_contention")
    text = incidents_csv(figures(one), [one])
    assert text.endswith("\r\n")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    cell = rows[1][rows[0].index("title")]
    assert cell.removeprefix("'") == title
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r"))
    assert all(len(row) == len(rows[0]) for row in rows)
    assert harmless_cell("cpu") == "cpu"


def test_summary_csv_leaves_a_figure_empty_where_n_is_too_small() -> None:
    rows = list(csv.DictReader(io.StringIO(summary_csv(figures(*confirmed(2))))))
    row = next(
        r for r in rows if r["measure"] == "time_to_confirmed_cause_s" and r["key"] == "median"
    )
    assert (row["n"], row["value"]) == ("2", "")


def test_priors_follow_the_team_within_their_bound() -> None:
    causes = load_causes([shipped_causes()]).causes
    pasts = [past(f"INC-{n}", days_ago=n, cause="memory_leak") for n in range(1, 200)]
    priors = priors_of(pasts, NOW)
    assert priors is not None
    assert priors.shift(causes["memory_leak"], causes) == MOST_SHIFT
    assert priors.shift(causes["cpu_contention"], causes) == -MOST_SHIFT
    one = priors_of(pasts[:1], NOW)
    assert one is not None
    assert 0 < one.shift(causes["memory_leak"], causes) < 0.7


def test_an_incident_does_not_speak_for_itself_and_a_year_is_the_limit() -> None:
    own = past("INC-1", days_ago=1, cause="memory_leak")
    ancient = past("INC-2", days_ago=400, cause="memory_leak")
    assert priors_of([own, ancient], NOW, but="INC-1") is None
