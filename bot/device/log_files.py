"""Two looks at a service's log files, and at the log files that its processes hold open."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.device.files import list_names
from bot.device.proc import ProcRoot
from bot.errors import ProbeError

MAX_FILES = 64
TAIL_BYTES = 64 * 1024
"""Caps on work: the newest files and their last lines, some hundreds each. Our judgement."""
_SUPPRESSED = re.compile(
    r"[Ss]uppressed \d+ (messages|lines|callbacks)|\d+ (messages|callbacks) suppressed"
    r"|rate[- ]limit(ed|ing).{0,40}(log|message)",
)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file at one moment; `inode` tells a rotated file from one that grew."""

    path: str
    inode: int
    size_bytes: int
    changed_at: float


@dataclass(frozen=True, slots=True)
class DeletedLog:
    """A file that a process still writes to though its name is gone: what it writes nobody reads."""

    pid: int
    path: str
    inode: int


def log_files(proc: ProcRoot, patterns: Iterable[str], pid: int) -> tuple[LogFile, ...]:
    """Files that match, as the service's own processes see them where its root differs from ours."""
    found: dict[str, LogFile] = {}
    for pattern in patterns:
        names = sorted(glob.glob(pattern))  # noqa: PTH207 - an absolute pattern, which Path.glob refuses
        if not names:
            root = str(proc.path / str(pid) / "root")
            names = sorted(glob.glob(root + pattern))  # noqa: PTH207
        for name in names[:MAX_FILES]:
            with contextlib.suppress(OSError):
                facts = Path(name).stat()
                found[name] = LogFile(name, facts.st_ino, facts.st_size, facts.st_mtime)
    return tuple(found.values())


def grown_bytes(before: Iterable[LogFile], after: Iterable[LogFile]) -> Mapping[str, int]:
    """Bytes written by path; a file that was rotated in between counts what is in the new one."""
    earlier = {file.path: file for file in before}
    grown: dict[str, int] = {}
    for file in after:
        then = earlier.get(file.path)
        is_same = (
            then is not None and then.inode == file.inode and then.size_bytes <= file.size_bytes
        )
        grown[file.path] = file.size_bytes - (then.size_bytes if is_same and then else 0)
    return grown


def deleted_logs(proc: ProcRoot, pids: Iterable[int]) -> tuple[DeletedLog, ...]:
    """Regular files open for writing, deleted, and named like a log."""
    found: list[DeletedLog] = []
    for pid in pids:
        names: list[str] = []
        with contextlib.suppress(ProbeError):
            names = list_names(proc.path / str(pid) / "fd")
        for name in names:
            with contextlib.suppress(ProbeError, OSError, ValueError):
                target = proc.link(pid, "fd", name)
                path = target.removesuffix(" (deleted)")
                if path == target or not re.search(r"log|/out|\.err$", path):
                    continue
                flags = int(proc.text(pid, "fdinfo", name).split("flags:")[1].split()[0], 8)
                if flags & (os.O_WRONLY | os.O_RDWR):
                    inode = (proc.path / str(pid) / "fd" / name).stat().st_ino
                    found.append(DeletedLog(pid, path, inode))
    return tuple(found)


def standard_output(proc: ProcRoot, pid: int) -> str:
    """Where a process's standard output goes: a path, `pipe:[…]`, or "" where it may not be read."""
    with contextlib.suppress(ProbeError):
        return proc.link(pid, "fd", 1)
    return ""


def suppressed_lines(path: str) -> int:
    """Lines in the file's last 64 KiB that say that other lines were left out."""
    with contextlib.suppress(OSError), Path(path).open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - TAIL_BYTES))
        text = stream.read(TAIL_BYTES).decode("utf-8", errors="replace")
        return sum(1 for line in text.splitlines() if _SUPPRESSED.search(line))
    return 0
