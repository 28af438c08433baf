"""Which alerts of an incident are silenced at their sender: pure rules, and the entry that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.domain.alert import Alert, AlertStatus
from bot.domain.incident import Incident
from bot.domain.silence import Hearing, SentAlert, Silence
from bot.domain.text import Localized
from bot.domain.timeline import Draft, EntryKind
from bot.locales import say

ALERTMANAGER = "alertmanager"
SENDERS = (ALERTMANAGER, f"slack:{ALERTMANAGER}")
"""Ways in by which alerts come that Alertmanager knows."""

_MOST_NAMED = 5


def firing_of(incident: Incident) -> tuple[Alert, ...]:
    """Its alerts that are on."""
    return tuple(a for a in incident.alerts.values() if a.status is AlertStatus.FIRING)


def is_asked_about(incident: Incident) -> bool:
    """Whether Alertmanager can say anything about it: open, and an alert of it is on there."""
    is_theirs = any(way in SENDERS for way, _ in incident.alert_groups)
    return is_theirs and incident.is_open and incident.drill is None and bool(firing_of(incident))


def silence_of(alert: Alert, sent: Sequence[SentAlert]) -> Silence | None:
    """What keeps one alert silent for longest; None when somebody hears it.

    By its fingerprint; an alert that came as another app's message has only some of its labels, so it is silent when
    all alerts with these are.
    """
    same = [item for item in sent if item.fingerprint == alert.fingerprint]
    if not same and alert.labels.get("alertname"):
        wanted = alert.labels.items()
        same = [item for item in sent if wanted <= item.labels.items()]
    if not same or not all(item.silences for item in same):
        return None
    longest = [max(item.silences, key=lambda one: one.until) for item in same]
    return min(longest, key=lambda one: one.until)


def hearing_of(incident: Incident, sent: Sequence[SentAlert]) -> Hearing:
    """What Alertmanager's answer says about an incident."""
    found = {alert.fingerprint: silence_of(alert, sent) for alert in firing_of(incident)}
    return Hearing(silenced={name: silence for name, silence in found.items() if silence})


def silences_on(incident: Incident) -> Mapping[str, Silence]:
    """The silences of those of its alerts that are on; empty where none is known."""
    known = incident.hearing.silenced if incident.hearing is not None else {}
    return {
        a.fingerprint: known[a.fingerprint] for a in firing_of(incident) if a.fingerprint in known
    }


def silent_until(incident: Incident) -> datetime | None:
    """Until when nobody hears any of its alerts; None where one of them is heard, none is on, or it is not known."""
    silenced = silences_on(incident)
    if not silenced or len(silenced) < len(firing_of(incident)) or not incident.is_open:
        return None
    return min(item.until for item in silenced.values())


def hearing_draft(incident: Incident, hearing: Hearing, now: datetime, zone: ZoneInfo) -> Draft:
    """The entry of what has become known."""
    return Draft(
        kind=EntryKind.ALERT,
        at=now,
        text=_words(incident, hearing, zone),
        source=ALERTMANAGER,
        data={
            "op": "hearing",
            "is_known": hearing.is_known,
            "silenced": {name: item.to_json() for name, item in hearing.silenced.items()},
        },
    )


def _words(incident: Incident, hearing: Hearing, zone: ZoneInfo) -> Localized:
    if not hearing.is_known:
        return say("silence.unknown")
    if not hearing.silenced:
        return say("silence.none")
    parts = [
        said(silence, zone, names=[
            alert.name
            for alert in firing_of(incident)
            if (known := hearing.silenced.get(alert.fingerprint)) and known.id == silence.id
        ])
        for silence in {item.id: item for item in hearing.silenced.values()}.values()
    ]  # fmt: skip
    heard = len(firing_of(incident)) - len(hearing.silenced)
    if heard:
        parts.append(say("silence.others_heard", count=heard))
    elif incident.is_open:
        parts.append(say("silence.no_followups"))
    return Localized(" ".join(part.en for part in parts), "".join(part.zh for part in parts))


def said(silence: Silence, zone: ZoneInfo, names: Sequence[str]) -> Localized:
    """Who silenced what, until when, and why."""
    shown = list(dict.fromkeys(names))
    more = len(shown) - _MOST_NAMED
    text = ", ".join(shown[:_MOST_NAMED]) + (f" +{more}" if more > 0 else "")
    return say(
        "silence.silenced",
        alerts=text,
        by=silence.by or "–",
        comment=silence.comment or "–",
        until=f"{silence.until.astimezone(zone):%Y-%m-%d %H:%M %Z}",
    )
