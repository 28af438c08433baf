"""Does a service's own memory grow, and is its shared memory full."""

from __future__ import annotations

import itertools
from dataclasses import asdict

from bot.argument import SERVICE, Arguments, window_argument
from bot.device.memory import MemoryMoment, SharedMemory, memory_series, shared_memory
from bot.device.service import find_processes
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

GROWTH_GIB_PER_HOUR = 0.5
"""Our judgement: half a GiB an hour ends a day with 12 GiB gone."""
GROWTH_BAD_GIB_PER_HOUR = 5.0
"""Our judgement: at this speed the next hours decide."""
GROWTH_BYTES = 4 * 2**20
"""Our judgement: below 4 MiB in the window, allocator noise and a leak look alike."""
SHM_RATIO = 0.95
"""Our judgement, as for a cgroup's limit."""
LOOKS = 5
"""Our judgement: growth must hold over four steps in a row to be growth."""


@describe(
    summary="Anonymous, file and shared memory of a service's processes, their growth, and /dev/shm",
    cost=Cost.CHEAP,
    findings=("mem.anon_growth", "mem.shm_full", "mem.process_ok"),
    arguments=(SERVICE, window_argument(3.0)),
    needs=("/proc/PID/smaps_rollup",),
    deadline_seconds=8.0,
)
def process_memory(context: ProbeContext, arguments: Arguments) -> Reading:
    """Five looks over the window. A slow leak does not show in seconds: then nothing is said about it."""
    target = context.service(arguments.text("service"))
    tasks = find_processes(context.proc, target)
    series = memory_series(
        context.proc, tasks, arguments.number("window_s"), LOOKS, context.wait, context.monotonic
    )
    seconds, last = series[-1]
    growth = (last.anonymous_bytes - series[0][1].anonymous_bytes) / max(1e-6, seconds)
    uptime = context.proc.uptime_seconds() - tasks[0].started_seconds
    shm = shared_memory(context.proc, tasks[0].pid)
    findings = _grows([moment for _, moment in series], growth, seconds, uptime) + _shm(shm)
    not_checked: list[str] = []
    if shm is None:
        not_checked.append("shared memory (/dev/shm) of the service cannot be reached")
    bound = _bound_gib_per_hour(last, uptime)
    if not findings and bound is None:
        not_checked.append(
            f"slow growth: {seconds:.0f} s are too short to see it; the metrics' slope over hours tells"
        )
    if not findings and not not_checked:
        findings.append(
            info("mem.process_ok", f"anonymous memory flat ({bound}), shared memory free")
        )
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": seconds,
            "processes": len(tasks),
            "uptime_s": uptime,
            **asdict(last),
            "anonymous_growth_gib_per_hour": growth * 3600 / 2**30,
            "shm_used_ratio": None if shm is None else shm.used_ratio,
            "shm_size_bytes": None if shm is None else shm.size_bytes,
        },
    )


def _grows(
    moments: list[MemoryMoment], growth: float, seconds: float, uptime: float
) -> list[Finding]:
    sizes = [moment.anonymous_bytes for moment in moments]
    is_steady = all(after >= before for before, after in itertools.pairwise(sizes))
    rate = growth * 3600 / 2**30
    if not is_steady or sizes[-1] - sizes[0] < GROWTH_BYTES or rate <= GROWTH_GIB_PER_HOUR:
        return []
    text = (
        f"anonymous memory +{rate:.1f} GiB/h over {seconds:.1f} s "
        f"(+{(sizes[-1] - sizes[0]) / 2**20:.0f} MiB), process up for {uptime:.0f} s"
    )
    make = critical if rate > GROWTH_BAD_GIB_PER_HOUR else warning
    return [make("mem.anon_growth", text, value=rate, unit="GiB/h", threshold=GROWTH_GIB_PER_HOUR)]


def _bound_gib_per_hour(moment: MemoryMoment, uptime: float) -> str | None:
    """Why growth above the line is excluded, from the whole life of the process; None where it is not.

    Memory that was ever held counts at its peak, so peak over uptime is the steepest mean slope there can have been.
    """
    mean = moment.peak_bytes / 2**30 / max(1.0, uptime) * 3600
    if mean < GROWTH_GIB_PER_HOUR:
        return f"at most {mean:.2f} GiB/h over its life"
    if uptime > 3600 and moment.resident_bytes < 0.95 * moment.peak_bytes:
        return "below its peak"
    return None


def _shm(shm: SharedMemory | None) -> list[Finding]:
    if shm is None or shm.used_ratio <= SHM_RATIO:
        return []
    text = f"shared memory (/dev/shm) {shm.used_ratio:.0%} of {shm.size_bytes / 2**20:.0f} MiB used"
    return [critical("mem.shm_full", text, value=shm.used_ratio, unit="ratio", threshold=SHM_RATIO)]
