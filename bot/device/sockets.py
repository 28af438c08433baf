"""A service's TCP sockets by peer: states, retransmissions, round trip times, answers that are owed."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bot.device.files import list_names
from bot.device.network import network_namespace
from bot.device.proc import ProcRoot
from bot.errors import ProbeError

# Source: include/net/tcp_states.h.
STATES = {
    1: "ESTABLISHED",
    2: "SYN_SENT",
    3: "SYN_RECV",
    4: "FIN_WAIT1",
    5: "FIN_WAIT2",
    6: "TIME_WAIT",
    7: "CLOSE",
    8: "CLOSE_WAIT",
    9: "LAST_ACK",
    10: "LISTEN",
    11: "CLOSING",
}
_SOCKET = re.compile(r"socket:\[(\d+)\]")
# Source: include/uapi/linux/{sock_diag,inet_diag,netlink,tcp}.h.
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _DUMP_REQUEST = 4, 20, 0x301
_NLMSG_ERROR, _NLMSG_DONE, _INET_DIAG_INFO = 2, 3, 2
_ALL_STATES = 0xFFFFFFFF
"""Source: linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h."""
_MESSAGE_BYTES, _TIMEOUT_SECONDS = 72, 1.0


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """One socket. Times are seconds, None where only /proc could be read.

    `owed_seconds`: how long the peer has owed an answer, that is since we sent last without receiving after it.
    """

    inode: int
    state: str
    local_port: int
    peer: str
    retransmits: int
    send_queue_bytes: int
    round_trip_seconds: float | None = None
    total_retransmits: int | None = None
    owed_seconds: float | None = None


def service_sockets(proc: ProcRoot, pids: Iterable[int]) -> tuple[tuple[TcpSocket, ...], bool]:
    """Sockets that the processes hold, and whether the kernel told their round trip times.

    Raises:
        ProbeError: the socket table or the processes' descriptors may not be read.
    """
    members = list(pids)
    inodes = _inodes(proc, members)
    table: dict[int, TcpSocket] = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(ProbeError):
            for found in parse_sockets(proc.text(members[0], "net", name)):
                table[found.inode] = found
    if not table:
        # Tells why when neither table can be read; an empty one is an answer.
        proc.text(members[0], "net", "tcp")
    own = [item for inode, item in table.items() if inode in inodes]
    if str(proc.path) != "/proc" or network_namespace(proc, members[0]) != _own_namespace(proc):
        return tuple(own), False
    details = _details()
    return tuple(_with(item, details.get(item.inode)) for item in own), bool(details)


def parse_sockets(text: str) -> list[TcpSocket]:
    r"""Reads /proc/PID/net/tcp or tcp6.

    >>> row = "0: 0100007F:1F90 0200007F:C350 02 00000001:00000000 01:00000010 00000003 0 0 777 1 0"
    >>> [(item.peer, item.state, item.retransmits) for item in parse_sockets("head\n" + row)]
    [('127.0.0.2:50000', 'SYN_SENT', 3)]
    """
    found: list[TcpSocket] = []
    for line in text.splitlines()[1:]:
        parts = line.split()
        if len(parts) < 10:
            continue
        found.append(
            TcpSocket(
                inode=int(parts[9]),
                state=STATES.get(int(parts[3], 16), parts[3]),
                local_port=int(parts[1].rpartition(":")[2], 16),
                peer=_address(parts[2]),
                retransmits=int(parts[6], 16),
                send_queue_bytes=int(parts[4].partition(":")[0], 16),
            )
        )
    return found


def _inodes(proc: ProcRoot, pids: Iterable[int]) -> set[int]:
    inodes: set[int] = set()
    failure: ProbeError | None = None
    read = 0
    for pid in pids:
        try:
            names = list_names(proc.path / str(pid) / "fd")
        except ProbeError as error:
            failure = error
            continue
        read += 1
        for name in names:
            with contextlib.suppress(ProbeError):
                found = _SOCKET.fullmatch(proc.link(pid, "fd", name))
                if found:
                    inodes.add(int(found.group(1)))
    if not read and failure is not None:
        raise failure
    return inodes


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    # The kernel prints each 32-bit word in its own byte order.
    words = [int(host[index : index + 8], 16) for index in range(0, len(host), 8)]
    address = ipaddress.ip_address(b"".join(word.to_bytes(4, "little") for word in words))
    mapped = getattr(address, "ipv4_mapped", None)
    shown = mapped or address
    name = f"[{shown}]" if shown.version == 6 else str(shown)
    return f"{name}:{int(port, 16)}"


def _own_namespace(proc: ProcRoot) -> str | None:
    with contextlib.suppress(ProbeError):
        return proc.link("self", "ns", "net")
    return None


def _with(item: TcpSocket, info: bytes | None) -> TcpSocket:
    if info is None or len(info) < 104:
        return item
    sent_ms, _, received_ms = struct.unpack_from("=3I", info, 44)
    round_trip_us = struct.unpack_from("=I", info, 68)[0]
    total = struct.unpack_from("=I", info, 100)[0]
    # Ages in milliseconds: an answer is owed while the last sending is younger than the last receipt.
    # Before the first answer both ages can be equal, so the byte counters tell (the SYN counts as one).
    is_first = False
    if len(info) >= 136:
        acknowledged, received = struct.unpack_from("=2Q", info, 120)
        is_first = acknowledged > 1 and received == 0
    owed = sent_ms / 1000 if sent_ms < received_ms or is_first else 0.0
    return replace(
        item,
        round_trip_seconds=round_trip_us / 1e6,
        total_retransmits=total,
        owed_seconds=owed,
    )


def _details() -> Mapping[int, bytes]:
    """tcp_info by inode, asked of the kernel over netlink; empty where that is not allowed."""
    found: dict[int, bytes] = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError), _netlink() as link:
            request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 2, 0, _ALL_STATES)
            body = request + bytes(48)
            link.send(
                struct.pack("=IHHII", 16 + len(body), _SOCK_DIAG_BY_FAMILY, _DUMP_REQUEST, 1, 0)
                + body
            )
            while _take(link.recv(256 * 1024), found):
                pass
    return found


def _netlink() -> socket.socket:
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
    link.settimeout(_TIMEOUT_SECONDS)
    return link


def _take(block: bytes, found: dict[int, bytes]) -> bool:
    """Takes the messages of one block; False at the end of the dump."""
    offset = 0
    while offset + 16 <= len(block):
        length, kind = struct.unpack_from("=IH", block, offset)
        if kind in {_NLMSG_DONE, _NLMSG_ERROR} or length < 16:
            return False
        start, end = offset + 16, offset + length
        if end - start >= _MESSAGE_BYTES:
            inode = struct.unpack_from("=I", block, start + 68)[0]
            info = _attribute(block, start + _MESSAGE_BYTES, end)
            if info is not None:
                found[inode] = info
        offset += (length + 3) & ~3
    return offset > 0


def _attribute(block: bytes, start: int, end: int) -> bytes | None:
    while start + 4 <= end:
        length, kind = struct.unpack_from("=HH", block, start)
        if length < 4:
            return None
        if kind == _INET_DIAG_INFO:
            return block[start + 4 : start + length]
        start += (length + 3) & ~3
    return None
