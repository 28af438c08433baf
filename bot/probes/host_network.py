"""Does the network lose packets: retransmissions, drops, a full connection table."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import Arguments, window_argument
from bot.device.field import Unread, from_failure, is_tolerable
from bot.device.network import (
    HOST,
    ConnectionTracking,
    NetworkChange,
    connection_tracking,
    network_change,
    network_moments,
    network_namespace,
)
from bot.domain.finding import Finding
from bot.errors import ProbeError
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

RETRANSMIT_RATIO = 0.01
"""Our judgement: below 1 % is usual, 1 to 3 % suspicious."""
RETRANSMIT_BAD_RATIO = 0.03
"""Source: IBM's rule for a TCP retransmit ratio, 3 % and more."""
SEGMENTS_PER_SECOND = 100
"""Source: PCP's rule asks for 100 packets a second, so that an idle host does not alarm."""
DROPS_PER_SECOND = 1.0
"""Our judgement: a steady loss; single drops are ordinary."""
ERROR_RATIO = 0.01
"""Source: node-mixin, more than 1 % of an interface's packets with errors."""
TRACKING_RATIO = 0.75
"""Source: node-mixin, connection tracking table above 75 %."""


@describe(
    summary="TCP retransmissions, interface drops and the connection table, of the host and of the services' namespaces",
    cost=Cost.CHEAP,
    findings=("net.retransmit", "net.drops", "net.conntrack_full", "net.ok"),
    arguments=(window_argument(2.0),),
    needs=("/proc/net/snmp", "/proc/net/dev"),
)
def host_network(context: ProbeContext, arguments: Arguments) -> Reading:
    """Two samples of every namespace, `window_s` apart."""
    places = _namespaces(context)

    sampled = context.sample_twice(
        lambda: network_moments(context.proc, places), arguments.number("window_s")
    )
    changes = {
        name: network_change(sampled.before[name], now, sampled.seconds)
        for name, now in sampled.after.items()
        if name in sampled.before
    }
    tracking = _tracking(context)
    findings = [finding for name, change in changes.items() for finding in _findings(name, change)]
    if isinstance(tracking, ConnectionTracking) and tracking.ratio > TRACKING_RATIO:
        findings.append(
            warning(
                "net.conntrack_full",
                f"connection tracking {tracking.entries} of {tracking.limit} entries",
                value=tracking.ratio,
                unit="ratio",
                threshold=TRACKING_RATIO,
            )
        )
    not_checked = [
        f"network of {name}: its process ended meanwhile" for name in places if name not in changes
    ]
    if isinstance(tracking, Unread) and not is_tolerable(tracking):
        not_checked.append(f"connection table: {tracking.detail}")
    if not findings and not not_checked:
        findings.append(info("net.ok", "retransmissions and drops at rest"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": sampled.seconds,
            "namespaces": {name: asdict(change) for name, change in changes.items()},
            "conntrack_ratio": tracking if isinstance(tracking, Unread) else tracking.ratio,
        },
    )


def _namespaces(context: ProbeContext) -> dict[str, int | None]:
    """The first process's namespace as `host`, and one entry for each service that lives in another."""
    host = network_namespace(context.proc, 1)
    places: dict[str, int | None] = {HOST: 1 if host is not None else None}
    seen = {host}
    for name, pids in context.members().items():
        own = network_namespace(context.proc, pids[0])
        if own is not None and own not in seen:
            seen.add(own)
            places[name] = pids[0]
    return places


def _tracking(context: ProbeContext) -> ConnectionTracking | Unread:
    try:
        return connection_tracking(context.proc)
    except ProbeError as failure:
        return from_failure(failure)


def _findings(name: str, change: NetworkChange) -> list[Finding]:
    findings: list[Finding] = []
    where = "" if name == HOST else f"{name}: "
    ratio = change.retransmit_ratio
    if change.segments_per_second >= SEGMENTS_PER_SECOND and ratio >= RETRANSMIT_RATIO:
        text = f"{where}{ratio:.1%} of segments retransmitted at {change.segments_per_second:,.0f} seg/s"
        is_bad = ratio >= RETRANSMIT_BAD_RATIO
        make = critical if is_bad else warning
        limit = RETRANSMIT_BAD_RATIO if is_bad else RETRANSMIT_RATIO
        findings.append(make("net.retransmit", text, value=ratio, unit="ratio", threshold=limit))
    findings.extend(
        warning(
            "net.drops",
            f"{where}{interface} drops {rate:.0f}/s",
            value=rate,
            unit="1/s",
            threshold=DROPS_PER_SECOND,
        )
        for interface, rate in change.drops_per_second.items()
        if rate >= DROPS_PER_SECOND
    )
    findings.extend(
        warning(
            "net.drops",
            f"{where}{interface} has errors in {ratio:.1%} of its packets, {rate:.0f}/s",
            value=ratio,
            unit="ratio",
            threshold=ERROR_RATIO,
        )
        for interface, ratio in change.error_ratio.items()
        if ratio > ERROR_RATIO and (rate := change.errors_per_second[interface]) >= DROPS_PER_SECOND
    )
    return findings
