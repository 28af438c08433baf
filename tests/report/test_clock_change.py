"""A night in which the clocks go back: six sources with four notations of time, and one order."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from bot.domain.alert import Alert, AlertStatus
from bot.domain.instant import parse_rfc3339, to_rfc3339
from bot.domain.projection import project
from bot.domain.text import Locale
from bot.domain.timeline import Entry, EntryKind
from bot.exporter import ExportOptions
from bot.exporters import render_report
from bot.report.clock import Clock
from bot.report.wording import Wording
from tests.report.sample import Case
from tests.report.sample_script import Script

OPENED = parse_rfc3339("2026-11-01T05:30:10.464Z")
ZONE = "America/New_York"


def _slack(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)


def night() -> Case:
    """The incident opens at 01:30 by the clock, for the first time that night, and is over at 01:10."""
    alert = Alert(
        fingerprint="f1",
        status=AlertStatus.FIRING,
        labels={"alertname": "TTFTHigh"},
        annotations={},
        starts_at=parse_rfc3339("2026-11-01T01:30:10-04:00"),
    )
    over = Alert(
        fingerprint="f1",
        status=AlertStatus.RESOLVED,
        labels=alert.labels,
        annotations={},
        starts_at=alert.starts_at,
        ends_at=parse_rfc3339("2026-11-01T01:10:00-05:00"),
    )
    script = Script(OPENED)

    def at(when: datetime) -> float:
        return (when - OPENED).total_seconds()

    script.add(
        0, EntryKind.SYSTEM, "incident opened", op="opened", title="TTFTHigh", severity="sev2",
        services=["chat"], nodes=[], channel="C0", locale="en", labels={},
    )  # fmt: skip
    script.add(
        at(alert.starts_at), EntryKind.ALERT, "alert started", source="alertmanager",
        op="firing", alert=alert.to_json(),
    )  # fmt: skip
    assert over.ends_at is not None
    script.add(
        at(over.ends_at), EntryKind.ALERT, "alert resolved", source="alertmanager",
        op="resolved", alert=over.to_json(),
    )  # fmt: skip
    script.say(at(_slack("1793511020.000200")), "U0LIN", "the cache is at 99 %")
    script.say(at(_slack("1793511020.000100")), "U0PRIYA", "on it")
    restarted = parse_rfc3339("2026-11-01T13:45:00+08:00")
    script.add(at(restarted), EntryKind.CHANGE, "pod restarted", source="kubernetes", changes=[])
    synced = parse_rfc3339("2026-11-01T05:25:00Z")
    script.add(at(synced), EntryKind.CHANGE, "gateway synced", source="argocd", changes=[])
    script.add(
        at(parse_rfc3339("2026-11-01T05:50:00Z")), EntryKind.SYMPTOM, "started around 01:20",
        author="U0SAM", source="slack", id="S-1", metric=None, scope=None,
        since=to_rfc3339(parse_rfc3339("2026-11-01T01:20:00-04:00")),
    )  # fmt: skip
    entries: tuple[Entry, ...] = tuple(script.entries)
    return Case(entries=entries, incident=project("INC-31", entries), directory={})


def test_order_is_by_instant_whatever_the_notation():
    said = [line.text.en for line in night().compile(ZONE).timeline if line.text]
    assert said == [
        "gateway synced",
        "alert started",
        "incident opened",
        "on it",
        "the cache is at 99 %",
        "pod restarted",
        "started around 01:20",
        "alert resolved",
    ]


def test_duration_runs_across_the_change_of_the_clocks():
    markdown = _markdown()
    assert "39 min 50 s" in markdown
    assert not re.search(r"[-−]\d+ (?:min|s)\b", markdown)


def test_alert_before_the_opening_shows_the_difference():
    markdown = _markdown()
    assert "2026-11-01 01:30:10 -04:00" in markdown
    assert "2026-11-01 01:30:10.464 -04:00" in markdown


def test_time_that_the_clocks_showed_twice_says_which_one_it_is():
    words = Wording.of(night().compile(ZONE), Locale.EN)
    assert "first time" in words.since(parse_rfc3339("2026-11-01T05:20:00Z"))
    assert "second time" in words.since(parse_rfc3339("2026-11-01T06:20:00Z"))
    assert words.since(parse_rfc3339("2026-11-01T04:20:00Z")) == "2026-11-01 00:20:00 -04:00"
    assert "2026-11-01 01:20:00 -04:00 (the first time" in _markdown()
    assert Clock.named("Asia/Shanghai").occurrence(OPENED) == 0


def _markdown() -> str:
    written = render_report(night().compile(ZONE), ["md"], ExportOptions(locale=Locale.EN))
    return written["md"].content.decode()
