"""What the kernel itself complained about: out of memory, hung tasks, failing disks."""

from __future__ import annotations

import re

from bot.argument import Argument, ArgumentKind, Arguments
from bot.device.kernel_log import KernelLine, read_kernel_log
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

# Source: messages of mm/oom_kill.c, kernel/hung_task.c, block/blk-core.c, fs/buffer.c, fs/ext4, fs/xfs, drivers/nvme.
_KINDS = {
    "kernel.oom": re.compile(
        r"Out of memory: Kill|Memory cgroup out of memory|oom-kill:|invoked oom-killer"
    ),
    "kernel.hung_task": re.compile(r"blocked for more than \d+ seconds"),
    "kernel.io_error": re.compile(
        r"I/O error,? |Buffer I/O error|EXT4-fs error|XFS .*(metadata )?I/O error"
        r"|nvme.*(timeout|controller is down)|BTRFS error|Remounting filesystem read-only"
    ),
}
_SHOWN = 5

_SINCE = Argument(
    name="since_s",
    kind=ArgumentKind.NUMBER,
    summary="how far back, in seconds",
    default=3600,
    low=1,
    high=30 * 86400,
)


@describe(
    summary="Out-of-memory kills, hung tasks and I/O errors in the kernel's ring buffer",
    cost=Cost.CHEAP,
    findings=("kernel.oom", "kernel.hung_task", "kernel.io_error", "kernel.clean"),
    arguments=(_SINCE,),
    needs=("/dev/kmsg", "SYSLOG capability"),
)
def kernel_log(context: ProbeContext, arguments: Arguments) -> Reading:
    """Reads the ring buffer once; it may reach back less far than asked, which is then said."""
    lines = read_kernel_log(context.kernel_log)
    uptime, since = context.proc.uptime_seconds(), arguments.number("since_s")
    recent = [
        line
        for line in lines
        if line.uptime_seconds is None or line.uptime_seconds >= uptime - since
    ]
    findings: list[Finding] = []
    excerpts: dict[str, object] = {}
    for finding_id, pattern in _KINDS.items():
        hits = [line for line in recent if pattern.search(line.text)]
        if hits:
            findings.append(_finding(finding_id, hits, uptime))
            excerpts[finding_id] = [line.text[:300] for line in hits[-_SHOWN:]]
    oldest = next((line.uptime_seconds for line in lines if line.uptime_seconds is not None), None)
    reaches = uptime - oldest if oldest is not None else None
    not_checked: tuple[str, ...] = ()
    # A full ring has forgotten its oldest lines; one that still has the boot has forgotten nothing.
    if oldest is not None and oldest > 1 and reaches is not None and reaches < since:
        not_checked = (f"the ring buffer reaches back {reaches:.0f} s only",)
    if not lines:
        not_checked = ("the kernel log is empty",)
    if not findings and not not_checked:
        findings.append(info("kernel.clean", "nothing notable"))
    return Reading(
        findings=tuple(findings),
        not_checked=not_checked,
        data={
            "since_s": since,
            "lines": len(lines),
            "lines_in_window": len(recent),
            "reaches_back_s": reaches,
            "excerpts": excerpts,
        },
    )


def _finding(finding_id: str, hits: list[KernelLine], uptime: float) -> Finding:
    last = hits[-1]
    when = "" if last.uptime_seconds is None else f", last {uptime - last.uptime_seconds:.0f} s ago"
    make = critical if finding_id == "kernel.oom" else warning
    text = f"{len(hits)} lines{when}: {last.text[:160]}"
    return make(finding_id, text, value=len(hits), unit="lines", threshold=None)
