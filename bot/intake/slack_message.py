"""Alert messages that other apps post in a channel: Alertmanager, Grafana, PagerDuty, told apart by the poster's bot id.

What such a message says is less than what the sender's webhook says: a title with the state, a few named fields. From
these the labels are read, so that the same alert by webhook is found to be the same.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bot.domain.alert import Alert, AlertGroup, AlertStatus

SENDERS = ("alertmanager", "grafana", "pagerduty")

Json = Mapping[str, Any]

_STATE = re.compile(
    r"^\W*(FIRING|RESOLVED|Triggered|Acknowledged|Resolved|OK|Alerting)\b[:\]]?\s*(?::\s*\d+)?[\]\s:]*",
    re.IGNORECASE,
)
_STATE_COUNT = re.compile(
    r"^\s*\[\s*(FIRING|RESOLVED)\s*(?::\s*(\d+))?\s*(?:,[^\]]*)?\]\s*", re.IGNORECASE
)
_LABEL = re.compile(r"^\s*[-*•]?\s*\*?([A-Za-z_][\w .-]{0,60}?)\*?\s*[:=]\*?\s*(.+?)\s*$")
_BOLD_FIELD = re.compile(r"^\s*\*([^*\n]{1,60})\*\s*\n\s*(.+?)\s*$", re.DOTALL)
_TOKEN = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
_NO_PREVIEW = re.compile(r"^\[?no preview available\]?$", re.IGNORECASE)
_RESOLVED = ("resolved", "ok")
# Field names as the senders' templates write them, and the label that they mean.
_NAMES = {
    "alert": "summary",
    "summary": "summary",
    "description": "description",
    "severity": "severity",
    "urgency": "urgency",
    "service": "service",
    "cluster": "cluster",
    "namespace": "namespace",
    "node": "node",
    "instance": "instance",
    "pod": "pod",
    "model": "model",
    "tenant": "tenant",
    "job": "job",
    "alertname": "alertname",
    "team": "team",
}
_ANNOTATIONS = ("summary", "description")
_MOST_FIELDS = 40
_MOST_TEXT = 1000


def parse(sender: str, message: Json, posted_at: datetime) -> AlertGroup | None:
    """The alert in a message of `sender` (one of `SENDERS`), or None where it holds none.

    posted_at: the message's own time; the senders' messages carry no start time.
    """
    if sender not in SENDERS:
        return None
    title, link = _title(message)
    fields = _fields(message)
    status, name = _state(title, message)
    if status is None or not name:
        return None
    labels = {key: value for key, value in fields.items() if key not in _ANNOTATIONS}
    if sender == "pagerduty" and "urgency" in labels:
        labels["severity"] = "critical" if labels.pop("urgency").lower() == "high" else "warning"
    alert_name = labels.pop("alertname", "") or _alert_name(sender, name)
    labels["alertname"] = alert_name
    annotations = {key: fields[key] for key in _ANNOTATIONS if key in fields}
    annotations.setdefault("summary", name)
    identity = {key: labels[key] for key in sorted(labels) if key != "severity"}
    fingerprint = hashlib.sha256(
        json.dumps(identity, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()[:16]
    alert = Alert(
        fingerprint=fingerprint,
        status=status,
        labels=labels,
        annotations=annotations,
        starts_at=posted_at,
        ends_at=posted_at if status is AlertStatus.RESOLVED else None,
        url=link,
    )
    key = identity if sender != "pagerduty" else {"link": link or name}
    return AlertGroup(
        group_key=f"slack:{json.dumps(key, sort_keys=True, ensure_ascii=False)}",
        source=sender,
        status=status,
        alerts=(alert,),
        common_labels=labels,
        common_annotations=annotations,
        external_url=link,
        truncated=max(0, _count(title) - 1),
    )


def _title(message: Json) -> tuple[str, str | None]:
    for attachment in message.get("attachments") or ():
        title = _plain(attachment.get("title"))
        link = attachment.get("title_link")
        if title:
            return title, str(link) if _is_http(link) else None
        for block in attachment.get("blocks") or ():
            if block.get("type") == "header":
                return _plain((block.get("text") or {}).get("text")), None
        fallback = _plain(attachment.get("fallback"))
        if fallback and not _NO_PREVIEW.match(fallback):
            return fallback.partition(" | http")[0], None
    for block in message.get("blocks") or ():
        if block.get("type") == "header":
            return _plain((block.get("text") or {}).get("text")), None
    return _plain(message.get("text")).partition("\n")[0], None


def _state(title: str, message: Json) -> tuple[AlertStatus | None, str]:
    """Firing or over, and the title without the word that says so."""
    found = _STATE_COUNT.match(title) or _STATE.match(title)
    word = found.group(1).lower() if found else ""
    rest = title[found.end() :].strip() if found else title.strip()
    if not word:
        for attachment in message.get("attachments") or ():
            hint = _plain(attachment.get("pretext")) or _plain(attachment.get("fallback"))
            if said := _STATE.match(hint):
                word = said.group(1).lower()
                break
    if not word and not rest:
        return None, ""
    status = AlertStatus.RESOLVED if word in _RESOLVED else AlertStatus.FIRING
    return status, rest[:200]


def _count(title: str) -> int:
    found = _STATE_COUNT.match(title)
    return int(found.group(2) or 1) if found else 1


def _alert_name(sender: str, title: str) -> str:
    """The rule's name: the first word of Alertmanager's title, what stands before the labels in Grafana's."""
    bare = title.partition(" (")[0].strip()
    if sender == "alertmanager":
        return bare.split()[0] if bare else title
    return bare or title


def _fields(message: Json) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _pairs(message):
        key = _NAMES.get(name.strip().lower())
        text = value.strip().strip("`").strip()[:_MOST_TEXT]
        if key and text and key not in found and len(found) < _MOST_FIELDS:
            found[key] = text
    title, _ = _title(message)
    if "service" not in found and (words := title.partition("(")[0].split()):
        # Alertmanager's default title: "[FIRING:1] Name value value (…)"; a lone second word is the service.
        rest = [word for word in words if not word.startswith("[")]
        if len(rest) == 2 and re.fullmatch(r"[a-z0-9][a-z0-9._-]*", rest[1]):
            found["service"] = rest[1]
    return found


def _pairs(message: Json) -> Iterator[tuple[str, str]]:
    parts = [*(message.get("attachments") or ()), message]
    for part in parts:
        for field in part.get("fields") or ():
            yield _plain(field.get("title")), _plain(field.get("value"))
        yield from _lines(part.get("text"))
        for block in part.get("blocks") or ():
            text = block.get("text")
            yield from _lines(text.get("text") if isinstance(text, Mapping) else None)
            for item in (*(block.get("fields") or ()), *(block.get("elements") or ())):
                if isinstance(item, Mapping):
                    yield from _field(item.get("text"))


def _field(text: object) -> Iterator[tuple[str, str]]:
    if not isinstance(text, str):
        return
    if found := _BOLD_FIELD.match(_plain(text)):
        yield found.group(1), found.group(2)
    else:
        yield from _lines(text)


def _lines(text: object) -> Iterator[tuple[str, str]]:
    if not isinstance(text, str):
        return
    for line in _plain(text).split("\n")[:200]:
        if found := _LABEL.match(line[:_MOST_TEXT]):
            yield found.group(1), found.group(2)


def _plain(value: object) -> str:
    """Slack's text as a person reads it."""
    if not isinstance(value, str):
        return ""
    text = _TOKEN.sub(lambda found: found.group(2) or found.group(1), value[:20_000])
    return html.unescape(text).strip()


def _is_http(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))
