"""Incidents as their timelines are written, for tests of what is learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.alert import Alert, AlertStatus
from bot.domain.hypothesis import Hypothesis
from bot.domain.instant import to_rfc3339
from bot.domain.projection import project
from bot.domain.text import Localized
from bot.domain.timeline import Draft, Entry, EntryKind
from bot.incidents.journal import Ledger
from bot.learning.past import Past, past_of

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TITLES = {
    "cpu_contention": Localized("CPU contention", "CPU 争用"),
    "lock_contention": Localized("lock contention in the process", "进程内锁竞争"),
    "memory_leak": Localized("memory leak", "内存泄漏"),
}


def drafts_of(
    *,
    title: str = "P99 of translate-api is high",
    service: str = "translate-api",
    channel: str = "C1",
    days_ago: float = 1.0,
    alert: str | None = None,
    symptom: str | None = None,
    notes: Sequence[str] = (),
    cause: str | None = None,
    first: str | None = None,
    confirmed_after: float = 600.0,
    is_over: bool = True,
    drill: str | None = None,
    more: Sequence[Draft] = (),
    labels: dict[str, str] | None = None,
) -> list[Draft]:
    at = NOW - timedelta(days=days_ago)
    found = [
        draft(
            EntryKind.SYSTEM, at, title, op="opened", title=title, severity="sev2",
            services=[service] if service else [], channel=channel, thread_ts="100.1", locale="en",
            labels={}, source="alertmanager",
        )
    ]  # fmt: skip
    if drill:
        found.append(
            Draft(
                kind=EntryKind.SYSTEM, at=at, text=Localized.verbatim("x"), source="drill",
                data={"op": "drill", "cause": drill, "case": None, "seed": 3},
            )
        )  # fmt: skip
    if alert:
        body = Alert(
            fingerprint=alert, status=AlertStatus.FIRING, starts_at=at,
            labels={"alertname": alert, "service": service, **(labels or {})},
        )  # fmt: skip
        found.append(
            draft(EntryKind.ALERT, at, alert, op="firing", alert=body.to_json(), group_key=alert)
        )
    if symptom:
        found.append(
            draft(
                EntryKind.SYMPTOM,
                at,
                symptom,
                by="U1",
                id="S-1",
                metric=None,
                scope=None,
                since=None,
            )
        )
    found += [draft(EntryKind.EVIDENCE, at, note, by="U1", person=True) for note in notes]
    ranked = [name for name in (first or cause, cause) if name]
    if ranked:
        bodies = [
            Hypothesis(
                cause=name, title=TITLES.get(name, Localized.verbatim(name)), probability=0.5, chain=(name,)
            ).to_json()
            for name in dict.fromkeys(ranked)
        ]  # fmt: skip
        found.append(draft(EntryKind.HYPOTHESIS, at, "ranked", op="ranked", hypotheses=bodies))
    found += more
    if cause:
        later = at + timedelta(seconds=confirmed_after)
        found.append(
            draft(
                EntryKind.HYPOTHESIS, later, "confirmed", by="U1", op="confirmed", cause=cause,
                chain=[cause], trigger=None, evidence=[],
                deep_cause={"en": "a pool without bound", "zh-CN": "连接池没有上限"},
                prevention={"en": "bound it", "zh-CN": "加上限"},
            )
        )  # fmt: skip
    if is_over:
        later = at + timedelta(seconds=confirmed_after + 600)
        found.append(
            draft(EntryKind.SYSTEM, later, "over", by="U1", op="status", status="resolved")
        )
    return found


def draft(kind: EntryKind, at: datetime, text: str, *, by: str = "rca-bot", **data: Any) -> Draft:
    return Draft(kind=kind, at=at, text=Localized.verbatim(text), author=by, data=data)


def probed(
    probe: str, finding: str, *, severity: str = "info", status: str = "ok", purpose: str = "asked"
) -> Draft:
    at = NOW - timedelta(days=1)
    result = {
        "probe": probe, "node": "gpu-1", "status": status, "started_at": to_rfc3339(at), "duration_s": 0.1,
        "findings": [{"id": finding, "severity": severity, "summary": "seen"}] if finding else [],
        "data": {}, "truncated": False, "error": None,
    }  # fmt: skip
    return draft(EntryKind.PROBE, at, "probe", result=result, purpose=purpose)


def ledger(incident_id: str, **given: Any) -> Ledger:
    return ledger_of(incident_id, drafts_of(**given))


def ledger_of(incident_id: str, drafts: Sequence[Draft]) -> Ledger:
    entries = tuple(
        Entry(
            seq=seq, kind=item.kind, at=item.at, author=item.author, source=item.source,
            text=item.text, data=item.data,
        )
        for seq, item in enumerate(drafts, start=1)
    )  # fmt: skip
    return Ledger(
        entries=entries, incident=project(incident_id, entries), length=len(entries), cursor="1-0"
    )


def past(incident_id: str, **given: Any) -> Past:
    return past_of(ledger(incident_id, **given))
