"""Two moments of the CPU and what changed between them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from bot.device.cgroup import CgroupTree, CpuQuota
from bot.device.field import Unread, from_failure
from bot.device.inside import service_pressure
from bot.device.proc import CpuTimes, Pressure, ProcRoot, TaskStat
from bot.errors import ProbeError


@dataclass(frozen=True, slots=True)
class CpuMoment:
    """`quotas` and `service_pressure` by service, `cpu_seconds` by process id and name."""

    times: CpuTimes
    pressure: Pressure | Unread
    quotas: Mapping[str, CpuQuota | Unread]
    service_pressure: Mapping[str, Pressure | Unread]
    cpu_seconds: Mapping[tuple[int, str], float]


@dataclass(frozen=True, slots=True)
class CpuUser:
    """Processes of one name together; `pid` is the busiest of them."""

    name: str
    cores: float
    pid: int


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """What a service's quota did in the window."""

    periods: int
    throttled_ratio: float
    throttled_seconds: float
    quota_cores: float | None


@dataclass(frozen=True, slots=True)
class CpuChange:
    """Ratios of all CPU time in the window; `pressure_ratio` is the share of wall time that some task waited."""

    busy_ratio: float
    iowait_ratio: float
    steal_ratio: float
    idle_cores: float
    pressure_ratio: float | Unread
    quotas: Mapping[str, QuotaChange | Unread]
    service_pressure_ratio: Mapping[str, float | Unread]
    users: tuple[CpuUser, ...]


def cpu_moment(
    proc: ProcRoot, cgroups: CgroupTree, members: Mapping[str, tuple[int, ...]]
) -> CpuMoment:
    """Reads everything once. `members` are process ids by service.

    Raises:
        ProbeError: /proc/stat cannot be read; all else is an `Unread` in its place.
    """
    quotas: dict[str, CpuQuota | Unread] = {}
    for name, pids in members.items():
        try:
            quotas[name] = cgroups.cpu_quota(proc.cgroups(pids[0]))
        except ProbeError as failure:
            quotas[name] = from_failure(failure)
    seconds = {
        (task.pid, program_name(proc, task)): task.cpu_seconds
        for task in proc.tasks()
        if not _is_own(proc, task)
    }
    return CpuMoment(
        proc.cpu_times(),
        read_pressure(proc, "cpu"),
        quotas,
        service_pressure(proc, cgroups, members, "cpu"),
        seconds,
    )


def program_name(proc: ProcRoot, task: TaskStat) -> str:
    """The process's name; for an interpreter the script or module that it runs, never its arguments."""
    if not task.comm.startswith("python"):
        return task.comm
    words: list[str] = []
    with contextlib.suppress(ProbeError):
        words = list(proc.command_line(task.pid))[1:]
    for index, word in enumerate(words):
        if word == "-m" and index + 1 < len(words):
            return f"{task.comm} -m {words[index + 1]}"[:80]
        if word == "-c":
            break
        if not word.startswith("-"):
            return f"{task.comm} {PurePath(word).name}"[:80]
    return task.comm


def _is_own(proc: ProcRoot, task: TaskStat) -> bool:
    """The agent and the probes that run beside this one are no load of the node's own."""
    if proc.path != Path("/proc"):
        return False
    agent = os.getppid()
    return task.pid in {agent, os.getpid()} or task.parent == agent


def read_pressure(proc: ProcRoot, resource: str) -> Pressure | Unread:
    """Pressure of the machine, or why there is none."""
    try:
        return proc.pressure(resource)
    except ProbeError as failure:
        return from_failure(failure)


def cpu_change(
    before: CpuMoment, after: CpuMoment, seconds: float, service_pids: frozenset[int]
) -> CpuChange:
    """Deltas over `seconds`; `users` leaves the services' own processes out."""
    total = max(1e-9, after.times.total - before.times.total)
    idle = after.times.idle - before.times.idle
    iowait = after.times.iowait - before.times.iowait
    return CpuChange(
        busy_ratio=max(0.0, 1 - (idle + iowait) / total),
        iowait_ratio=iowait / total,
        steal_ratio=(after.times.steal - before.times.steal) / total,
        idle_cores=max(0.0, idle / total * after.times.cpus),
        pressure_ratio=pressure_share(before.pressure, after.pressure, seconds),
        quotas={
            name: _quota_change(before.quotas.get(name), quota)
            for name, quota in after.quotas.items()
        },
        service_pressure_ratio={
            name: pressure_share(before.service_pressure.get(name, now), now, seconds)
            for name, now in after.service_pressure.items()
        },
        users=_users(before, after, seconds, service_pids),
    )


def pressure_share(
    before: Pressure | Unread, after: Pressure | Unread, seconds: float, *, is_full: bool = False
) -> float | Unread:
    """Share of the window in which some task (or, with `is_full`, every task) waited."""
    if isinstance(before, Unread):
        return before
    if isinstance(after, Unread):
        return after
    spent = (
        after.full_total_seconds - before.full_total_seconds
        if is_full
        else after.some_total_seconds - before.some_total_seconds
    )
    return min(1.0, max(0.0, spent / seconds))


def _quota_change(
    before: CpuQuota | Unread | None, after: CpuQuota | Unread
) -> QuotaChange | Unread:
    if isinstance(after, Unread):
        return after
    if not isinstance(before, CpuQuota):
        return QuotaChange(0, 0.0, 0.0, after.quota_cores)
    periods = after.periods - before.periods
    throttled = after.throttled_periods - before.throttled_periods
    return QuotaChange(
        periods=periods,
        throttled_ratio=throttled / periods if periods > 0 else 0.0,
        throttled_seconds=after.throttled_seconds - before.throttled_seconds,
        quota_cores=after.quota_cores,
    )


def _users(
    before: CpuMoment, after: CpuMoment, seconds: float, service_pids: frozenset[int]
) -> tuple[CpuUser, ...]:
    by_name: dict[str, list[tuple[float, int]]] = {}
    for (pid, name), spent in after.cpu_seconds.items():
        used = (spent - before.cpu_seconds.get((pid, name), 0.0)) / seconds
        if pid not in service_pids and used > 0:
            by_name.setdefault(name, []).append((used, pid))
    users = (
        CpuUser(name, sum(used for used, _ in rows), max(rows)[1]) for name, rows in by_name.items()
    )
    return tuple(sorted(users, key=lambda user: (-user.cores, user.name)))
