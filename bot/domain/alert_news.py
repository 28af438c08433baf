"""How alerts and automatic follow-ups move an incident."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.alert import Alert
from bot.domain.incident import FollowupState, Incident
from bot.domain.instant import parse_rfc3339
from bot.domain.silence import Hearing, Silence
from bot.domain.timeline import Entry


def fold_alert(incident: Incident, entry: Entry) -> Incident:
    """The incident after news of an alert."""
    if entry.op == "hearing":
        # Asked for by the bot: no notification.
        silenced = {
            name: Silence.from_json(item)
            for name, item in (entry.data.get("silenced") or {}).items()
        }
        hearing = Hearing(silenced=silenced, is_known=bool(entry.data.get("is_known")))
        return replace(incident, hearing=hearing)
    # The entries of one notification have its moment; it counts once, however many alerts it carried.
    notifications = incident.alert_notifications + (entry.at != incident.notified_at)
    incident = replace(incident, alert_notifications=notifications, notified_at=entry.at)
    key = entry.data.get("group_key")
    if isinstance(key, str):
        intake = f"slack:{entry.source}" if key.startswith("slack:") else entry.source
        incident = replace(incident, alert_groups=incident.alert_groups | {(intake, key)})
    if entry.op == "acknowledged":
        incident = replace(incident, acknowledged_at=incident.acknowledged_at or entry.at)
    if "alert" not in entry.data:
        return incident
    alert = Alert.from_json(entry.data["alert"])
    alerts = {**incident.alerts, alert.fingerprint: alert}
    return replace(incident, alerts=alerts)


def fold_followup(incident: Incident, entry: Entry) -> Incident:
    """The incident after a follow-up was due, snoozed or stopped."""
    data = entry.data
    kind = str(data["followup"])
    state = incident.followups.get(kind, FollowupState())
    match entry.op:
        case "due":
            anchor = str(data.get("anchor", ""))
            count = state.count + 1 if anchor == state.anchor else 1
            state = replace(state, anchor=anchor, count=count, last_at=entry.at)
        case "snoozed":
            state = replace(state, snoozed_until=parse_rfc3339(data["until"]))
        case "stopped":
            state = replace(state, is_stopped=True)
        case _:
            return incident
    return replace(incident, followups={**incident.followups, kind: state})
