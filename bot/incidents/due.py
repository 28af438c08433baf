"""Which automatic follow-ups an incident still wants, and when: pure, from the incident and the settings alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from bot.domain.action_item import ActionItem, ActionStatus
from bot.domain.evidence import SourceState
from bot.domain.incident import FollowupState, Incident, IncidentStatus
from bot.domain.instant import to_rfc3339
from bot.domain.responder import Severity
from bot.setting_checks import parse_quiet_hours
from bot.settings import Settings

MOST = 3
"""Reminders of one kind about one thing; each waits twice as long as the one before. Basis: judgement."""

# A source that stays away for a day is asked no more on its own.
SOURCE_GIVE_UP = timedelta(days=1)
_MORNING = time(9)


class FollowupKind(StrEnum):
    """Every kind of follow-up of an incident; the value is the name in buttons, timeline and settings."""

    UNACKNOWLEDGED = "unacknowledged"
    STEP_IDLE = "step_idle"
    SOURCE_BACK = "source_back"
    SYMPTOM = "symptom"
    RECURRENCE = "recurrence"
    REPORT_DUE = "report_due"
    ACTION_DUE = "action_due"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """One follow-up that is wanted at `at`.

    anchor: what it is about; count: which one about it this is, from 1; every_seconds: the first wait of its kind.
    """

    kind: FollowupKind
    anchor: str
    at: datetime
    count: int
    every_seconds: float

    @property
    def name(self) -> str:
        """Under which its timer waits once. A step's activity moves its timer, it does not make another one."""
        if self.kind in (FollowupKind.STEP_IDLE, FollowupKind.SOURCE_BACK):
            return f"{self.kind}:{self.count}"
        return f"{self.kind}:{self.anchor}:{self.count}"

    @property
    def is_last(self) -> bool:
        """Whether no further one of this kind follows."""
        return self.count >= MOST

    @property
    def next_seconds(self) -> float:
        """How long after this one the next would come."""
        return wait_seconds(self.every_seconds, self.count)


def wait_seconds(every_seconds: float, sent: int) -> float:
    """How long to wait for the next one after `sent` of them: each twice as long as the one before.

    >>> [wait_seconds(300, sent) for sent in (0, 1, 2)]
    [300.0, 600.0, 1200.0]
    """
    return every_seconds * 2.0**sent


def followups_due(incident: Incident, settings: Settings) -> tuple[Due, ...]:
    """All that this incident still wants, in order of time; some may be in the past."""
    if incident.is_only_listed:
        return ()
    found: list[Due] = []
    for kind, plan in _PLANS.items():
        state = incident.followups.get(kind.value, FollowupState())
        every = _every(kind, settings)
        if not every or state.is_stopped:
            continue
        due = plan(incident, state, every, settings)
        if due is None:
            continue
        if state.snoozed_until is not None and state.snoozed_until > due.at:
            due = Due(
                kind=due.kind,
                anchor=due.anchor,
                at=state.snoozed_until,
                count=due.count,
                every_seconds=due.every_seconds,
            )
        found.append(due)
    return tuple(sorted(found, key=lambda item: (item.at, item.kind)))


def due_of(incident: Incident, settings: Settings, kind: FollowupKind) -> Due | None:
    """The follow-up of one kind that is wanted next."""
    return next((item for item in followups_due(incident, settings) if item.kind is kind), None)


def _every(kind: FollowupKind, settings: Settings) -> float:
    seconds: float = getattr(settings.followup, f"{kind.value}_s")
    return seconds


def _after(
    kind: FollowupKind, state: FollowupState, anchor: str, begins: datetime, every: float
) -> Due | None:
    """The next of at most `MOST` about `anchor`, the first of them `every` seconds after `begins`."""
    sent = state.count if state.anchor == anchor else 0
    if sent >= MOST:
        return None
    since = max(begins, state.last_at) if sent and state.last_at else begins
    at = since + timedelta(seconds=wait_seconds(every, sent))
    return Due(kind=kind, anchor=anchor, at=at, count=sent + 1, every_seconds=every)


def _unacknowledged(
    incident: Incident, state: FollowupState, every: float, _: Settings
) -> Due | None:
    is_on = incident.status in (IncidentStatus.OPEN, IncidentStatus.MITIGATED)
    if incident.acknowledged_at is not None or not is_on:
        return None
    return _after(FollowupKind.UNACKNOWLEDGED, state, "opened", incident.opened_at, every)


def _step_idle(incident: Incident, state: FollowupState, every: float, _: Settings) -> Due | None:
    is_recovered = incident.status is IncidentStatus.RECOVERED
    if not incident.is_open or (incident.acknowledged_at is None and not is_recovered):
        return None
    active_at = incident.active_at or incident.opened_at
    anchor = f"{incident.current_step or 'done'}@{to_rfc3339(active_at)}"
    return _after(FollowupKind.STEP_IDLE, state, anchor, active_at, every)


def unreachable(incident: Incident) -> tuple[str, ...]:
    """Names of the sources that did not answer the last time."""
    down = SourceState.UNREACHABLE
    return tuple(sorted(name for name, state in incident.sources.items() if state is down))


def _source_back(incident: Incident, state: FollowupState, every: float, _: Settings) -> Due | None:
    names = unreachable(incident)
    if not incident.is_open or incident.evidence_at is None or not names:
        return None
    anchor = f"{','.join(names)}@{to_rfc3339(incident.evidence_at)}"
    if state.anchor == anchor:
        return None
    at = incident.evidence_at + timedelta(seconds=every)
    return Due(kind=FollowupKind.SOURCE_BACK, anchor=anchor, at=at, count=MOST, every_seconds=every)


def _symptom(incident: Incident, state: FollowupState, every: float, _: Settings) -> Due | None:
    fix = incident.fix
    if not incident.is_open or fix is None or fix.verified:
        return None
    return _after(FollowupKind.SYMPTOM, state, to_rfc3339(fix.at), fix.at, every)


def _recurrence(incident: Incident, state: FollowupState, every: float, _: Settings) -> Due | None:
    resolved_at = incident.resolved_at
    if resolved_at is None or state.anchor == (anchor := to_rfc3339(resolved_at)):
        return None
    at = resolved_at + timedelta(seconds=every)
    return Due(kind=FollowupKind.RECURRENCE, anchor=anchor, at=at, count=MOST, every_seconds=every)


def _report_due(incident: Incident, state: FollowupState, every: float, _: Settings) -> Due | None:
    resolved_at = incident.resolved_at
    if resolved_at is None or incident.report_formats:
        return None
    return _after(FollowupKind.REPORT_DUE, state, to_rfc3339(resolved_at), resolved_at, every)


def open_items(incident: Incident) -> tuple[ActionItem, ...]:
    """Action items that nobody has done or dropped."""
    return tuple(item for item in incident.action_items if item.status is ActionStatus.OPEN)


def due_at(item: ActionItem, zone: ZoneInfo) -> datetime | None:
    """The morning of the day on which an item is due; None without a date that can be read."""
    try:
        day = datetime.fromisoformat(item.due or "").date()
        return datetime.combine(day, _MORNING, zone).astimezone(ZoneInfo("UTC"))
    except (ValueError, OverflowError):
        return None


def _action_due(
    incident: Incident, state: FollowupState, every: float, settings: Settings
) -> Due | None:
    times = sorted({at for item in open_items(incident) if (at := due_at(item, settings.zone))})
    wanted: list[Due] = []
    for at in times:
        anchor = to_rfc3339(at)
        if anchor > state.anchor:
            wanted.append(
                Due(
                    kind=FollowupKind.ACTION_DUE,
                    anchor=anchor,
                    at=at,
                    count=1,
                    every_seconds=every,
                )
            )
        elif anchor == state.anchor:
            again = _after(FollowupKind.ACTION_DUE, state, anchor, at, every)
            wanted += [again] if again else []
    return min(wanted, key=lambda item: item.at, default=None)


_PLANS: dict[FollowupKind, Callable[[Incident, FollowupState, float, Settings], Due | None]] = {
    FollowupKind.UNACKNOWLEDGED: _unacknowledged,
    FollowupKind.STEP_IDLE: _step_idle,
    FollowupKind.SOURCE_BACK: _source_back,
    FollowupKind.SYMPTOM: _symptom,
    FollowupKind.RECURRENCE: _recurrence,
    FollowupKind.REPORT_DUE: _report_due,
    FollowupKind.ACTION_DUE: _action_due,
}


def quiet_until(now: datetime, severity: Severity, settings: Settings) -> datetime | None:
    """When the quiet hours end that hold a follow-up of this severity back now; None when it may be sent.

    Only what is below sev2 waits. The hours are the deployment's own, whatever its clock changes do.
    """
    if settings.quiet_hours is None or severity in (Severity.SEV1, Severity.SEV2):
        return None
    start, end = parse_quiet_hours(settings.quiet_hours)
    here = now.astimezone(settings.zone)
    clock = here.time().replace(tzinfo=None)
    is_over_midnight = start > end
    is_quiet = (clock >= start or clock < end) if is_over_midnight else start <= clock < end
    if not is_quiet:
        return None
    day = here.date() + timedelta(days=1 if is_over_midnight and clock >= start else 0)
    return datetime.combine(day, end, settings.zone).astimezone(ZoneInfo("UTC"))
