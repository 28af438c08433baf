"""Judges the driver's lines in the kernel log: faults by code and device, and GPUs that are gone without a code."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bot.device.xid import XidEvent
from bot.device.xid_catalog import needs_hands
from bot.domain.finding import Finding, FindingSeverity

RECENT_SECONDS = 3600.0
"""Our judgement: what happened within the hour may be what the incident is about; older lines are told as past."""


def xid_findings(events: Iterable[XidEvent], uptime_seconds: float, label: str) -> list[Finding]:
    """One finding for each code of each device, with how often and when."""
    findings: list[Finding] = []
    for (code, pci, is_switch), group in _grouped(events).items():
        if code is None:
            continue
        last = group[-1]
        name = f"NVSwitch SXid {code}" if is_switch else f"Xid {code}"
        who = next(
            (
                f", pid {item.pid} {item.process or ''}".rstrip()
                for item in reversed(group)
                if item.pid
            ),
            "",
        )
        is_grave = not is_switch and needs_hands(code)
        findings.append(
            Finding(
                id="gpu.xid",
                severity=FindingSeverity.CRITICAL if is_grave else FindingSeverity.WARNING,
                summary=f"{label}{name} on {pci or 'unknown device'}, {_times(len(group))}"
                f"{_when(last, uptime_seconds)}{who}",
                value=code,
                unit="code",
            )
        )
    return findings


def losses(
    events: Iterable[XidEvent], lost: Collection[int], answering: Collection[str]
) -> list[str]:
    """GPUs that are gone and of which no Xid tells.

    `lost` are the indexes that the driver calls lost, `answering` the PCI addresses of the cards that answer. A lost
    card tells no address, so an Xid on an address that does not answer may be its own.
    """
    known = list(events)
    texts = [
        f"{event.pci or 'a GPU'} fell off the bus without an Xid"
        for event in known
        if event.code is None
    ]
    may_tell = {event.pci for event in known if not event.is_switch and event.pci not in answering}
    if len(lost) > len(may_tell):
        names = ", ".join(str(index) for index in sorted(lost))
        texts.append(
            f"GPU {names} lost without an Xid: the driver calls it lost, the kernel log tells nothing"
        )
    return texts


def repeats(events: Iterable[XidEvent]) -> list[dict[str, object]]:
    """How often each code came on each device."""
    return [
        {"code": code, "pci": pci, "is_switch": is_switch, "count": len(group)}
        for (code, pci, is_switch), group in _grouped(events).items()
    ]


def _grouped(
    events: Iterable[XidEvent],
) -> dict[tuple[int | None, str | None, bool], list[XidEvent]]:
    groups: dict[tuple[int | None, str | None, bool], list[XidEvent]] = {}
    for event in events:
        groups.setdefault((event.code, event.pci, event.is_switch), []).append(event)
    return groups


def _times(count: int) -> str:
    return "1 time" if count == 1 else f"{count} times"


def _when(last: XidEvent, uptime_seconds: float) -> str:
    """Readers take "ago" for a matter of the past, so that it stands beside old lines only."""
    if last.uptime_seconds is None:
        return ""
    age = max(0.0, uptime_seconds - last.uptime_seconds)
    if age <= RECENT_SECONDS:
        return f", the newest {age:.0f} s old"
    return f", the newest {age / 3600:.1f} h ago"
