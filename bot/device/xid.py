"""Xid and SXid lines of NVIDIA's driver in the kernel log, in all their spellings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bot.device.kernel_log import KernelLine

# The driver's lines begin with these words: a program that quotes one has words of its own before it.
# pid may be a number, '<unknown>' or absent: a pattern that needs digits misses exactly the fatal lines.
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): "
    r"(?P<code>\d+)(?:, pid='?(?P<pid>\d+|<unknown>)'?)?(?:, name=(?P<name>[^,]+))?"
)
_SXID = re.compile(
    r"nvidia-nvswitch\d*: SXid \((?:PCI:)?(?P<pci>[0-9a-fA-F:]+)(?:\.\d)?\): (?P<code>\d+)"
)
_ADDRESS = re.compile(r"(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?")
_OFF_BUS = re.compile(r"fallen off the bus", re.IGNORECASE)
_DRIVER = "NVRM: "
# Two messages of the driver run over several lines, the address on the first:
#   The NVIDIA GPU 0000:61:00.0 / (PCI ID: 10de:2330) installed in this system has / fallen off the bus and …
_NAMES_A_GPU = re.compile(r"NVRM: The NVIDIA GPU ")
_FOLLOWING_LINES = 4
_FELL_OFF = 79
_ONE_EVENT_SECONDS = 1.0
"""The driver prints one fault as several lines within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEvent:
    """One fault of one device. `code` is None where the GPU fell off the bus without an Xid.

    `pci` is lower case, without the function; `is_switch` marks an NVSwitch's own code (SXid), which is another list.
    `clock_seconds` tells events apart and is no date.
    """

    code: int | None
    pci: str | None
    pid: int | None
    process: str | None
    uptime_seconds: float | None
    text: str
    is_switch: bool = False
    lines: int = 1
    clock_seconds: float | None = None


def normal_address(address: str) -> str:
    """A PCI address as events carry it: lower case, a domain of four digits where that holds it, no function.

    >>> normal_address("00000000:3B:00.0")
    '0000:3b:00'
    """
    domain, _, rest = address.lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest.partition('.')[0]}"


def parse_xid(line: KernelLine) -> XidEvent | None:
    """The event that a line tells by itself, if any.

    >>> event = parse_xid(KernelLine("NVRM: Xid (PCI:0000:5D:00): 79, pid='<unknown>', name=<unknown>, GPU", 9.0))
    >>> (event.code, event.pci, event.pid)
    (79, '0000:5d:00', None)
    """
    found = _XID.match(line.text)
    if found:
        pid, name = found.group("pid"), found.group("name")
        return XidEvent(
            code=int(found.group("code")),
            pci=normal_address(found.group("pci")),
            pid=int(pid) if pid and pid.isdigit() else None,
            # Without "pid=" before it, what looks like a name is part of the message.
            process=name.strip() if pid and name and name != "<unknown>" else None,
            uptime_seconds=line.uptime_seconds,
            clock_seconds=line.clock_seconds,
            text=line.text[:300],
        )
    found = _SXID.match(line.text)
    if found:
        return XidEvent(
            code=int(found.group("code")),
            pci=normal_address(found.group("pci")),
            pid=None,
            process=None,
            uptime_seconds=line.uptime_seconds,
            clock_seconds=line.clock_seconds,
            text=line.text[:300],
            is_switch=True,
        )
    if line.text.startswith(_DRIVER) and _OFF_BUS.search(line.text):
        return _off_bus(line, _ADDRESS.search(line.text))
    return None


def xid_events(lines: Iterable[KernelLine]) -> tuple[XidEvent, ...]:
    """Events in order; lines of one code on one device within a second are one event with several details."""
    events: list[XidEvent] = []
    newest: dict[tuple[str | None, bool], int] = {}
    named: KernelLine | None = None
    since = 0
    for line in lines:
        event = parse_xid(line)
        since += 1
        if _NAMES_A_GPU.match(line.text) and event is None:
            named, since = line, 0
        if event is None:
            continue
        if event.code is None and event.pci is None and named and since <= _FOLLOWING_LINES:
            event = _off_bus(line, _ADDRESS.search(named.text))
            named = None
        place = newest.get((event.pci, event.is_switch))
        if place is None and event.code is None and event.pci is None and events:
            place = len(events) - 1
        if place is not None and _is_same(events[place], event, place == len(events) - 1):
            events[place] = _joined(events[place], event)
        else:
            place = len(events)
            events.append(event)
        newest[events[place].pci, event.is_switch] = place
    return tuple(events)


def _off_bus(line: KernelLine, address: re.Match[str] | None) -> XidEvent:
    return XidEvent(
        code=None,
        pci=normal_address(address.group("pci")) if address else None,
        pid=None,
        process=None,
        uptime_seconds=line.uptime_seconds,
        clock_seconds=line.clock_seconds,
        text=line.text[:300],
    )


def _joined(last: XidEvent, event: XidEvent) -> XidEvent:
    return replace(
        last,
        code=event.code if last.code is None else last.code,
        pci=last.pci or event.pci,
        pid=last.pid or event.pid,
        process=last.process or event.process,
        lines=last.lines + 1,
    )


def _is_same(last: XidEvent, event: XidEvent, is_next: bool) -> bool:
    codes = {last.code, event.code}
    if last.is_switch != event.is_switch or (last.pci and event.pci and last.pci != event.pci):
        return False
    if None in codes and codes <= {_FELL_OFF, None}:
        # A 79 and the lines that repeat its loss, however much later, are one: a GPU falls off once.
        return True
    if len(codes) > 1:
        return False
    for before, after in (
        (last.uptime_seconds, event.uptime_seconds),
        (last.clock_seconds, event.clock_seconds),
    ):
        if before is not None and after is not None:
            return abs(after - before) <= _ONE_EVENT_SECONDS
    return is_next
