"""Change events: the bot's own shape, GitHub deployments, Argo CD notifications."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bot.domain.change import Change, ChangeKind
from bot.domain.instant import parse_rfc3339
from bot.intake.reading import PayloadError


def parse(body: object) -> tuple[Change, ...]:
    """Reads one delivery; a GitHub ping or a status that is no deployment yet gives no change.

    Raises:
        PayloadError: none of the known shapes, or a field that cannot be read; the message names it.
    """
    if not isinstance(body, Mapping):
        raise PayloadError('the body is no JSON object; send {"events": [...]}')
    if "events" in body:
        events = body["events"]
        if not isinstance(events, list):
            raise PayloadError("events: must be a list")
        return tuple(_event(item, f"events[{place}]") for place, item in enumerate(events))
    if isinstance(body.get("deployment"), Mapping):
        return _github(body)
    if isinstance(body.get("app"), Mapping) or "application" in body:
        return _argo_cd(body)
    if "zen" in body or "hook_id" in body:
        return ()
    raise PayloadError(
        'the body is neither {"events": [...]}, nor a GitHub deployment, nor an Argo CD notification'
    )


def parse_line(line: str, where: str) -> Change:
    """Reads one line of a change file.

    Raises:
        PayloadError: no JSON, or not an event.
    """
    try:
        return _event(json.loads(line), where)
    except json.JSONDecodeError as error:
        raise PayloadError(f"{where}: no JSON: {error.msg}") from error


def _event(value: Any, where: str) -> Change:
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: must be an object")
    missing = [name for name in ("id", "kind", "at") if not value.get(name)]
    if missing:
        raise PayloadError(f"{where}.{missing[0]}: is missing")
    if value["kind"] not in set(ChangeKind):
        kinds = ", ".join(ChangeKind)
        raise PayloadError(f"{where}.kind: must be one of {kinds}, not {value['kind']!r}")
    try:
        return Change.from_json(value)
    except (KeyError, ValueError, TypeError) as error:
        raise PayloadError(f"{where}: {error}") from error


def _github(body: Mapping[str, Any]) -> tuple[Change, ...]:
    deployment = body["deployment"]
    status = body.get("deployment_status")
    state = status.get("state") if isinstance(status, Mapping) else None
    if state is not None and state not in ("success", "failure", "error", "in_progress"):
        return ()
    repository = body.get("repository")
    name = repository.get("name") if isinstance(repository, Mapping) else None
    environment = str(deployment.get("environment") or "")
    ref = str(deployment.get("ref") or deployment.get("sha") or "")
    creator = deployment.get("creator")
    at = (status or {}).get("created_at") or deployment.get("created_at")
    try:
        when = parse_rfc3339(str(at))
    except ValueError as error:
        raise PayloadError(f"deployment.created_at: {at!r} is no RFC 3339 time") from error
    words = " ".join(item for item in (f"deploy {ref}", f"to {environment}", state or "") if item)
    return (
        Change(
            id=f"github-{deployment.get('id')}",
            kind=ChangeKind.DEPLOY,
            service=str(name) if name else None,
            summary=words,
            at=when,
            by=str(creator.get("login")) if isinstance(creator, Mapping) else None,
            url=str(deployment["url"]) if deployment.get("url") else None,
            details={"environment": environment, "ref": ref, "state": state},
        ),
    )


def _argo_cd(body: Mapping[str, Any]) -> tuple[Change, ...]:
    nested = body.get("app")
    app: Mapping[str, Any] = nested if isinstance(nested, Mapping) else body
    metadata = app.get("metadata")
    name = (
        metadata.get("name")
        if isinstance(metadata, Mapping)
        else app.get("name") or body.get("application")
    )
    status = app.get("status") if isinstance(app.get("status"), Mapping) else {}
    operation = status.get("operationState") if isinstance(status, Mapping) else None
    operation = operation if isinstance(operation, Mapping) else {}
    at = operation.get("finishedAt") or operation.get("startedAt") or body.get("at")
    revision = str(
        (operation.get("syncResult") or {}).get("revision") or body.get("revision") or ""
    )
    try:
        when = parse_rfc3339(str(at))
    except ValueError as error:
        raise PayloadError(f"app.status.operationState.finishedAt: {at!r} is no time") from error
    seed = json.dumps([name, revision, str(at)])
    return (
        Change(
            id=f"argocd-{hashlib.sha256(seed.encode()).hexdigest()[:16]}",
            kind=ChangeKind.DEPLOY,
            service=str(name) if name else None,
            summary=f"sync {name} to {revision[:12] or 'unknown revision'}",
            at=when,
            details={"revision": revision, "phase": operation.get("phase")},
        ),
    )
