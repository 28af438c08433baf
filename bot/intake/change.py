"""Change events: the bot's own shape, GitHub deployments, Argo CD notifications."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.domain.change import Change, ChangeKind
from bot.intake.reading import MOST_NAME, PayloadError, link_of, text_of, time_of


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
    if (isinstance(body.get("app"), Mapping | str) and body["app"]) or "application" in body:
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
        value = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:120]
        raise PayloadError(f"{where}: no JSON: {reason}") from error
    return _event(value, where)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _event(value: Any, where: str) -> Change:
    if not isinstance(value, Mapping):
        raise PayloadError(f"{where}: must be an object")
    missing = [name for name in ("id", "kind", "at") if not value.get(name)]
    if missing:
        raise PayloadError(f"{where}.{missing[0]}: is missing")
    if not isinstance(value["kind"], str) or value["kind"] not in set(ChangeKind):
        kinds = ", ".join(ChangeKind)
        raise PayloadError(
            f"{where}.kind: must be one of {kinds}, not {text_of(value['kind'], most=60)!r}"
        )
    details = value.get("details")
    if details is not None and not isinstance(details, Mapping):
        raise PayloadError(f"{where}.details: must be an object")
    return Change(
        id=_identity(value["id"], f"{where}.id"),
        kind=ChangeKind(value["kind"]),
        service=_name(value.get("service"), f"{where}.service"),
        summary=_words(value.get("summary"), f"{where}.summary") or "",
        at=_moment(value["at"], f"{where}.at"),
        by=_name(value.get("by"), f"{where}.by"),
        url=link_of(value.get("url")),
        details=dict(details or {}),
    )


def _identity(value: object, where: str) -> str:
    """An id whole: cut, two changes could become one."""
    text = _words(value, where)
    if not text or len(text) > MOST_NAME:
        raise PayloadError(f"{where}: must be a text of 1 to {MOST_NAME} characters")
    return text


def _name(value: object, where: str) -> str | None:
    return (_words(value, where) or "")[:MOST_NAME] or None


def _words(value: object, where: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise PayloadError(f"{where}: must be a text")
    return text_of(value)


def _moment(value: object, where: str) -> datetime:
    at = time_of(value, where)
    if at is None:
        shown = text_of(value, most=60)
        raise PayloadError(f"{where}: {shown!r} is no time of this world; give RFC 3339")
    return at


def _object(value: object) -> Mapping[str, Any]:
    """An object of a foreign sender; anything else tells nothing."""
    return value if isinstance(value, Mapping) else {}


def _github(body: Mapping[str, Any]) -> tuple[Change, ...]:
    deployment = body["deployment"]
    status = _object(body.get("deployment_status"))
    state = text_of(status.get("state"), most=MOST_NAME) or None
    if state is not None and state not in ("success", "failure", "error", "in_progress"):
        return ()
    environment = text_of(deployment.get("environment"), most=MOST_NAME)
    ref = text_of(deployment.get("ref") or deployment.get("sha"), most=MOST_NAME)
    where = f"to {environment}" if environment else ""
    words = " ".join(item for item in (f"deploy {ref}".rstrip(), where, state or "") if item)
    at = status.get("created_at") or deployment.get("created_at")
    return (
        Change(
            id=f"github-{_identity(deployment.get('id'), 'deployment.id')}",
            kind=ChangeKind.DEPLOY,
            service=text_of(_object(body.get("repository")).get("name"), most=MOST_NAME) or None,
            summary=words,
            at=_moment(at, "deployment.created_at"),
            by=text_of(_object(deployment.get("creator")).get("login"), most=MOST_NAME) or None,
            url=link_of(deployment.get("url")),
            details={"environment": environment, "ref": ref, "state": state},
        ),
    )


def _argo_cd(body: Mapping[str, Any]) -> tuple[Change, ...]:
    nested = body.get("app")
    app: Mapping[str, Any] = nested if isinstance(nested, Mapping) else body
    # A template may send the application whole, or only its name beside the other fields.
    flat = nested if isinstance(nested, str) else body.get("application")
    name = text_of(
        _object(app.get("metadata")).get("name") or app.get("name") or flat, most=MOST_NAME
    )
    status = _object(app.get("status"))
    operation = _object(status.get("operationState"))
    revision = _revision(_object(operation.get("syncResult"))) or _revision(body)
    phase = text_of(operation.get("phase") or body.get("phase"), most=MOST_NAME) or None
    began = operation.get("startedAt") or body.get("startedAt")
    ended = operation.get("finishedAt") or body.get("finishedAt")
    when = _moment(ended or began or body.get("at"), "app.status.operationState.finishedAt")
    # One sync is told of when it runs and again when it is through: its start names it.
    seed = json.dumps([name, revision, text_of(began or ended or body.get("at"))])
    return (
        Change(
            id=f"argocd-{hashlib.sha256(seed.encode()).hexdigest()[:16]}",
            kind=ChangeKind.DEPLOY,
            service=name or None,
            summary=f"sync {name} to {revision[:12] or 'unknown revision'}",
            at=when,
            details={"revision": revision, "phase": phase},
        ),
    )


def _revision(value: Mapping[str, Any]) -> str:
    """The revision synced to; an application of several sources has one of each."""
    several = value.get("revisions")
    if isinstance(several, list) and several:
        return text_of(", ".join(text_of(item)[:12] for item in several), most=MOST_NAME)
    return text_of(value.get("revision"), most=MOST_NAME)
