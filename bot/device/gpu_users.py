"""Which processes hold memory on the GPUs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.device.field import FieldState, Unread, sane
from bot.device.gpu import Gpu, each_gpu, part
from bot.device.nvml import NvmlLibrary
from bot.device.proc import ProcRoot
from bot.errors import ProbeError

UNSEEN_BYTES = 2**30
"""Our judgement: above what driver and firmware keep for themselves; in a container the driver may list nobody."""
_MOST_PID = 2**22
"""Source: Linux include/linux/threads.h, PID_MAX_LIMIT."""
_FIRST_NAMESPACE = "pid:[4026531836]"
"""Source: Linux include/linux/proc_ns.h, PROC_PID_INIT_INO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUser:
    """One process on one GPU; `name`, `user_id` and `uptime_seconds` are None where it cannot be seen from here."""

    gpu: int
    pid: int
    memory_bytes: float | Unread
    name: str | None
    user_id: int | None
    uptime_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsers:
    """`gone` counts pids that the driver still lists though there is no such process."""

    users: tuple[GpuUser, ...]
    gone: int
    gaps: tuple[str, ...]


def read_users(
    library: NvmlLibrary,
    proc: ProcRoot,
    wanted: tuple[int, ...] | None,
    *,
    mark: Callable[[str], None],
    skipped: Mapping[str, str],
) -> GpuUsers:
    """One look at each GPU.

    Raises:
        NvmlFailure: the driver does not even tell how many GPUs there are.
    """
    users: list[GpuUser] = []
    gaps: list[str] = []
    gone = 0
    uptime = proc.uptime_seconds()
    if not _sees_all_processes(proc):
        gaps.append(
            "process ids: the driver tells the host's and this agent sees its container's, so that a process may be "
            "missing or be another one; start the agent with the host's process ids (hostPID)"
        )
    for gpu in each_gpu(library, wanted, mark, skipped):
        listed = _listed(gpu)
        if isinstance(listed, Unread):
            gaps.append(f"GPU {gpu.index} processes: {listed.state.value} {listed.detail}".strip())
            continue
        used, _ = gpu.memory()
        if not listed and not isinstance(used, Unread) and used > UNSEEN_BYTES:
            gaps.append(
                f"GPU {gpu.index}: {used / 2**30:.1f} GiB are used and no process is listed; whoever holds them is "
                "not seen from here"
            )
        for pid, memory in listed.items():
            user = _user(proc, gpu.index, pid, memory, uptime)
            if user is None:
                # The driver has no notion of pid namespaces; a pid that is not here is not guessed at.
                gone += 1
            else:
                users.append(user)
    mark("judging")
    return GpuUsers(users=tuple(users), gone=gone, gaps=tuple(gaps))


def _sees_all_processes(proc: ProcRoot) -> bool:
    """False where a number of the driver's could by chance be another process here: it knows no namespaces."""
    with contextlib.suppress(ProbeError):
        return proc.link(1, "ns", "pid") == _FIRST_NAMESPACE
    return True


def _listed(gpu: Gpu) -> dict[int, float | Unread] | Unread:
    found: dict[int, float | Unread] = {}
    for function in (
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
    ):
        entries = gpu.read(function)
        if isinstance(entries, Unread):
            if function.startswith("nvmlDeviceGetCompute"):
                return entries
            continue
        if not isinstance(entries, (list, tuple)):
            return Unread(FieldState.INSANE, "the list of processes is none")
        for entry in entries:
            used = part(entry, "usedGpuMemory")
            pid = sane(part(entry, "pid"), 1, _MOST_PID)
            # A pid that cannot be one is counted as one that is not here.
            found[-1 if isinstance(pid, Unread) else int(pid)] = (
                Unread(FieldState.NOT_SUPPORTED, "not told per process")
                if used is None
                else sane(used, 0, 2**50)
            )
    return found


def _user(
    proc: ProcRoot, gpu: int, pid: int, memory: float | Unread, uptime: float
) -> GpuUser | None:
    try:
        task = proc.task(pid)
    except ProbeError:
        return None
    user_id = None
    with contextlib.suppress(ProbeError, KeyError, ValueError):
        user_id = int(proc.status(pid)["Uid"].split()[0])
    return GpuUser(
        gpu=gpu,
        pid=pid,
        memory_bytes=memory,
        name=task.comm,
        user_id=user_id,
        uptime_seconds=uptime - task.started_seconds,
    )
