"""Xid and SXid lines of NVIDIA's driver in the kernel log, in all their spellings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.device.kernel_log import KernelLine

# pid may be a number, '<unknown>' or absent: a pattern that needs digits misses exactly the fatal lines.
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): "
    r"(?P<code>\d+)(?:, pid='?(?P<pid>\d+|<unknown>)'?)?(?:, name=(?P<name>[^,]+))?"
)
_SXID = re.compile(
    r"nvidia-nvswitch\d*: SXid \((?:PCI:)?(?P<pci>[0-9a-fA-F:]+)(?:\.\d)?\): (?P<code>\d+)"
)
_OFF_BUS = re.compile(
    r"NVRM: .*(?:GPU|The NVIDIA GPU) (?:at )?(?:PCI:)?\(?(?:PCI:)?"
    r"(?P<pci>[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})?.*fallen off the bus",
    re.IGNORECASE,
)
_ONE_EVENT_SECONDS = 1.0
"""The driver prints one fault as several lines within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEvent:
    """One fault of one device. `code` is None where the GPU fell off the bus without an Xid.

    `pci` is lower case, without the function; `is_switch` marks an NVSwitch's own code (SXid), which is another list.
    """

    code: int | None
    pci: str | None
    pid: int | None
    process: str | None
    uptime_seconds: float | None
    text: str
    is_switch: bool = False
    lines: int = 1


def parse_xid(line: KernelLine) -> XidEvent | None:
    """The event that a line tells, if any.

    >>> event = parse_xid(KernelLine("NVRM: Xid (PCI:0000:5D:00): 79, pid='<unknown>', name=<unknown>, GPU", 9.0))
    >>> (event.code, event.pci, event.pid)
    (79, '0000:5d:00', None)
    """
    found = _XID.search(line.text)
    if found:
        pid, name = found.group("pid"), found.group("name")
        return XidEvent(
            code=int(found.group("code")),
            pci=found.group("pci").lower(),
            pid=int(pid) if pid and pid.isdigit() else None,
            # Without "pid=" before it, what looks like a name is part of the message.
            process=name if pid and name and name != "<unknown>" else None,
            uptime_seconds=line.uptime_seconds,
            text=line.text[:300],
        )
    found = _SXID.search(line.text)
    if found:
        return XidEvent(
            code=int(found.group("code")),
            pci=found.group("pci").lower(),
            pid=None,
            process=None,
            uptime_seconds=line.uptime_seconds,
            text=line.text[:300],
            is_switch=True,
        )
    found = _OFF_BUS.search(line.text)
    if found:
        pci = found.group("pci")
        return XidEvent(
            code=None,
            pci=pci.lower() if pci else None,
            pid=None,
            process=None,
            uptime_seconds=line.uptime_seconds,
            text=line.text[:300],
        )
    return None


def xid_events(lines: Iterable[KernelLine]) -> tuple[XidEvent, ...]:
    """Events in order; lines of one code on one device within a second are one event with several details."""
    events: list[XidEvent] = []
    for line in lines:
        event = parse_xid(line)
        if event is None:
            continue
        last = events[-1] if events else None
        if last is not None and _is_same(last, event):
            events[-1] = XidEvent(
                code=last.code,
                pci=last.pci or event.pci,
                pid=last.pid or event.pid,
                process=last.process or event.process,
                uptime_seconds=last.uptime_seconds,
                text=last.text,
                is_switch=last.is_switch,
                lines=last.lines + 1,
            )
        else:
            events.append(event)
    return tuple(events)


def _is_same(last: XidEvent, event: XidEvent) -> bool:
    # A 79 and its "fallen off the bus" line are one loss.
    codes = {last.code, event.code}
    if len(codes) > 1 and codes != {79, None}:
        return False
    if last.is_switch != event.is_switch or (last.pci and event.pci and last.pci != event.pci):
        return False
    if last.uptime_seconds is None or event.uptime_seconds is None:
        return True
    return event.uptime_seconds - last.uptime_seconds <= _ONE_EVENT_SECONDS
