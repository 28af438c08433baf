"""Two moments of the disks, who wrote in between, and how full the local file systems are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.device.cpu import read_pressure
from bot.device.field import Unread
from bot.device.files import list_names
from bot.device.proc import DiskCounters, Pressure, ProcRoot
from bot.errors import ProbeError

_LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "vfat", "overlay"}
"""File systems that are asked for free space. A dead network mount would hang the question.

Source: node_exporter#244, #475, #578, #868, #3058; giampaolo/psutil#1867.
"""
FREE_BYTES = 500 * 1000 * 1000
"""Source: leptonai/gpud and the kubelet's default, less than 500 MB free."""
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True, slots=True)
class DiskMoment:
    """`written` is bytes by process id and name; processes that may not be read are left out."""

    disks: Mapping[str, DiskCounters]
    pressure: Pressure | Unread
    written: Mapping[tuple[int, str], int]
    unread_processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskChange:
    """One device in the window; latencies are seconds per request, None where there was no request."""

    name: str
    reads: int
    writes: int
    read_latency_seconds: float | None
    write_latency_seconds: float | None
    queue: float
    busy_ratio: float
    write_bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Writer:
    """A process that wrote; `file` is the file it has open for writing that grew last, on `device`."""

    name: str
    pid: int
    bytes_per_second: float
    file: str | None
    device: str | None


@dataclass(frozen=True, slots=True)
class FileSystem:
    """One mounted local file system."""

    mount: str
    kind: str
    size_bytes: int
    free_bytes: int

    @property
    def free_ratio(self) -> float:
        """0..1 of what unprivileged processes may still use."""
        return self.free_bytes / max(1, self.size_bytes)

    @property
    def is_short(self) -> bool:
        """Few bytes left; a boot partition is small by design, so this is for file systems that are large."""
        return self.free_bytes < FREE_BYTES and self.size_bytes > 10 * FREE_BYTES


def disk_moment(proc: ProcRoot) -> DiskMoment:
    """Reads everything once.

    Raises:
        ProbeError: /proc/diskstats cannot be read.
    """
    written: dict[tuple[int, str], int] = {}
    unread = 0
    for task in proc.tasks():
        try:
            text = proc.text(task.pid, "io")
        except ProbeError:
            unread += 1
            continue
        for line in text.splitlines():
            if line.startswith("write_bytes:"):
                written[task.pid, task.comm] = int(line.split()[1])
    return DiskMoment(proc.disks(), read_pressure(proc, "io"), written, unread)


def disk_changes(before: DiskMoment, after: DiskMoment, seconds: float) -> tuple[DiskChange, ...]:
    """Whole devices and partitions that are in both moments, busiest first."""
    changes = [
        _change(name, before.disks[name], now, seconds)
        for name, now in after.disks.items()
        if name in before.disks
    ]
    return tuple(sorted(changes, key=lambda change: (-change.busy_ratio, change.name)))


def top_writers(
    proc: ProcRoot, before: DiskMoment, after: DiskMoment, seconds: float, most: int
) -> tuple[Writer, ...]:
    """Processes by bytes written in the window; one that started in between counts from zero."""
    deltas = {
        key: total - before.written.get(key, 0)
        for key, total in after.written.items()
        if total > before.written.get(key, 0)
    }
    ranked = sorted(deltas.items(), key=lambda item: (-item[1], item[0]))[:most]
    writers = []
    for (pid, name), written in ranked:
        file, device = last_written_file(proc, pid)
        writers.append(Writer(name, pid, written / seconds, file, device))
    return tuple(writers)


def last_written_file(proc: ProcRoot, pid: int) -> tuple[str | None, str | None]:
    """Path and device of the regular file that the process has open for writing and that changed last."""
    newest: tuple[float, str, int] | None = None
    with contextlib.suppress(ProbeError, OSError):
        for name in list_names(proc.path / str(pid) / "fd"):
            with contextlib.suppress(ProbeError, OSError, ValueError):
                target = proc.link(pid, "fd", name)
                flags = _flags(proc.text(pid, "fdinfo", name))
                if not target.startswith("/") or not flags & _WRITE_FLAGS:
                    continue
                facts = (proc.path / str(pid) / "fd" / name).stat()
                if newest is None or facts.st_mtime > newest[0]:
                    newest = (facts.st_mtime, target, facts.st_dev)
    return (None, None) if newest is None else (newest[1], device_name(proc, newest[2]))


def device_name(proc: ProcRoot, number: int) -> str | None:
    """Name of the block device with that number, as /proc/diskstats has it."""
    with contextlib.suppress(ProbeError, IndexError):
        for line in proc.text("diskstats").splitlines():
            parts = line.split()
            if parts[:2] == [str(os.major(number)), str(os.minor(number))]:
                return parts[2]
    return None


def device_of(proc: ProcRoot, path: Path) -> str | None:
    """Block device that holds a path; None where the path or the device cannot be told."""
    with contextlib.suppress(OSError):
        return device_name(proc, path.stat().st_dev)
    return None


def file_systems(proc: ProcRoot) -> tuple[FileSystem, ...]:
    """Local file systems as the first process sees them, one per device, the root always; none without a table."""
    host_root = proc.path / "1" / "root"
    is_host = os.access(host_root, os.R_OK | os.X_OK)
    root = host_root if is_host else Path("/")
    try:
        table = proc.text(*((1,) if is_host else ("self",)), "mounts")
    except ProbeError:
        return ()
    found: dict[str, FileSystem] = {}
    for line in table.splitlines():
        parts = line.split()
        if len(parts) < 4 or parts[2] not in _LOCAL or parts[0] in found:
            continue
        mount = parts[1].replace("\\040", " ")
        with contextlib.suppress(OSError):
            facts = os.statvfs(root / mount.lstrip("/"))
            if facts.f_blocks:
                found[parts[0]] = FileSystem(
                    mount,
                    parts[2],
                    facts.f_blocks * facts.f_frsize,
                    facts.f_bavail * facts.f_frsize,
                )
    if not any(item.mount == "/" for item in found.values()):
        # A root that was pivoted to has no line of its own in the table.
        with contextlib.suppress(OSError):
            facts = os.statvfs(root)
            found["/"] = FileSystem(
                "/", "root", facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize
            )
    return tuple(sorted(found.values(), key=lambda item: (item.free_ratio, item.mount)))


def _change(name: str, before: DiskCounters, after: DiskCounters, seconds: float) -> DiskChange:
    reads, writes = after.reads - before.reads, after.writes - before.writes
    return DiskChange(
        name=name,
        reads=reads,
        writes=writes,
        read_latency_seconds=(after.read_seconds - before.read_seconds) / reads
        if reads > 0
        else None,
        write_latency_seconds=(
            (after.write_seconds - before.write_seconds) / writes if writes > 0 else None
        ),
        queue=(after.weighted_seconds - before.weighted_seconds) / seconds,
        busy_ratio=min(1.0, (after.busy_seconds - before.busy_seconds) / seconds),
        write_bytes_per_second=(after.write_bytes - before.write_bytes) / seconds,
    )


def _flags(text: str) -> int:
    for line in text.splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8)
    return 0
