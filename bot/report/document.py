"""The JSON export: the contract's shape, `rca-bot/postmortem/1`. The keys never depend on the language, the texts do."""

from __future__ import annotations

from functools import cache
from typing import Any

from bot.domain.hypothesis import NOT_ESTABLISHED, Contribution, Hypothesis
from bot.domain.incident import Experiment
from bot.domain.instant import to_rfc3339
from bot.domain.postmortem import SCHEMA, Postmortem, TimelineLine
from bot.domain.text import Locale, Localized
from bot.locales import templates_root


@cache
def schema_text() -> str:
    """The published JSON Schema of this shape."""
    path = templates_root() / "report" / "postmortem.schema.json"
    return path.read_text(encoding="utf-8")


def document(report: Postmortem, locale: Locale) -> dict[str, Any]:
    """The report as JSON values, texts in one language. Times are RFC 3339 UTC, durations seconds, ratios 0..1."""
    return {
        "schema": SCHEMA,
        "incident": _incident(report),
        "symptoms": [
            {
                "id": item.id,
                "text": _say(item.summary, locale),
                "metric": item.metric,
                "scope": item.scope,
                "since": to_rfc3339(item.since) if item.since else None,
            }
            for item in report.symptoms
        ],
        "timeline": [_line(line, locale) for line in report.timeline],
        "evidence": [
            {
                "id": item.id,
                "source": item.evidence.source.value,
                "query": item.evidence.query,
                "window": item.evidence.window.to_json(),
                "samples": item.evidence.samples,
                "digest": item.evidence.digest,
                "summary": _say(item.evidence.summary, locale),
            }
            for item in report.evidence
        ],
        "changes": [
            {
                "id": item.change.id,
                "kind": item.change.kind.value,
                "service": item.change.service,
                "summary": item.change.summary,
                "at": to_rfc3339(item.change.at),
                "suspect": item.is_suspect,
            }
            for item in report.changes
        ],
        "hypotheses": [_hypothesis(item, locale) for item in report.hypotheses],
        "experiments": [_experiment(item, locale) for item in report.experiments],
        "root_cause": _root_cause(report, locale),
        "blind_spots": [
            {"what": _say(item.what, locale), "why": _say(item.why, locale)}
            for item in report.blind_spots
        ],
        "fix": _fix(report, locale),
        "checklist_changes": [
            {
                "checklist": item.checklist,
                "diff": item.diff,
                "reason": _say(report.checklist_reasons.get(item.n), locale) or item.reason,
                "status": item.status.value,
            }
            for item in report.checklist_changes
        ],
        "monitoring_changes": [
            {
                "kind": item.kind.value,
                "diff": item.diff,
                "reason": _say(report.checklist_reasons.get(item.n), locale) or item.reason,
                "status": item.status.value,
            }
            for item in report.monitoring_changes
        ],
        "layers": [
            {"layer": item.layer.value, "state": item.state.value, "why": _say(item.why, locale)}
            for item in report.layers
        ],
        "mitigations": [
            {
                "text": _say(item.text, locale),
                "by": item.by,
                "at": to_rfc3339(item.at),
                "captured": list(item.captured),
            }
            for item in report.mitigations
        ],
        "action_items": [
            {
                "text": _say(item.text, locale),
                "owner": item.owner,
                "due": item.due,
                "status": item.status.value,
            }
            for item in report.action_items
        ],
        "durations": {name.value: seconds for name, seconds in report.durations.items()},
    }


def _say(text: Localized | None, locale: Locale) -> str | None:
    return text.in_locale(locale) if text else None


def _incident(report: Postmortem) -> dict[str, Any]:
    header = report.header
    return {
        "id": header.id,
        "title": header.title,
        "severity": header.severity.value,
        "status": header.status.value,
        "services": list(header.services),
        "channel": header.channel,
        "thread_ts": header.thread_ts,
        "opened_at": to_rfc3339(header.opened_at),
        "resolved_at": to_rfc3339(header.resolved_at) if header.resolved_at else None,
        "state": header.state.value,
    }


def _line(line: TimelineLine, locale: Locale) -> dict[str, Any]:
    return {
        "seq": line.seq,
        "at": to_rfc3339(line.at),
        "kind": line.kind.value,
        "author": line.author,
        "text": _say(line.text, locale),
        "source": line.source,
        "permalink": line.permalink,
        "corrects": line.corrects,
        "history": [
            {"text": _say(item.text, locale), "replaced_at": to_rfc3339(item.replaced_at)}
            for item in line.history
        ],
        "withheld": line.is_withheld,
    }


def _hypothesis(item: Hypothesis, locale: Locale) -> dict[str, Any]:
    return {
        "cause": item.cause,
        "probability": round(item.probability, 4),
        "status": item.status.value,
        "for": [_contribution(entry, locale) for entry in item.supports],
        "against": [_contribution(entry, locale) for entry in item.against],
        "missing": [
            {"what": _say(entry.what, locale), "why": _say(entry.why, locale)}
            for entry in item.missing
        ],
        "reason": item.reason,
    }


def _contribution(entry: Contribution, locale: Locale) -> dict[str, Any]:
    return {"source": entry.source.value, "summary": _say(entry.summary, locale), "ref": entry.ref}


def _experiment(item: Experiment, locale: Locale) -> dict[str, Any]:
    return {
        "probe": item.probe,
        "node": item.node,
        "predicted": _say(item.predicted, locale),
        "result": _say(item.result, locale),
        "verdict": item.verdict.value if item.verdict else None,
        "by": item.by,
        "at": to_rfc3339(item.at),
    }


def _root_cause(report: Postmortem, locale: Locale) -> dict[str, Any]:
    root = report.root_cause
    if root is None:
        return {
            "cause": NOT_ESTABLISHED,
            "trigger": None,
            "deep_cause": None,
            "prevention": None,
            "chain": [],
            "evidence": [],
        }
    trigger = root.trigger
    return {
        "cause": root.cause,
        "trigger": (
            {"change": trigger.change, "summary": _say(trigger.summary, locale)}
            if trigger
            else None
        ),
        "deep_cause": _say(root.deep_cause, locale),
        "prevention": _say(root.prevention, locale),
        "chain": list(root.chain),
        "evidence": list(root.evidence),
    }


def _fix(report: Postmortem, locale: Locale) -> dict[str, Any]:
    fix = report.fix
    if fix is None:
        return {"text": None, "by": None, "at": None, "verified": None, "evidence": []}
    return {
        "text": _say(fix.text, locale),
        "by": fix.by,
        "at": to_rfc3339(fix.at),
        "verified": fix.verified,
        "evidence": list(fix.evidence),
    }
