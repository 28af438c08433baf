"""When follow-ups are wanted, and when quiet hours hold them back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.action_item import ActionItem
from bot.domain.incident import Fix, FollowupState, Incident, IncidentStatus
from bot.domain.responder import Severity
from bot.domain.text import Locale, Localized
from bot.incidents.due import FollowupKind, due_of, followups_due, quiet_until
from bot.settings import FollowupSettings, Settings

OPENED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def incident(**more):
    return Incident(
        id="INC-1",
        title="P99",
        status=more.pop("status", IncidentStatus.OPEN),
        severity=Severity.SEV3,
        services=("a",),
        channel="C1",
        opened_at=OPENED,
        locale=Locale.EN,
        active_at=OPENED,
        current_step="symptom",
        **more,
    )


def kinds(item, settings=None):
    return [due.kind.value for due in followups_due(item, settings or Settings())]


def test_an_open_incident_waits_for_somebody_and_then_for_its_step():
    fresh = incident()
    [due] = followups_due(fresh, Settings())
    assert (due.kind, due.at) == (FollowupKind.UNACKNOWLEDGED, OPENED + timedelta(seconds=300))
    taken = replace(fresh, acknowledged_at=OPENED)
    [due] = followups_due(taken, Settings())
    assert (due.kind, due.at) == (FollowupKind.STEP_IDLE, OPENED + timedelta(seconds=900))


def test_reminders_come_at_doubling_distances_and_end_after_the_third():
    sent = OPENED + timedelta(seconds=300)
    waits = []
    for count in (1, 2, 3):
        state = FollowupState(anchor="opened", count=count, last_at=sent)
        due = due_of(
            incident(followups={"unacknowledged": state}), Settings(), FollowupKind.UNACKNOWLEDGED
        )
        waits.append((due.at - sent).total_seconds() if due else None)
    assert waits == [600, 1200, None]


@pytest.mark.parametrize("kind", FollowupKind)
def test_every_kind_can_be_switched_off(kind):
    item = incident(
        status=IncidentStatus.RESOLVED,
        resolved_at=OPENED,
        action_items=(ActionItem(n=1, text=Localized.verbatim("x"), due="2026-12-01"),),
    )
    for candidate in (item, incident(), incident(acknowledged_at=OPENED, fix=_fix())):
        off = Settings(followup=FollowupSettings(**{f"{kind.value}_s": 0}))
        assert kind.value not in kinds(candidate, off)
        assert set(kinds(candidate, off)) == set(kinds(candidate)) - {kind.value}


def _fix():
    return Fix(text=None, by="U1", at=OPENED)


def test_each_kind_is_stopped_and_snoozed_on_its_own():
    later = OPENED + timedelta(hours=2)
    item = incident(
        acknowledged_at=OPENED,
        fix=_fix(),
        followups={
            "symptom": FollowupState(is_stopped=True),
            "step_idle": FollowupState(snoozed_until=later),
        },
    )
    [due] = followups_due(item, Settings())
    assert (due.kind, due.at) == (FollowupKind.STEP_IDLE, later)


def test_a_resolved_incident_is_looked_at_again_and_asks_for_its_report():
    item = incident(status=IncidentStatus.RESOLVED, resolved_at=OPENED)
    assert [
        (due.kind.value, (due.at - OPENED).total_seconds())
        for due in followups_due(item, Settings())
    ] == [
        ("recurrence", 14400),
        ("report_due", 172800),
    ]
    exported = replace(item, report_formats=("md",))
    assert kinds(exported) == ["recurrence"]


def test_action_items_are_due_in_the_morning_of_their_day_in_the_deployments_zone():
    items = (
        ActionItem(n=1, text=None, due="2026-12-03"),
        ActionItem(n=2, text=None, due="soon"),
        ActionItem(n=3, text=None),
    )
    item = incident(status=IncidentStatus.RESOLVED, action_items=items)
    settings = Settings(timezone="Asia/Shanghai")
    due = due_of(item, settings, FollowupKind.ACTION_DUE)
    assert due.at == datetime(2026, 12, 3, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-11-30T22:59:00+08:00", None),
        ("2026-11-30T23:00:00+08:00", "2026-12-01T07:00:00+08:00"),
        ("2026-12-01T06:59:00+08:00", "2026-12-01T07:00:00+08:00"),
        ("2026-12-01T07:00:00+08:00", None),
    ],
)
def test_quiet_hours_run_over_midnight_in_the_deployments_zone(now, end):
    settings = Settings(timezone="Asia/Shanghai", quiet_hours="23:00-07:00")
    found = quiet_until(datetime.fromisoformat(now), Severity.SEV3, settings)
    assert found == (datetime.fromisoformat(end) if end else None)
    assert quiet_until(datetime.fromisoformat(now), Severity.SEV2, settings) is None


def test_quiet_hours_end_at_the_wall_clock_of_the_night_in_which_clocks_change():
    settings = Settings(timezone="America/New_York", quiet_hours="23:00-07:00")
    before = datetime(2026, 11, 1, 4, 30, tzinfo=UTC)  # 00:30 EDT; at 02:00 it becomes 01:00 EST
    assert quiet_until(before, Severity.SEV4, settings) == datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
