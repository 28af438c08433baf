"""TCP, interface and connection-tracking counters of one network namespace."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from bot.device.files import read_whole
from bot.device.proc import ProcRoot
from bot.errors import ProbeError

HOST = "host"
"""Name of the first process's own namespace among those of the services."""


@dataclass(frozen=True, slots=True)
class Interface:
    """Counters of one interface since it came up."""

    received_packets: int
    received_drops: int
    received_errors: int
    sent_packets: int
    sent_drops: int
    sent_errors: int


@dataclass(frozen=True, slots=True)
class NetworkMoment:
    """`softnet_drops` is None where the kernel does not tell."""

    segments_sent: int
    segments_retransmitted: int
    tcp_timeouts: int | None
    syn_retransmitted: int | None
    interfaces: Mapping[str, Interface]
    softnet_drops: int | None


@dataclass(frozen=True, slots=True)
class NetworkChange:
    """What moved in the window, by interface in both directions; `error_ratio` is of all packets."""

    segments_per_second: float
    retransmit_ratio: float
    retransmitted: int
    tcp_timeouts: int | None
    syn_retransmitted: int | None
    drops_per_second: Mapping[str, float]
    errors_per_second: Mapping[str, float]
    error_ratio: Mapping[str, float]
    softnet_drops: int | None


@dataclass(frozen=True, slots=True)
class ConnectionTracking:
    """Entries of the connection-tracking table."""

    entries: int
    limit: int

    @property
    def ratio(self) -> float:
        """0..1."""
        return self.entries / max(1, self.limit)


def network_moments(proc: ProcRoot, places: Mapping[str, int | None]) -> dict[str, NetworkMoment]:
    """Every namespace by itself, by the process that lives in it: one that has ended takes only its own with it.

    Raises:
        ProbeError: the host's own counters cannot be read.
    """
    found: dict[str, NetworkMoment] = {}
    for name, pid in places.items():
        try:
            found[name] = network_moment(proc, pid)
        except ProbeError:
            if name == HOST:
                raise
    return found


def network_moment(proc: ProcRoot, pid: int | None) -> NetworkMoment:
    """Reads the counters of the namespace of `pid`, or of the reader's own.

    Raises:
        ProbeError: /proc/…/net/snmp cannot be read.
    """
    base: tuple[str | int, ...] = ("net",) if pid is None else (pid, "net")
    tcp = parse_table(proc.text(*base, "snmp")).get("Tcp", {})
    if not {"OutSegs", "RetransSegs"} <= tcp.keys():
        raise ProbeError("/proc/net/snmp: tells no TCP segments")
    extended: Mapping[str, int] = {}
    with contextlib.suppress(ProbeError, KeyError):
        extended = parse_table(proc.text(*base, "netstat"))["TcpExt"]
    softnet = None
    with contextlib.suppress(ProbeError, IndexError, ValueError):
        rows = proc.text(*base, "softnet_stat").splitlines()
        softnet = sum(int(row.split()[1], 16) for row in rows)
    return NetworkMoment(
        segments_sent=tcp["OutSegs"],
        segments_retransmitted=tcp["RetransSegs"],
        tcp_timeouts=extended.get("TCPTimeouts"),
        syn_retransmitted=extended.get("TCPSynRetrans"),
        interfaces=parse_interfaces(proc.text(*base, "dev")),
        softnet_drops=softnet,
    )


def network_change(before: NetworkMoment, after: NetworkMoment, seconds: float) -> NetworkChange:
    """Deltas over `seconds`; an interface that appeared in between is left out."""
    sent = after.segments_sent - before.segments_sent
    again = after.segments_retransmitted - before.segments_retransmitted
    both = {
        name: (before.interfaces[name], now)
        for name, now in after.interfaces.items()
        if name in before.interfaces
    }
    return NetworkChange(
        segments_per_second=sent / seconds,
        retransmit_ratio=again / sent if sent > 0 else 0.0,
        retransmitted=again,
        tcp_timeouts=_grown(before.tcp_timeouts, after.tcp_timeouts),
        syn_retransmitted=_grown(before.syn_retransmitted, after.syn_retransmitted),
        drops_per_second={
            name: (now.received_drops - then.received_drops + now.sent_drops - then.sent_drops)
            / seconds
            for name, (then, now) in both.items()
        },
        errors_per_second={name: _errors(*pair) / seconds for name, pair in both.items()},
        error_ratio={
            name: _errors(then, now) / max(1, _packets(then, now) + _errors(then, now))
            for name, (then, now) in both.items()
        },
        softnet_drops=_grown(before.softnet_drops, after.softnet_drops),
    )


def connection_tracking(proc: ProcRoot) -> ConnectionTracking:
    """How full the table is.

    Raises:
        ProbeError: `unsupported` where the module is not loaded.
    """
    folder = proc.path / "sys" / "net" / "netfilter"
    return ConnectionTracking(
        entries=read_whole(folder / "nf_conntrack_count"),
        limit=read_whole(folder / "nf_conntrack_max"),
    )


def parse_table(text: str) -> Mapping[str, Mapping[str, int]]:
    r"""Reads the paired lines of snmp and netstat.

    >>> parse_table("Tcp: OutSegs RetransSegs\nTcp: 100 3\n")["Tcp"]["RetransSegs"]
    3
    """
    found: dict[str, dict[str, int]] = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        kind, _, head = names.partition(":")
        numbers = values.partition(":")[2].split()
        found[kind] = {
            name: int(number) for name, number in zip(head.split(), numbers, strict=False)
        }
    return found


def parse_interfaces(text: str) -> Mapping[str, Interface]:
    r"""Reads /proc/net/dev; the loopback is left out.

    >>> head = "a\nb\n"
    >>> parse_interfaces(head + "eth0: 1 20 0 3 0 0 0 0 5 60 0 7 0 0 0 0\n")["eth0"].received_drops
    3
    """
    found: dict[str, Interface] = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        number = [int(part) for part in rest.split()]
        if name.strip() != "lo" and len(number) >= 12:
            found[name.strip()] = Interface(
                received_packets=number[1],
                received_errors=number[2],
                received_drops=number[3],
                sent_packets=number[9],
                sent_errors=number[10],
                sent_drops=number[11],
            )
    return found


def network_namespace(proc: ProcRoot, pid: int) -> str | None:
    """Identity of a process's namespace, None where it may not be read."""
    with contextlib.suppress(ProbeError):
        return proc.link(pid, "ns", "net")
    return None


def _errors(then: Interface, now: Interface) -> int:
    return now.received_errors - then.received_errors + now.sent_errors - then.sent_errors


def _packets(then: Interface, now: Interface) -> int:
    return now.received_packets - then.received_packets + now.sent_packets - then.sent_packets


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
