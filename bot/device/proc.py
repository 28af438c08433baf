"""Reads /proc: CPU time, pressure, memory, disks, processes and threads.

Parsing and reading are separate functions, so that a literal line is enough to test the first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.device.files import list_names, read_text, wrap
from bot.errors import ProbeError, Reason

CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
SECTOR_BYTES = 512
"""Unit of /proc/diskstats. Source: Linux Documentation/admin-guide/iostats.rst."""


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Seconds since boot over all CPUs. Source: proc(5), /proc/stat."""

    user: float
    system: float
    idle: float
    iowait: float
    steal: float
    cpus: int

    @property
    def total(self) -> float:
        """All accounted seconds."""
        return self.user + self.system + self.idle + self.iowait + self.steal


@dataclass(frozen=True, slots=True)
class Pressure:
    """One line pair of a pressure file; averages are ratios 0..1, totals are seconds since boot."""

    some_avg10: float
    some_avg60: float
    some_total_seconds: float
    full_avg10: float
    full_avg60: float
    full_total_seconds: float


@dataclass(frozen=True, slots=True)
class DiskCounters:
    """Since boot. Times are seconds summed over requests, except `busy_seconds`, which is wall time."""

    reads: int
    read_bytes: int
    read_seconds: float
    writes: int
    write_bytes: int
    write_seconds: float
    in_flight: int
    busy_seconds: float
    weighted_seconds: float


@dataclass(frozen=True, slots=True)
class TaskStat:
    """One process or thread. `started_seconds` counts from boot."""

    pid: int
    comm: str
    state: str
    parent: int
    cpu_seconds: float
    threads: int
    started_seconds: float
    delay_block_io_seconds: float


@dataclass(frozen=True, slots=True)
class ProcRoot:
    """A /proc tree; the path is configurable for containers and for recorded trees."""

    path: Path

    def text(self, *parts: str | int) -> str:
        """Text of a file under the root; a vanished process is `not_found`.

        Raises:
            ProbeError: see `read_text`.
        """
        target = self.path.joinpath(*(str(part) for part in parts))
        try:
            return read_text(target)
        except ProbeError as failure:
            is_of_process = bool(parts) and str(parts[0]).isdigit()
            is_missing = failure.reason is Reason.UNSUPPORTED
            if is_of_process and is_missing and not (self.path / str(parts[0])).exists():
                raise ProbeError(
                    f"process {parts[0]} is gone", reason=Reason.NOT_FOUND
                ) from failure
            raise

    def link(self, *parts: str | int) -> str:
        """Target of a symbolic link under the root.

        Raises:
            ProbeError: see `read_text`.
        """
        target = self.path.joinpath(*(str(part) for part in parts))
        try:
            return os.readlink(target)  # noqa: PTH115 - "socket:[1]" is no path
        except OSError as error:
            raise wrap(error, target) from error

    def pids(self) -> list[int]:
        """Process ids that exist now, ascending."""
        return sorted(int(name) for name in list_names(self.path) if name.isdigit())

    def thread_ids(self, pid: int) -> list[int]:
        """Thread ids of a process, ascending; empty once it is gone."""
        try:
            return sorted(
                int(name) for name in list_names(self.path / str(pid) / "task") if name.isdigit()
            )
        except ProbeError as failure:
            if failure.reason in {Reason.UNSUPPORTED, Reason.NOT_FOUND}:
                return []
            raise

    def cpu_times(self) -> CpuTimes:
        """CPU time of the machine."""
        return parse_cpu_times(self.text("stat"))

    def boot_time(self) -> float:
        """Unix seconds of the boot.

        Raises:
            ProbeError: unreadable.
        """
        for line in self.text("stat").splitlines():
            if line.startswith("btime "):
                return float(line.split()[1])
        raise ProbeError("/proc/stat: has no btime line")

    def uptime_seconds(self) -> float:
        """Seconds since boot."""
        return float(self.text("uptime").split()[0])

    def pressure(self, resource: str) -> Pressure:
        """Pressure of `cpu`, `memory` or `io` over the machine; kernels without it are `unsupported`."""
        return parse_pressure(self.text("pressure", resource))

    def memory(self) -> Mapping[str, int]:
        """/proc/meminfo in bytes."""
        return parse_sizes(self.text("meminfo"))

    def vm_counters(self) -> Mapping[str, int]:
        """/proc/vmstat counters."""
        pairs = (line.split() for line in self.text("vmstat").splitlines())
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}

    def disks(self) -> Mapping[str, DiskCounters]:
        """Counters by device name."""
        return parse_disks(self.text("diskstats"))

    def task(self, pid: int, thread: int | None = None) -> TaskStat:
        """Status of a process, or of one of its threads."""
        parts: tuple[str | int, ...] = (
            (pid, "stat") if thread is None else (pid, "task", thread, "stat")
        )
        return parse_task(self.text(*parts))

    def tasks(self) -> Iterator[TaskStat]:
        """All processes; those that exit between listing and reading are left out."""
        for pid in self.pids():
            with contextlib.suppress(ProbeError):
                yield self.task(pid)

    def status(self, pid: int, thread: int | None = None) -> Mapping[str, str]:
        """Key to text of a `status` file."""
        parts: tuple[str | int, ...] = (
            (pid, "status") if thread is None else (pid, "task", thread, "status")
        )
        pairs = (line.partition(":") for line in self.text(*parts).splitlines())
        return {key: value.strip() for key, _, value in pairs}

    def command_line(self, pid: int) -> tuple[str, ...]:
        """Arguments of a process; never to be returned to a caller, they may hold secrets."""
        return tuple(part for part in self.text(pid, "cmdline").split("\0") if part)

    def cgroups(self, pid: int) -> Mapping[str, str]:
        """Controller to cgroup path; key "" is the v2 hierarchy."""
        found: dict[str, str] = {}
        for line in self.text(pid, "cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path
        return found

    def run_delay_seconds(self, pid: int, thread: int) -> float:
        """Seconds that a thread was runnable but not running. Source: Documentation/scheduler/sched-stats.rst."""
        return int(self.text(pid, "task", thread, "schedstat").split()[1]) / 1e9


def parse_cpu_times(text: str) -> CpuTimes:
    r"""Reads /proc/stat.

    >>> parse_cpu_times("cpu  100 0 50 1000 10 0 5 7 0 0\ncpu0 100 0 50 1000 10 0 5 7 0 0\n").steal
    0.07
    """
    cpus = 0
    total: list[float] = []
    for line in text.splitlines():
        if line.startswith("cpu "):
            total = [int(part) / CLOCK_TICKS_PER_SECOND for part in line.split()[1:]]
        elif line.startswith("cpu"):
            cpus += 1
    if len(total) < 8:
        raise ProbeError("/proc/stat: has no complete cpu line")
    user, nice, system, idle, iowait, irq, softirq, steal = total[:8]
    return CpuTimes(
        user=user + nice,
        system=system + irq + softirq,
        idle=idle,
        iowait=iowait,
        steal=steal,
        cpus=max(1, cpus),
    )


def parse_pressure(text: str) -> Pressure:
    """Reads a pressure file; a missing `full` line (CPU, old kernels) counts as zero pressure of that kind.

    >>> parse_pressure("some avg10=12.50 avg60=3.00 avg300=1.00 total=1500000").some_avg10
    0.125
    """
    rows: dict[str, dict[str, float]] = {}
    try:
        for line in text.splitlines():
            kind, *pairs = line.split()
            rows[kind] = {
                key: float(value) for key, _, value in (pair.partition("=") for pair in pairs)
            }
        return _pressure(rows["some"], rows.get("full", {}))
    except (ValueError, KeyError) as error:
        raise ProbeError("pressure file: has no 'some' line that is in shape") from error


def _pressure(some: Mapping[str, float], full: Mapping[str, float]) -> Pressure:
    return Pressure(
        some_avg10=some["avg10"] / 100,
        some_avg60=some["avg60"] / 100,
        some_total_seconds=some["total"] / 1e6,
        full_avg10=full.get("avg10", 0.0) / 100,
        full_avg60=full.get("avg60", 0.0) / 100,
        full_total_seconds=full.get("total", 0.0) / 1e6,
    )


def parse_sizes(text: str) -> Mapping[str, int]:
    """Reads `Name:  12 kB` lines (meminfo, smaps_rollup) as bytes.

    >>> parse_sizes("MemTotal:       24684096 kB")["MemTotal"]
    25276514304
    """
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        parts = rest.split()
        if parts and parts[0].isdigit():
            sizes[key] = int(parts[0]) * (1024 if parts[-1] == "kB" else 1)
    return sizes


def parse_disks(text: str) -> Mapping[str, DiskCounters]:
    """Reads /proc/diskstats; loop, ram and zram devices are left out.

    >>> sample = "254 0 vda 10 0 80 20 5 0 40 500 0 100 520"
    >>> parse_disks(sample)["vda"].write_seconds
    0.5
    """
    disks: dict[str, DiskCounters] = {}
    rows = [line.split() for line in text.splitlines()]
    if rows and not any(len(parts) >= 14 for parts in rows):
        raise ProbeError("/proc/diskstats: no line is in shape")
    for parts in rows:
        if len(parts) < 14 or parts[2].startswith(("loop", "ram", "zram", "sr", "fd")):
            continue
        number = [int(part) for part in parts[3:14]]
        disks[parts[2]] = DiskCounters(
            reads=number[0],
            read_bytes=number[2] * SECTOR_BYTES,
            read_seconds=number[3] / 1000,
            writes=number[4],
            write_bytes=number[6] * SECTOR_BYTES,
            write_seconds=number[7] / 1000,
            in_flight=number[8],
            busy_seconds=number[9] / 1000,
            weighted_seconds=number[10] / 1000,
        )
    return disks


def parse_task(text: str) -> TaskStat:
    """Reads a `stat` line; the name may itself hold blanks and brackets.

    >>> parse_task("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 100 50 0 0 20 0 3 0 900 " + "0 " * 30).comm
    'a) b'
    """
    try:
        head, _, tail = text.rpartition(")")
        pid, _, comm = head.partition(" (")
        rest = tail.split()
        return TaskStat(
            pid=int(pid),
            comm=comm,
            state=rest[0],
            parent=int(rest[1]),
            cpu_seconds=(int(rest[11]) + int(rest[12])) / CLOCK_TICKS_PER_SECOND,
            threads=int(rest[17]),
            started_seconds=int(rest[19]) / CLOCK_TICKS_PER_SECOND,
            delay_block_io_seconds=int(rest[39]) / CLOCK_TICKS_PER_SECOND
            if len(rest) > 39
            else 0.0,
        )
    except (ValueError, IndexError) as error:
        raise ProbeError(f"stat line is not in shape: {text[:60]!r}") from error
