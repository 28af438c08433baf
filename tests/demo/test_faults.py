from datetime import UTC, datetime, timedelta

import pytest

from bot.demo.faults import Fault, recorded_changes
from bot.demo.pinned_pool import PoolMode
from bot.demo.remedies import Remedy, remedy_for
from bot.intake.change import parse

NOW = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize("fault", list(Fault))
def test_every_variant_has_the_innocent_fresh_deploy(fault: Fault) -> None:
    changes = {change.service: change for change in recorded_changes(fault, NOW)}

    assert changes["web-frontend"].at > NOW - timedelta(hours=1)
    assert ("translate-api" in changes) == (fault is Fault.PINNED)


def test_guilty_change_is_days_old() -> None:
    guilty = [c for c in recorded_changes(Fault.PINNED, NOW) if c.service == "translate-api"]

    assert guilty[0].at < NOW - timedelta(days=2)
    assert guilty[0].kind == "config"


def test_bot_accepts_the_recorded_events() -> None:
    events = [change.to_json() for change in recorded_changes(Fault.PINNED, NOW)]
    events.append(Remedy.PREALLOCATE.as_change(NOW).to_json())

    assert len(parse({"events": events})) == 3


def test_only_the_pinned_variant_starts_with_the_faulty_pool() -> None:
    modes = {fault: fault.initial_pool for fault in Fault}

    assert [fault for fault, mode in modes.items() if mode is PoolMode.PER_REQUEST] == [
        Fault.PINNED
    ]


def test_what_fits_no_action_here_gets_none() -> None:
    assert remedy_for("gpu_clock_throttling") is None
    assert remedy_for("cpu_contention") is Remedy.STOP_NEIGHBOUR
