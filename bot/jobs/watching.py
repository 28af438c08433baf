"""What the monitoring should have said: alert rules from this incident's own series, and what it could not show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import structlog

from bot.cause import signals_of
from bot.checklist.alert_rules import MOST_SERIES, AlertRule, Watched, alert_rule
from bot.checklist.coverage import Site, coverage_fixes
from bot.checklist.promql import selectors, shortest_range
from bot.diagnosis.plan import metrics_in, tests_of
from bot.domain.checklist import ChecklistChange, ProposalKind
from bot.domain.evidence import EvidenceSource, Series
from bot.domain.incident import Incident
from bot.domain.instant import Window
from bot.domain.text import Localized
from bot.errors import EvidenceError
from bot.jobs.services import Services
from bot.locales import say
from bot.source import MetricsSource

log = structlog.get_logger(__name__)

QUERY_SECONDS = 8.0
BEFORE = timedelta(minutes=5)
AFTER = timedelta(minutes=10)
LATE = timedelta(minutes=5)
LONGEST_STEP_SECONDS = 15
MOST_CAUSE_RULES = 2

Proposed = tuple[ChecklistChange, Localized]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """An expression that is worth an alert. reason: the key of the sentence, and what fills it."""

    name: str
    expression: str
    summary: Localized
    reason: str
    minutes: int = 0


async def watch_proposals(services: Services, incident: Incident) -> tuple[Proposed, ...]:
    """Changes of the monitoring that this incident justifies, numbered by whoever records them."""
    found: list[Proposed] = []
    metrics = services.ports.metrics
    causes = 0
    for target in _targets(services, incident):
        if metrics is None:
            break
        if target.reason == "alert_cause" and causes >= MOST_CAUSE_RULES:
            continue
        rule = await _rule(metrics, incident, target)
        if rule is None:
            continue
        causes += target.reason == "alert_cause"
        reason = say(
            f"checklist.{target.reason}",
            id=incident.id,
            summary=target.summary,
            minutes=target.minutes,
            bound=f"{rule.bound:g}",
        )
        name = f"monitoring/{incident.id.lower()}-{rule.name.lower()}"
        found.append(_proposed(ProposalKind.ALERT, name, rule.diff, reason, incident))
    site = _site(services, incident, await _unscraped(services, incident))
    found += [
        _proposed(item.kind, item.name, item.diff, item.reason, incident)
        for item in coverage_fixes(incident, site)
    ]
    return tuple(found)


def _proposed(
    kind: ProposalKind, name: str, diff: str, reason: Localized, incident: Incident
) -> Proposed:
    change = ChecklistChange(
        n=0, checklist=name, diff=diff, reason=reason.in_locale(incident.locale), kind=kind
    )
    return change, reason


def _targets(services: Services, incident: Incident) -> list[_Target]:
    """What led to the symptom first, then the symptom where no alert told of it in time."""
    catalogue = services.catalogue
    root = incident.root_cause
    chain = {root.cause, *root.chain} if root else set()
    weights = {
        reason.ref: reason.weight
        for item in incident.hypotheses
        if item.cause in chain
        for reason in item.supports
    }
    shows_symptom = {item.metric for item in incident.symptoms if item.metric}
    deciding = [
        item
        for item in incident.evidence
        if item.source is EvidenceSource.METRICS
        and item.is_abnormal
        and item.id in weights
        and item.query not in shows_symptom
        and getattr(catalogue.signals.get(item.plugin), "symptom", None) is None
    ]
    deciding.sort(key=lambda item: (-weights[item.id], item.id))
    targets = [
        _Target(
            name=f"{_camel(root.cause if root else '')}{_camel(item.plugin)}",
            expression=item.query,
            summary=item.summary,
            reason="alert_cause",
        )
        for item in deciding
    ]
    first = min((alert.starts_at for alert in incident.alerts.values()), default=None)
    for symptom in incident.symptoms:
        if not symptom.metric:
            continue
        name = f"{_camel(incident.service or '')}{_camel(symptom.id)}Symptom"
        if first is None:
            reason, minutes = "alert_none", 0
        elif symptom.since is not None and first - symptom.since >= LATE:
            reason, minutes = "alert_late", round((first - symptom.since).total_seconds() / 60)
        else:
            continue
        targets.append(
            _Target(
                name=name,
                expression=symptom.metric,
                summary=symptom.summary,
                reason=reason,
                minutes=minutes,
            )
        )
    return targets


async def _rule(metrics: MetricsSource, incident: Incident, target: _Target) -> AlertRule | None:
    read = selectors(target.expression)
    if read is None:
        return None
    shortest = shortest_range(target.expression)
    step = LONGEST_STEP_SECONDS
    if shortest is not None:
        # A rate needs several samples in its range, in the test as in the server.
        step = max(1, min(step, int(shortest / 4)))
    onset = _onset(incident)
    window = Window(_whole(onset - BEFORE), _whole(onset + AFTER))
    raw: list[Series] = []
    try:
        answer = await metrics.range(
            target.expression, window, step_seconds=step, timeout_seconds=QUERY_SECONDS
        )
        for selector in read:
            # Counted first: a selector over a whole fleet would be a hundred megabytes.
            if await _count(metrics, selector, window.end) + len(raw) > MOST_SERIES:
                return None
            found = await metrics.range(
                selector, window, step_seconds=step, timeout_seconds=QUERY_SECONDS
            )
            raw += found.items
    except EvidenceError as error:
        log.info("alert_rule.no_data", incident=incident.id, reason=error.reason.value)
        return None
    watched = Watched(
        name=target.name,
        expression=target.expression,
        summary=target.summary.in_locale(incident.locale),
        readings=answer.items,
        raw=tuple(raw),
        start=window.start,
        onset=onset,
        step_seconds=step,
    )
    return alert_rule(watched, incident_id=incident.id, service=incident.service)


async def _count(metrics: MetricsSource, selector: str, at: datetime) -> int:
    answer = await metrics.instant(f"count({selector})", at, timeout_seconds=QUERY_SECONDS)
    values = [sample.value for series in answer.items for sample in series.samples]
    return int(values[0]) if values and values[0] is not None else 0


def _onset(incident: Incident) -> datetime:
    begins = [item.since for item in incident.symptoms if item.since is not None]
    begins += [alert.starts_at for alert in incident.alerts.values()]
    return min(begins, default=incident.opened_at)


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _camel(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", text))[:60]


async def _unscraped(services: Services, incident: Incident) -> tuple[str, ...]:
    """Metrics that the confirmed cause asks for under every name it knows, and the server has none of."""
    metrics, root = services.ports.metrics, incident.root_cause
    if metrics is None or root is None:
        return ()
    onset = _onset(incident)
    try:
        have = await metrics.names(
            Window(onset - BEFORE, onset + AFTER), timeout_seconds=QUERY_SECONDS
        )
    except EvidenceError as error:
        log.info("coverage.no_names", incident=incident.id, reason=error.reason.value)
        return ()
    catalogue = services.catalogue
    causes = [
        catalogue.causes[name] for name in (root.cause, *root.chain) if name in catalogue.causes
    ]
    asked = {name for test in tests_of(causes) for name in signals_of(test)}
    missing: list[str] = []
    for name in sorted(asked & set(catalogue.signals)):
        wanted = [metrics_in(query) for query in catalogue.signals[name].queries]
        if wanted and not any(names and names <= have for names in wanted):
            missing += sorted(wanted[0] - have)
    return tuple(dict.fromkeys(missing))


def _site(services: Services, incident: Incident, missing: tuple[str, ...]) -> Site:
    known: Sequence[tuple[str, str | None]] = [
        (node.name, node.url) for node in services.inventory.nodes_of(incident.service or "")
    ]
    return Site(
        nodes={name: (urlsplit(url).hostname or name) if url else name for name, url in known},
        labels=services.ports.service(incident.service or "").matchers,
        missing=missing,
    )
