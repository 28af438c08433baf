"""Is this node's clock right: a skewed clock makes timelines and traces lie."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import Arguments
from bot.device.clock import (
    ChronyTracking,
    KernelClock,
    chrony_tracking,
    clock_daemons,
    clock_source,
    kernel_clock,
)
from bot.device.field import Unread, from_failure
from bot.errors import ProbeError
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

SKEW_SECONDS = 0.05
"""Source: node-mixin, NodeClockSkewDetected: an offset above 50 ms."""
SKEW_BAD_SECONDS = 1.0
"""Our judgement: a second off, events of two nodes no longer stand in their true order in a timeline."""


@describe(
    summary="Offset of the clock, who keeps it and on which clock source it runs",
    cost=Cost.CHEAP,
    findings=("time.skew", "time.ok"),
    needs=("adjtimex", "/sys clocksource", "chronyc where chrony keeps the clock"),
)
def time_sync(context: ProbeContext, _arguments: Arguments) -> Reading:
    """An unsynchronised clock is of unknown skew, which is neither clean nor a finding."""
    source = clock_source(context.sys_root)
    daemons: tuple[str, ...] | Unread
    try:
        daemons = clock_daemons(context.proc)
    except ProbeError as failure:
        daemons = from_failure(failure)
    kernel = kernel_clock()
    chrony = chrony_tracking()
    skew = _skew(kernel, chrony)
    not_checked = _gaps(kernel, chrony, daemons)
    findings = []
    if abs(skew) > SKEW_SECONDS:
        make = critical if abs(skew) > SKEW_BAD_SECONDS else warning
        text = f"clock is {abs(skew) * 1000:.0f} ms {'behind' if skew > 0 else 'ahead'}"
        findings.append(make("time.skew", text, value=abs(skew), unit="s", threshold=SKEW_SECONDS))
    elif not not_checked:
        findings.append(info("time.ok", f"clock within {max(1.0, abs(skew) * 1000):.0f} ms"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "clock_source": source,
            "daemons": daemons,
            "kernel": asdict(kernel),
            "chrony": chrony if isinstance(chrony, Unread) else asdict(chrony),
        },
    )


def _skew(kernel: KernelClock, chrony: ChronyTracking | Unread) -> float:
    offsets = [kernel.offset_seconds]
    if isinstance(chrony, ChronyTracking):
        offsets.append(chrony.offset_seconds)
    return max(offsets, key=abs)


def _gaps(
    kernel: KernelClock, chrony: ChronyTracking | Unread, daemons: tuple[str, ...] | Unread
) -> list[str]:
    gaps: list[str] = []
    keeps = isinstance(chrony, ChronyTracking) and chrony.is_synchronised
    if not kernel.is_synchronised and not keeps:
        seen = "no daemon seen" if isinstance(daemons, Unread) or not daemons else daemons[0]
        gaps.append(
            "skew: the kernel says that nothing has synchronised this clock "
            f"(it may be off by {kernel.max_error_seconds:.0f} s; {seen})"
        )
    is_chrony = isinstance(daemons, tuple) and "chrony" in daemons
    if is_chrony and isinstance(chrony, Unread):
        gaps.append(f"skew: chrony keeps the clock and cannot be asked ({chrony.detail})")
    return gaps
