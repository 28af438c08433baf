"""Which peers a service cannot reach, or waits for."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bot.argument import SERVICE, Arguments
from bot.device.service import find_processes
from bot.device.sockets import TcpSocket
from bot.device.sockets import service_sockets as read_sockets
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

CONNECTING_SOCKETS = 3
"""Our judgement: one or two half-open connections pass by; three to one peer do not."""
ROUND_TRIP_SECONDS = 0.05
"""Our judgement: a peer in the same region answers within a few milliseconds."""
OWED_SECONDS = 0.5
"""Our judgement: an answer owed for half a second is more than an inference service plans for."""
OWED_SOCKETS = 4
"""Our judgement: fewer are single slow requests."""


@describe(
    summary="A service's TCP sockets by peer: half-open, retransmitting, slow, waiting for an answer",
    cost=Cost.CHEAP,
    findings=("net.peer_unreachable", "net.peer_slow", "net.peers_ok"),
    arguments=(SERVICE,),
    needs=("/proc/PID/fd", "/proc/PID/net/tcp", "sock_diag for round trip times"),
)
def service_sockets(context: ProbeContext, arguments: Arguments) -> Reading:
    """One look; round trip times and ages come from the kernel's own smoothing."""
    target = context.service(arguments.text("service"))
    pids = [task.pid for task in find_processes(context.proc, target)]
    sockets, has_times = read_sockets(context.proc, pids)
    listening = {item.local_port for item in sockets if item.state == "LISTEN"}
    peers: dict[str, list[TcpSocket]] = {}
    for item in sockets:
        if item.state != "LISTEN":
            # Clients come from a new port each time, so those are one peer by their address alone.
            is_client = item.local_port in listening
            name = item.peer.rpartition(":")[0] + ":*" if is_client else item.peer
            peers.setdefault(name, []).append(item)
    findings = [finding for name, group in peers.items() for finding in _findings(name, group)]
    not_checked = () if has_times or not peers else ("round trip times: the kernel does not tell",)
    if not findings and not not_checked:
        findings.append(info("net.peers_ok", "all peers established, round trip times usual"))
    ranked = sorted(peers.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return Reading(
        findings=tuple(findings),
        not_checked=not_checked,
        data={
            "sockets": len(sockets),
            "listening_ports": sorted(listening),
            "peers": {name: _row(group) for name, group in ranked[:32]},
        },
    )


def _findings(name: str, group: Sequence[TcpSocket]) -> list[Finding]:
    findings: list[Finding] = []
    connecting = sum(1 for item in group if item.state == "SYN_SENT")
    if connecting >= CONNECTING_SOCKETS:
        text = f"{connecting} sockets in SYN_SENT, all to peer {name}"
        findings.append(
            critical(
                "net.peer_unreachable",
                text,
                value=connecting,
                unit="sockets",
                threshold=CONNECTING_SOCKETS,
            )
        )
    times = [item.round_trip_seconds for item in group if item.round_trip_seconds]
    if times and statistics.median(times) > ROUND_TRIP_SECONDS:
        middle = statistics.median(times)
        text = f"{len(times)} sockets to {name} have a round trip time of {middle * 1000:.0f} ms"
        findings.append(
            warning("net.peer_slow", text, value=middle, unit="s", threshold=ROUND_TRIP_SECONDS)
        )
    owed = [item.owed_seconds for item in group if (item.owed_seconds or 0) > OWED_SECONDS]
    is_outgoing = not name.endswith(":*")
    if is_outgoing and len(owed) >= OWED_SOCKETS and len(owed) > len(group) / 2:
        longest = max(value for value in owed if value is not None)
        text = f"{len(owed)} of {len(group)} sockets to {name} wait for an answer, up to {longest:.1f} s"
        findings.append(
            critical("net.peer_slow", text, value=longest, unit="s", threshold=OWED_SECONDS)
        )
    return findings


def _row(group: Sequence[TcpSocket]) -> dict[str, object]:
    states: dict[str, int] = {}
    for item in group:
        states[item.state] = states.get(item.state, 0) + 1
    times = [item.round_trip_seconds for item in group if item.round_trip_seconds]
    return {
        "sockets": len(group),
        "states": states,
        "retransmits": sum(item.retransmits for item in group),
        "median_round_trip_seconds": statistics.median(times) if times else None,
        "owed_sockets": sum(1 for item in group if (item.owed_seconds or 0) > OWED_SECONDS),
    }
