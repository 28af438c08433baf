"""Keeps what a diagnosis read, and hands it out as a case once the incident is over: masked, with the truth beside it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.diagnosis.collected import Collected
from bot.domain.alert import Alert, AlertStatus
from bot.domain.hypothesis import NOT_ESTABLISHED
from bot.domain.incident import Incident
from bot.domain.instant import to_rfc3339
from bot.domain.text import Localized
from bot.errors import BotError, Reason
from bot.inventory import Service
from bot.learning.cases import Case, Truth, case_from, files_of
from bot.report.redact import Masker
from bot.report.redaction_rules import DEFAULT_RULES, Rule
from bot.store.transaction import Batch, Store

KEPT_DAYS = 90
"""How long raw readings wait to be saved as a case. Basis: judgement; reports are closed within days."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_PLAIN = frozenset({"ts_ns", "at", "traceID", "spanID", "processID", "start", "end", "schema"})
"""Members that cannot hold a secret and must keep their form."""


def snapshot_key(incident_id: str) -> str:
    """Where the readings of the last pass before the cause was known are kept."""
    return f"rca:inc:{incident_id}:readings"


def is_worth_keeping(incident: Incident) -> bool:
    """Whether a pass still sees the incident itself: nothing was mitigated, fixed or confirmed yet."""
    return (
        incident.drill is None
        and incident.root_cause is None
        and incident.fix is None
        and not incident.mitigations
    )


def packed(incident: Incident, collected: Collected, service: Service) -> bytes:
    """The readings as one file. People's words are left out: they may be taken back, and are put in again later."""
    bare = tuple(
        replace(item, summary=Localized.verbatim("-")) for item in collected.request.symptoms
    )
    request = replace(collected.request, symptoms=bare)
    case = Case(
        id=incident.id,
        title="-",
        service=service,
        collected=replace(collected, request=request),
        alert={},
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files_of(case).items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


async def keep(store: Store, incident_id: str, content: bytes) -> None:
    """Stores packed readings for some months.

    Raises:
        StoreError: Redis is not reachable.
    """
    key = snapshot_key(incident_id)
    await store.put_blob(key, content)
    step = Batch().write("EXPIRE", key, KEPT_DAYS * 86_400)
    await store.commit(step, doing=f"keep the readings of {incident_id}")


async def case_of(store: Store, incident: Incident) -> Case:
    """The incident as a case, unmasked; a person's words are as they stand now.

    Raises:
        BotError: the incident is still open, is an exercise, or its readings are no longer kept.
        StoreError: Redis is not reachable.
    """
    if incident.drill is not None:
        raise BotError(
            f"{incident.id}: is an exercise; only real incidents become cases",
            reason=Reason.UNSUPPORTED,
        )
    if incident.is_open:
        raise BotError(
            f"{incident.id}: is still open; resolve it first, then save it as a case",
            reason=Reason.CONFLICT,
        )
    content = await store.blob(snapshot_key(incident.id))
    if content is None:
        raise BotError(
            f"{incident.id}: its readings are not kept (they are for {KEPT_DAYS} days, and only where the "
            "sources were asked before the fix); it cannot become a case",
            reason=Reason.NOT_FOUND,
        )
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    case = case_from(files, incident.id)
    words = {item.id: item for item in incident.symptoms}
    symptoms = tuple(
        replace(item, summary=words[item.id].summary) if item.id in words else item
        for item in case.collected.request.symptoms
    )
    request = replace(case.collected.request, symptoms=symptoms)
    return replace(
        case,
        title=incident.title,
        collected=replace(case.collected, request=request),
        alert=_alert(incident),
        truth=_truth(incident),
    )


def masked_files(
    case: Case, rules: Sequence[Rule] = DEFAULT_RULES
) -> tuple[dict[str, bytes], Mapping[str, int]]:
    """The files of a case without secrets, addresses and people, and how many of each kind were masked."""
    masker = Masker(rules)
    files = files_of(_without_people(case))
    for mask in (masker.mask, masker.mask_everywhere):
        files = {name: _masked(name, content, mask) for name, content in files.items()}
    return files, masker.counts


def write_case(case: Case, out: Path, rules: Sequence[Rule] = DEFAULT_RULES) -> Path:
    """Writes the masked case as `OUT/<id>.case/` and returns that directory.

    Raises:
        BotError: the folder cannot be written.
    """
    folder = out / f"{case.id}.case"
    files, _ = masked_files(case, rules)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise BotError(
            f"{folder}: cannot be written: {error.strerror}; choose another folder with --out",
            reason=Reason.UNSUPPORTED,
        ) from error
    return folder


def _without_people(case: Case) -> Case:
    changes = tuple(replace(item, by=None, url=None) for item in case.collected.changes)
    return replace(case, collected=replace(case.collected, changes=changes))


def _masked(name: str, content: bytes, mask: Callable[[str], str]) -> bytes:
    if name.endswith(".jsonl"):
        lines = [_dumped(_walk(json.loads(line), mask)) for line in content.split(b"\n") if line]
        return "".join(f"{line}\n" for line in lines).encode()
    walked = _walk(json.loads(content), mask)
    return (json.dumps(walked, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _walk(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        # Samples are most of a case, and hold no text.
        return (
            value
            if value and isinstance(value[0], int | float)
            else [_walk(item, mask) for item in value]
        )
    if isinstance(value, dict):
        return {
            mask(key): item if key in _PLAIN else _walk(item, mask) for key, item in value.items()
        }
    return value


def _truth(incident: Incident) -> Truth:
    root = incident.root_cause
    if root is None:
        return Truth(cause=NOT_ESTABLISHED, chain=(NOT_ESTABLISHED,))
    named = incident.hypothesis(root.cause)
    return Truth(
        cause=root.cause,
        chain=root.chain,
        node=named.node if named else None,
        trigger=root.trigger.change if root.trigger else None,
    )


def _alert(incident: Incident) -> dict[str, Any]:
    """The alerts in the shape of Alertmanager's webhook v4; empty for an incident that a person opened."""
    if not incident.alerts:
        return {}
    alerts = sorted(incident.alerts.values(), key=lambda item: (item.starts_at, item.fingerprint))
    shared = {
        key: value
        for key, value in alerts[0].labels.items()
        if all(item.labels.get(key) == value for item in alerts)
    }
    return {
        "version": "4",
        "status": "firing",
        "receiver": "rca-bot",
        "groupKey": f"case:{incident.id}",
        "groupLabels": {},
        "commonLabels": shared,
        "commonAnnotations": {},
        "externalURL": "",
        "truncatedAlerts": 0,
        "alerts": [_one_alert(item) for item in alerts],
    }


def _one_alert(alert: Alert) -> dict[str, Any]:
    return {
        "status": AlertStatus.FIRING.value,
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "startsAt": to_rfc3339(alert.starts_at),
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": alert.fingerprint,
    }
