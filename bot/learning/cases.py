"""A closed incident as a directory of files that the engine can judge again, with the truth beside them.

| file | what |
| --- | --- |
| `case.json` | `id`, `title`, `service`, `at`, `window_s`, `nodes` (inventory), `alert` (Alertmanager webhook v4 body), `sources_down`, and what the request and the collection were |
| `metrics.jsonl` | one reading a line: the signal, its query, its series |
| `logs.jsonl` | `part`, `ts_ns`, `labels`, `line` |
| `traces.json` | Jaeger's shape |
| `changes.jsonl` | the shape of `POST /webhooks/changes` |
| `probes.json` | `{node: {probe: result}}` |
| `truth.json` | `cause`, `chain`, `node`, `trigger`, `incident`; absent until a cause was confirmed |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.cause import Catalogue
from bot.diagnosis.collect import declared_signals
from bot.diagnosis.collected import Collected, Reading
from bot.diagnosis.engine import assess
from bot.diagnosis.request import DiagnosisRequest
from bot.domain.change import Change
from bot.domain.evidence import Gap, SourceState
from bot.domain.hypothesis import Diagnosis, Symptom
from bot.domain.instant import Window, parse_rfc3339, to_rfc3339
from bot.errors import BotError, Reason
from bot.inventory import Service
from bot.learning import case_parts as parts

SCHEMA = "rca-bot/case/1"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a person confirmed: cause ids, effect first, root last; the guilty node and change where known."""

    cause: str
    chain: tuple[str, ...]
    node: str | None = None
    trigger: str | None = None

    def to_json(self, incident_id: str) -> Json:
        """The content of `truth.json`."""
        return {
            "cause": self.cause,
            "chain": list(self.chain),
            "acceptable": [],
            "node": self.node,
            "trigger": self.trigger,
            "incident": incident_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: what was collected, of which service, and what it was."""

    id: str
    title: str
    service: Service
    collected: Collected
    alert: Mapping[str, Any]
    truth: Truth | None = None


def replay(case: Case, catalogue: Catalogue) -> Diagnosis:
    """The engine's judgement on what was collected then, by today's knowledge."""
    return assess(case.collected, catalogue, case.service)


def files_of(case: Case) -> dict[str, bytes]:
    """The files of a case by name; the same case gives the same bytes."""
    collected = case.collected
    readings = [
        *(parts.reading_to_json("now", name, one) for name, one in collected.now.items()),
        *(
            parts.reading_to_json("history", name, one)
            for name, many in collected.history.items()
            for one in many
        ),
        *(parts.reading_to_json("trends", name, one) for name, one in collected.trends.items()),
    ]
    lines = [
        parts.line_to_json(part, line)
        for part, many in (
            ("service", collected.service_lines),
            ("node", collected.node_lines),
            ("old", collected.old_lines),
        )
        for line in many
    ]
    files = {
        "case.json": _pretty(_head(case)),
        "metrics.jsonl": _lines(readings),
        "logs.jsonl": _lines(lines),
        "traces.json": _pretty(parts.spans_to_json(collected.spans)),
        "changes.jsonl": _lines([change.to_json() for change in collected.changes]),
        "probes.json": _pretty(parts.probes_to_json(collected.probes)),
    }
    if case.truth is not None:
        files["truth.json"] = _pretty(case.truth.to_json(case.id))
    return files


def case_from(files: Mapping[str, bytes], where: str) -> Case:
    """Reads `files_of`'s files.

    where: named in messages.

    Raises:
        BotError: a file is missing or not in shape; says which.
    """
    name = "case.json"
    try:
        head = json.loads(files[name])
        collected = _collected(head)
        name = "metrics.jsonl"
        now: dict[str, Reading] = {}
        history: dict[str, tuple[Reading, ...]] = {}
        trends: dict[str, Reading] = {}
        for value in _read_lines(files[name]):
            part, signal, reading = parts.reading_from_json(value)
            match part:
                case "now":
                    now[signal] = reading
                case "history":
                    history[signal] = (*history.get(signal, ()), reading)
                case _:
                    trends[signal] = reading
        name = "logs.jsonl"
        lines = [parts.line_from_json(value) for value in _read_lines(files[name])]
        name = "traces.json"
        spans = parts.spans_from_json(json.loads(files[name]))
        name = "changes.jsonl"
        changes = tuple(Change.from_json(value) for value in _read_lines(files[name]))
        name = "probes.json"
        probes = parts.probes_from_json(json.loads(files[name]))
        name = "truth.json"
        truth = truth_from(json.loads(files[name])) if name in files else None
        entry = head["nodes"]["services"][0]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise BotError(
            f"{where}/{name}: is not in the shape of a case: {type(error).__name__}: {error}; save it again",
            reason=Reason.MALFORMED,
        ) from error
    return Case(
        id=str(head["id"]),
        title=str(head["title"]),
        service=Service(
            name=str(entry["name"]),
            nodes=tuple(entry.get("nodes") or ()),
            depends_on=tuple(entry.get("depends_on") or ()),
            selectors=dict(entry.get("selectors") or {}),
        ),
        collected=replace(
            collected,
            now=now,
            history=history,
            trends=trends,
            service_lines=tuple(line for part, line in lines if part == "service"),
            node_lines=tuple(line for part, line in lines if part == "node"),
            old_lines=tuple(line for part, line in lines if part == "old"),
            spans=spans,
            changes=changes,
            probes=probes,
        ),
        alert=dict(head.get("alert") or {}),
        truth=truth,
    )


def _head(case: Case) -> Json:
    collected = case.collected
    request = collected.request
    service = case.service
    down = [name for name, state in collected.states.items() if state is SourceState.UNREACHABLE]
    return {
        "schema": SCHEMA,
        "id": case.id,
        "title": case.title,
        "service": request.service,
        "at": to_rfc3339(request.at),
        "window_s": request.window_seconds,
        "nodes": {
            "nodes": [{"name": name} for name in collected.nodes],
            "services": [
                {
                    "name": service.name,
                    "nodes": list(collected.nodes),
                    "depends_on": list(service.depends_on),
                    "selectors": dict(service.selectors),
                }
            ],
        },
        "alert": dict(case.alert),
        "sources_down": down,
        "labels": dict(request.labels),
        "symptoms": [item.to_json() for item in request.symptoms],
        "heavy": request.allow_heavy,
        "collected": {
            "window": collected.window.to_json(),
            "log_window": collected.log_window.to_json() if collected.log_window else None,
            "resolution_s": collected.resolution_seconds,
            "rate_s": collected.rate_seconds,
            "states": {name: state.value for name, state in collected.states.items()},
            "gaps": [gap.to_json() for gap in collected.gaps],
        },
    }


def _collected(head: Mapping[str, Any]) -> Collected:
    body = head["collected"]
    is_heavy = bool(head.get("heavy"))
    request = DiagnosisRequest(
        service=str(head["service"]),
        at=parse_rfc3339(head["at"]),
        window_seconds=float(head["window_s"]),
        symptoms=tuple(Symptom.from_json(item) for item in head.get("symptoms") or ()),
        labels=dict(head.get("labels") or {}),
        allow_heavy=is_heavy,
        approver="case" if is_heavy else None,
    )
    return Collected(
        request=request,
        nodes=tuple(str(item["name"]) for item in head["nodes"]["nodes"]),
        window=Window.from_json(body["window"]),
        resolution_seconds=float(body["resolution_s"]),
        rate_seconds=float(body["rate_s"]),
        log_window=Window.from_json(body["log_window"]) if body.get("log_window") else None,
        states={name: SourceState(value) for name, value in body["states"].items()},
        gaps=tuple(Gap.from_json(item) for item in body.get("gaps") or ()),
        declared=declared_signals(request),
    )


def truth_from(value: Mapping[str, Any]) -> Truth:
    """Reads the content of `truth.json`.

    Raises:
        KeyError, TypeError: not in shape.
    """
    return Truth(
        cause=str(value["cause"]),
        chain=tuple(str(item) for item in value["chain"]),
        node=value.get("node"),
        trigger=value.get("trigger"),
    )


def _pretty(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _lines(values: list[Json]) -> bytes:
    texts = [
        json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        for value in values
    ]
    return "".join(f"{text}\n" for text in texts).encode()


def _read_lines(content: bytes) -> list[Json]:
    # Only a line feed ends a line: other separators may stand inside a text.
    return [json.loads(line) for line in content.split(b"\n") if line.strip()]
