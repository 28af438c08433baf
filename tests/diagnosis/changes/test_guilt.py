"""Which change can have done it; made-up code, one mechanism each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.diagnosis.changes.guilt import NO_CHANGE, Candidate, Failing, rank_changes
from bot.domain.evidence import Sample, Series

ALERT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def change(
    name: str, diff: str | None, minutes: float = 60, *, files: tuple[str, ...] = ("src/app.go",)
) -> Candidate:
    return Candidate(
        id=name, at=ALERT - timedelta(minutes=minutes), service="orders", rolled_out=True,
        summary="tidy up", files=files, diff=diff,
    )  # fmt: skip


def failing(*texts: str, **fields: object) -> Failing:
    return Failing(
        texts=texts, services=frozenset({"orders"}), alerting="orders", alerted_at=ALERT, **fields  # type: ignore[arg-type]
    )  # fmt: skip


MOVED = "-\tout := a(b)\n-\tsend(out)\n+\tpublish(b)\n+}\n+func publish(b B) {\n+\tout := a(b)\n+\tsend(out)\n"

MECHANISMS = {
    "shorter timeout": ("-  timeout = 4 * time.Second\n+  timeout = 200 * time.Millisecond", "context deadline exceeded"),
    "fewer attempts": ("-MAX_ATTEMPTS = 6\n+MAX_ATTEMPTS = 1", "gave up: retries exhausted"),
    "shorter cache life": ("-cache_ttl: 20m\n+cache_ttl: 10s", "cache miss; database cpu high"),
    "smaller pool": ("-  pool_size: 40\n+  pool_size: 4", "connection pool exhausted"),
    "louder logs": ("-  level: warn\n+  level: debug", "write failed: no space left on device"),
    "dropped step": ("@@\n-  seedDefaults(store);\n", "default profile not found"),
    "renamed field": ('-  `json:"colour"`\n+  `json:"shade"`', "cannot decode: missing required field 'colour'"),
    "only grows": ("+var seen []Order\n+func note(o Order) {\n+\tseen = append(seen, o)\n+}", "container OOMKilled"),
    "table without migration": ('+    q = "SELECT id FROM order_notes"', "relation order_notes does not exist"),
    "not given back": ("-\tdefer rows.Close()\n+\tlog.Print(rows)", "too many connections"),
    "guard removed": ("-\tif user == nil {\n-\t\treturn\n-\t}\n+\tname := user.Name", "panic: nil pointer"),
    "asks in a loop": ("+\tfor _, id := range ids {\n+\t\titem := db.Query(id)\n+\t}", "slow query; database cpu high"),
    "index dropped": ("+DROP INDEX orders_by_day;", "statement timeout; slow query"),
    "another address": ("-host: db1.prod.internal.net\n+host: db2.prod.internal.net", "lookup failed: no such host"),
}  # fmt: skip


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_a_change_can_do_outweighs_how_new_another_one_is(name: str) -> None:
    diff, text = MECHANISMS[name]
    ranked = rank_changes(
        [change("guilty", diff, 180), change("newest", MOVED, 2), change("older", MOVED, 300)],
        failing(text),
    )
    assert ranked[0].id == "guilty"


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_change_is_not_blamed_for_a_trouble_it_cannot_cause(name: str) -> None:
    ranked = rank_changes(
        [change("innocent", MECHANISMS[name][0])], failing("fan speed zero in rack 7")
    )
    assert ranked[0].id == NO_CHANGE


def test_the_opposite_direction_is_no_reason() -> None:
    longer = change("longer", "-  timeout = 200 * time.Millisecond\n+  timeout = 4 * time.Second")
    assert rank_changes([longer], failing("context deadline exceeded"))[0].id == NO_CHANGE


def test_small_tuning_is_no_reason() -> None:
    tuned = change("tuned", "-  timeout: 5s\n+  timeout: 4s")
    assert rank_changes([tuned], failing("request timed out"))[0].id == NO_CHANGE


def test_a_new_library_is_believed_when_the_error_names_it() -> None:
    bump = change(
        "bump",
        "-\texample.org/protocodec v1.3.0\n+\texample.org/protocodec v1.5.0",
        files=("go.mod",),
    )
    other = change(
        "other",
        "-\texample.org/imaging v2.1.0\n+\texample.org/imaging v2.3.0",
        5,
        files=("go.mod",),
    )
    ranked = rank_changes([bump, other], failing("panic: protocodec registered twice"))
    assert [item.id for item in ranked][:2] == ["bump", NO_CHANGE]


@pytest.mark.parametrize(
    "file", ["docs/limits.md", "src/app_test.go", "web/theme.css", ".github/workflows/ci.yml"]
)
def test_what_does_not_run_is_never_first(file: str) -> None:
    words = change("words", "-timeout: 60s\n+timeout: 1s", files=(file,))
    assert rank_changes([words], failing("request timed out"))[0].id == NO_CHANGE


def test_nothing_made_after_the_onset_is_guilty() -> None:
    late = change("late", MECHANISMS["shorter timeout"][0], -5)
    assert rank_changes([late], failing("deadline exceeded"))[0].id == NO_CHANGE


def test_a_shift_of_the_alerting_component_moves_the_onset_ahead_of_the_alert() -> None:
    samples = tuple(
        Sample(at=ALERT - timedelta(minutes=60 - at), value=0.1 if at < 30 else 0.9)
        for at in range(60)
    )
    series = Series(
        name="error_ratio", labels={"service": "orders"}, unit="", samples=samples, step_seconds=60
    )
    between = change("between", MECHANISMS["shorter timeout"][0], 10)
    assert rank_changes([between], failing("deadline exceeded"))[0].id == "between"
    assert (
        rank_changes([between], failing("deadline exceeded", series=(series,)))[0].id == NO_CHANGE
    )


def test_a_report_from_outside_at_the_onset_speaks_for_no_change() -> None:
    weak = change("weak", "-\tif reply == nil {\n+\tuse(reply)")
    text = failing("panic: nil reply; resolver degraded", outside=((ALERT, "resolver degraded"),))
    ranked = rank_changes([weak], text)
    assert ranked[0].id == NO_CHANGE
    assert any(reason.kind == "outside" for reason in ranked[0].reasons)


def test_order_of_the_changes_changes_nothing() -> None:
    some = [
        change(name, diff, at) for at, (name, (diff, _)) in enumerate(MECHANISMS.items(), start=10)
    ]
    text = failing("connection pool exhausted", "deadline exceeded")
    assert rank_changes(some, text) == rank_changes(some[::-1], text)
