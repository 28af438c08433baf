"""Memory of a service's processes by kind, over several looks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.device.proc import ProcRoot, TaskStat, parse_sizes
from bot.errors import ProbeError, Reason


@dataclass(frozen=True, slots=True)
class MemoryMoment:
    """Bytes over all processes of a service; `peak_bytes` is the highest resident size each ever had, summed."""

    anonymous_bytes: int
    file_bytes: int
    shared_bytes: int
    swapped_bytes: int
    resident_bytes: int
    peak_bytes: int
    descriptors: int | None
    threads: int


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """The service's /dev/shm."""

    size_bytes: int
    free_bytes: int

    @property
    def used_ratio(self) -> float:
        """0..1."""
        return 1 - self.free_bytes / max(1, self.size_bytes)


def memory_moment(proc: ProcRoot, tasks: Sequence[TaskStat]) -> MemoryMoment:
    """Sums the processes; one that has ended since it was listed is left out.

    Raises:
        ProbeError: `unauthorised` where none may be read, `not_found` where none is left.
    """
    totals = dict.fromkeys(("Anonymous", "Rss", "Shmem", "Swap", "VmHWM"), 0)
    descriptors: int | None = 0
    threads = read = 0
    failure: ProbeError | None = None
    for task in tasks:
        try:
            rollup = parse_sizes(proc.text(task.pid, "smaps_rollup"))
            status = parse_sizes(proc.text(task.pid, "status"))
        except ProbeError as error:
            failure = error
            continue
        read += 1
        threads += status.get("Threads", 0)
        totals["Anonymous"] += rollup.get("Anonymous", 0)
        totals["Rss"] += rollup.get("Rss", 0)
        totals["Swap"] += rollup.get("Swap", 0)
        totals["Shmem"] += status.get("RssShmem", 0)
        totals["VmHWM"] += status.get("VmHWM", 0)
        try:
            names = os.listdir(proc.path / str(task.pid) / "fd")  # noqa: PTH208 - only their number counts
            descriptors = None if descriptors is None else descriptors + len(names)
        except OSError:
            descriptors = None
    if not read:
        raise failure or ProbeError("the service's processes are gone", reason=Reason.NOT_FOUND)
    return MemoryMoment(
        anonymous_bytes=totals["Anonymous"],
        file_bytes=max(0, totals["Rss"] - totals["Anonymous"] - totals["Shmem"]),
        shared_bytes=totals["Shmem"],
        swapped_bytes=totals["Swap"],
        resident_bytes=totals["Rss"],
        peak_bytes=totals["VmHWM"],
        descriptors=descriptors,
        threads=threads,
    )


def memory_series(
    proc: ProcRoot,
    tasks: Sequence[TaskStat],
    window_seconds: float,
    looks: int,
    wait: Callable[[float], None],
    monotonic: Callable[[], float],
) -> tuple[tuple[float, MemoryMoment], ...]:
    """`looks` moments, evenly over the window, each with the seconds since the first."""
    started = monotonic()
    moments = [(0.0, memory_moment(proc, tasks))]
    for _ in range(looks - 1):
        wait(window_seconds / (looks - 1))
        moments.append((monotonic() - started, memory_moment(proc, tasks)))
    return tuple(moments)


def shared_memory(proc: ProcRoot, pid: int) -> SharedMemory | None:
    """The /dev/shm that the process sees; None where it may not be reached."""
    roots = [proc.path / str(pid) / "root"]
    with contextlib.suppress(ProbeError):
        # The same mount namespace as ours: then our own path is the service's.
        if proc.link(pid, "ns", "mnt") == proc.link("self", "ns", "mnt"):
            roots.append(Path("/"))
    for root in roots:
        with contextlib.suppress(OSError):
            facts = os.statvfs(root / "dev" / "shm")
            if facts.f_blocks:
                return SharedMemory(
                    facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize
                )
    return None
