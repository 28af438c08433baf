"""Finds the processes of a service by the rule that the node's own configuration gives."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from dataclasses import dataclass
from pathlib import Path

from bot.device.files import read_text
from bot.device.proc import ProcRoot, TaskStat
from bot.errors import ProbeError, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTarget:
    """A service of this node. Exactly one of the four match rules is set; patterns are shell-style."""

    name: str
    cgroup: str | None = None
    cmdline: str | None = None
    unit: str | None = None
    pidfile: Path | None = None
    metrics_url: str | None = None
    model_dir: Path | None = None
    log_files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    golden_url: str | None = None
    golden_file: Path | None = None
    profile_url: str | None = None
    profile_dir: Path | None = None


def find_processes(proc: ProcRoot, target: ServiceTarget) -> list[TaskStat]:
    """The service's processes, descendants of a matched process included, oldest first.

    Raises:
        ProbeError: `not_found` when nothing matches: a service that is down is no service that is healthy.
    """
    tasks = {task.pid: task for task in proc.tasks()}
    if proc.path == Path("/proc"):
        _leave_out_own(tasks)
    roots = _matched(proc, target, tasks)
    children: dict[int, list[int]] = {}
    for task in tasks.values():
        children.setdefault(task.parent, []).append(task.pid)
    members: set[int] = set()
    queue = list(roots)
    while queue:
        pid = queue.pop()
        if pid in members or pid not in tasks:
            continue
        members.add(pid)
        queue.extend(children.get(pid, ()))
    # A zombie has neither threads nor memory left to look at.
    found = [tasks[pid] for pid in members if tasks[pid].state != "Z"]
    if not found:
        raise ProbeError(
            f"service {target.name}: no process matches its rule on this node; is it running here?",
            reason=Reason.NOT_FOUND,
        )
    return sorted(found, key=lambda task: (task.started_seconds, task.pid))


def _leave_out_own(tasks: dict[int, TaskStat]) -> None:
    """Takes out this process and its ancestors: a command line that names a service is not that service."""
    pid = os.getpid()
    while pid > 1 and pid in tasks:
        pid = tasks.pop(pid).parent


def _matched(proc: ProcRoot, target: ServiceTarget, tasks: dict[int, TaskStat]) -> set[int]:
    if target.pidfile is not None:
        text = read_text(target.pidfile, limit_bytes=64).strip()
        if not text.isdigit():
            raise ProbeError(f"service {target.name}: pidfile {target.pidfile} holds no process id")
        return {int(text)}
    matched: set[int] = set()
    for pid in tasks:
        with contextlib.suppress(ProbeError):
            if target.cmdline is not None:
                if fnmatch.fnmatchcase(" ".join(proc.command_line(pid)), target.cmdline):
                    matched.add(pid)
            elif any(_is_of(path, target) for path in proc.cgroups(pid).values()):
                matched.add(pid)
    return matched


def _is_of(cgroup: str, target: ServiceTarget) -> bool:
    if target.unit is not None:
        return target.unit in cgroup.split("/")
    return target.cgroup is not None and fnmatch.fnmatchcase(cgroup, target.cgroup)
