"""What monitoring could not show, as files that would make it show: scrape jobs, log shipping, spans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.checklist.diffs import diff_of, text_of
from bot.checklist.writing import quoted
from bot.domain.checklist import ProposalKind
from bot.domain.evidence import EvidenceSource, Gap, SourceState
from bot.domain.incident import Incident
from bot.domain.text import Localized
from bot.locales import say

HIDDEN_BURST = "metric.hidden_burst"
COARSE = "coarse_metrics"
MOST_MISSING = 5
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SAFE = re.compile(r"[^a-z0-9]+")
# Where a metric of this name usually comes from: the exporter's own port, as its documentation gives it.
_EXPORTERS = {
    "DCGM_": ("dcgm-exporter", 9400),
    "node_": ("node-exporter", 9100),
    "container_": ("cadvisor", 8080),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One proposed file of monitoring."""

    kind: ProposalKind
    name: str
    diff: str
    reason: Localized


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is known of the place.

    nodes: names to hosts; labels: of the service, as metrics and logs carry them. missing: names of metrics that the
    confirmed cause asks for and nobody scrapes.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def coverage_fixes(incident: Incident, site: Site) -> tuple[Fix, ...]:
    """Missing series, a scrape interval that hid the trouble, a silent log source, spans that nobody exports."""
    service = incident.service
    if service is None:
        return ()
    found = [
        _missing_series(incident, service, site),
        _scrape_interval(incident, service, site),
        _logs(incident, service, site),
        _spans(incident, service),
    ]
    return tuple(item for item in found if item is not None)


def _missing_series(incident: Incident, service: str, site: Site) -> Fix | None:
    names = _missing(incident.gaps, site)
    if not names:
        return None
    known = next((kind for prefix, kind in _EXPORTERS.items() if names[0].startswith(prefix)), None)
    job, port = known or (service, 8000)
    lines = [
        *_head(incident, f"Scrapes {job}: {', '.join(names)} was missing."),
        "scrape_configs:",
        f"  - job_name: {quoted(f'{job}-{incident.id.lower()}')}",
        "    scrape_interval: 15s",
        "    static_configs:",
        *_targets(site, port),
        "        labels:",
        f"          service: {quoted(service)}",
    ]
    reason = say(
        "checklist.metric_missing", id=incident.id, name=Localized.verbatim(", ".join(names))
    )
    return _fix(ProposalKind.METRIC, incident, "missing-series", lines, reason)


def _missing(gaps: Sequence[Gap], site: Site) -> list[str]:
    """Names of metrics that answered nothing, those of one exporter."""
    named = [
        gap.query
        for gap in gaps
        if gap.source is EvidenceSource.METRICS
        and gap.reason in ("empty", "not_found")
        and _METRIC.fullmatch(gap.query)
    ]
    # An exporter can be missing anywhere; another engine's metrics are missing by right.
    exported = [name for name in site.missing if _exporter(name)]
    names = sorted({*named, *exported})
    first = next((prefix for name in names if (prefix := _exporter(name))), None)
    return [name for name in names if first is None or name.startswith(first)][:MOST_MISSING]


def _exporter(name: str) -> str | None:
    return next((prefix for prefix in _EXPORTERS if name.startswith(prefix)), None)


def _scrape_interval(incident: Incident, service: str, site: Site) -> Fix | None:
    hidden = any(item.finding == HIDDEN_BURST and item.is_abnormal for item in incident.evidence)
    root = incident.root_cause
    if not hidden and not (root is not None and COARSE in root.chain):
        return None
    lines = [
        *_head(incident, f"Looks at {service} every five seconds."),
        "scrape_configs:",
        f"  - job_name: {quoted(f'{service}-fine')}",
        "    scrape_interval: 5s",
        "    scrape_timeout: 4s",
        "    static_configs:",
        *_targets(site, 8000),
        "        labels:",
        f"          service: {quoted(service)}",
    ]
    return _fix(
        ProposalKind.METRIC,
        incident,
        "scrape-interval",
        lines,
        say("checklist.metric_interval", id=incident.id),
    )


def _logs(incident: Incident, service: str, site: Site) -> Fix | None:
    why = _why(incident, "logs", EvidenceSource.LOGS)
    if why is None:
        return None
    labels = {
        "job": service,
        **({} if "service" in site.labels else {"service": service}),
        **site.labels,
    }
    lines = [
        *_head(incident, f"Ships the log files of {service} (Promtail)."),
        "scrape_configs:",
        f"  - job_name: {quoted(service)}",
        "    static_configs:",
        '      - targets: ["localhost"]',
        "        labels:",
        *(f"          {name}: {quoted(value)}" for name, value in sorted(labels.items())),
        f"          __path__: {quoted(f'/var/log/{_slug(service)}/*.log')}",
    ]
    reason = say("checklist.log_missing", id=incident.id, service=service, why=why)
    return _fix(ProposalKind.LOG, incident, "logs", lines, reason)


def _spans(incident: Incident, service: str) -> Fix | None:
    why = _why(incident, "traces", EvidenceSource.TRACES)
    if why is None:
        return None
    lines = [
        *_head(incident, f"Environment of {service}: its OpenTelemetry SDK exports spans."),
        f"OTEL_SERVICE_NAME: {quoted(service)}",
        'OTEL_TRACES_EXPORTER: "otlp"',
        'OTEL_EXPORTER_OTLP_ENDPOINT: "http://otel-collector:4317"',
        'OTEL_TRACES_SAMPLER: "parentbased_traceidratio"',
        'OTEL_TRACES_SAMPLER_ARG: "0.1"',
    ]
    reason = say("checklist.trace_missing", id=incident.id, service=service, why=why)
    return _fix(ProposalKind.TRACE, incident, "spans", lines, reason)


def _why(incident: Incident, name: str, source: EvidenceSource) -> str | None:
    """Why a source had nothing to say; None where it spoke, or was never asked."""
    state = incident.sources.get(name)
    if state is None or state is SourceState.OK:
        return None
    gap = next((item for item in incident.gaps if item.source is source), None)
    return gap.detail[:120] if gap else state.value


def _head(incident: Incident, what: str) -> list[str]:
    # A comment is one line, whatever a name holds.
    said = " ".join(what.split())[:200]
    return [
        f"# Proposed from {incident.id}. {said}",
        "# Check hosts and ports before it is rolled out.",
    ]


def _targets(site: Site, port: int) -> list[str]:
    hosts = [host for _, host in sorted(site.nodes.items())] or ["localhost"]
    listed = ", ".join(quoted(f"{host}:{port}") for host in hosts)
    return [f"      - targets: [{listed}]"]


def _slug(text: str) -> str:
    return _SAFE.sub("-", text.lower()).strip("-")[:60] or "service"


def _fix(
    kind: ProposalKind, incident: Incident, name: str, lines: Sequence[str], reason: Localized
) -> Fix:
    stem = f"monitoring/{incident.id.lower()}-{name}"
    diff = diff_of(f"{stem}.yml", "", text_of(lines))
    return Fix(kind=kind, name=stem, diff=diff, reason=reason)
