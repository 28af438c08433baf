"""Does the service export its spans, and does the collector take them."""

from __future__ import annotations

from bot.argument import SERVICE, Arguments
from bot.device.exposition import Exposition, scrape
from bot.device.service import find_processes
from bot.device.sockets import service_sockets
from bot.device.tracing import (
    ExporterCounts,
    TraceSettings,
    collector_peers,
    exporter_counts,
    trace_settings,
)
from bot.domain.finding import Finding, FindingSeverity
from bot.errors import ProbeError
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info

ACCEPTED_RATIO = 0.95
"""Our judgement: exporters retry, so that more than one span in twenty refused or dropped is a loss of coverage."""
WINDOW_SECONDS = 1.0
"""Our judgement: long enough for a batch processor under load; where none came in it, the totals since start tell."""
LOOKS = 5
"""Our judgement: five looks in a second meet a connection that is opened for a batch now and then."""
SCRAPE_TIMEOUT_SECONDS = 1.5
"""Our judgement: two scrapes and the window must fit the deadline."""


@describe(
    summary="Tracing settings of a service, its exporter's counters and its connection to a collector",
    cost=Cost.CHEAP,
    findings=("trace.not_configured", "trace.exporter_failing", "trace.ok"),
    arguments=(SERVICE,),
    needs=("/proc/PID/environ", "exporter counters on [services.<name>] metrics"),
)
def trace_health(context: ProbeContext, arguments: Arguments) -> Reading:
    """Environments hold secrets: only names of a fixed list leave the node, and addresses as host and port."""
    target = context.service(arguments.text("service"))
    pids = [task.pid for task in find_processes(context.proc, target)]
    settings = trace_settings(context.proc, pids)
    not_checked: list[str] = []
    before = _counts(target.metrics_url, [])
    peers: tuple[str, ...] = ()
    for look in range(LOOKS):
        # Some exporters open a connection for each batch, so that one look is not enough.
        if look:
            context.wait(WINDOW_SECONDS / (LOOKS - 1))
        try:
            peers = collector_peers(service_sockets(context.proc, pids)[0], settings.endpoint)
        except ProbeError as failure:
            not_checked.append(f"connections: {failure}")
            break
        if peers and before is None:
            break
    after = _counts(target.metrics_url, not_checked)
    counts = _recent(before, after)
    findings = _findings(settings, counts, peers)
    if not findings:
        if counts is not None and counts.accepted_ratio is not None:
            not_checked = []
            findings.append(info("trace.ok", "exporter configured, the collector takes its spans"))
        elif peers:
            not_checked = []
            findings.append(info("trace.ok", "exporter configured and connected"))
        elif settings.is_configured:
            not_checked.append(
                "export: the exporter has no counters on the metrics page and no connection now"
            )
        else:
            not_checked.append(
                "tracing: no sign of it in flags, environment, counters and connections; "
                "the program itself may set it up, which the traces' own store tells"
            )
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "settings": settings.shown,
            "collector": settings.endpoint,
            "switched_off_by": settings.switched_off_by,
            "connected_peers": peers,
            "spans_accepted": None if counts is None else counts.sent,
            "spans_refused": None if counts is None else counts.failed,
            "spans_dropped": None if counts is None else counts.dropped,
        },
    )


def _counts(url: str | None, gaps: list[str]) -> ExporterCounts | None:
    if url is None:
        return None
    try:
        page: Exposition = scrape(url, SCRAPE_TIMEOUT_SECONDS)
    except ProbeError as failure:
        gaps.append(f"exporter counters: {failure}")
        return None
    return exporter_counts(page)


def _recent(before: ExporterCounts | None, after: ExporterCounts | None) -> ExporterCounts | None:
    if before is None or after is None:
        return after
    change = after.since(before)
    return change if change.spans > 0 else after


def _findings(
    settings: TraceSettings, counts: ExporterCounts | None, peers: tuple[str, ...]
) -> list[Finding]:
    if settings.switched_off_by is not None:
        return [_not_configured(f"tracing is switched off by {settings.switched_off_by}")]
    # A program of its own may set tracing up in its code; a server of this list cannot.
    if settings.engine and not settings.is_configured and counts is None and not peers:
        return [
            _not_configured(
                f"{settings.engine} runs without a tracing flag or OTEL variable, "
                "without exporter counters and without a connection to a collector"
            )
        ]
    ratio = None if counts is None else counts.accepted_ratio
    if counts is None or ratio is None or ratio >= ACCEPTED_RATIO:
        return []
    where = f" to {settings.endpoint}" if settings.endpoint else ""
    text = (
        f"span exporter{where}: {counts.sent:.0f} of {counts.spans:.0f} spans accepted, "
        f"{counts.failed:.0f} refused, {counts.dropped:.0f} dropped"
    )
    return [
        critical(
            "trace.exporter_failing", text, value=ratio, unit="ratio", threshold=ACCEPTED_RATIO
        )
    ]


def _not_configured(why: str) -> Finding:
    return Finding(id="trace.not_configured", severity=FindingSeverity.WARNING, summary=why)
