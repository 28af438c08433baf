"""Takes Python stacks of a running process through py-spy, without pausing it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from bot.device.files import read_text
from bot.device.proc import ProcRoot
from bot.errors import ProbeError, Reason

_FUTEX = re.compile(r"futex|umtx")
_KERNEL_LOCK = re.compile(r"rwsem|mutex_lock|down_(read|write)|__down")
_LIBRARY_WAITS = (
    "threading.py",
    "queue.py",
    "selectors.py",
    "socket.py",
    "ssl.py",
    "subprocess.py",
    "concurrent/futures/thread.py",
    "concurrent/futures/_base.py",
    "multiprocessing/",
    "asyncio/",
)
# What a line of source asks for when it sleeps on a futex without a frame of its own: work, or a lock.
_ASKS_FOR_WORK = re.compile(r"\.(get|recv|wait|join|pop|popleft|read|result|receive)\w*\(")
_LOADER = re.compile(
    r"prefetch|data_?loader|next_(data|batch)|get_(data|batch)|input_queue|fetch_batch",
    re.IGNORECASE,
)


class Waiting(StrEnum):
    """What a thread does, told from its stack and from where the kernel has it."""

    RUNS = "runs"
    LOCK = "lock"
    INPUT = "input"
    IDLE = "idle"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


@dataclass(frozen=True, slots=True)
class Stack:
    """One thread's frames, innermost first. `futex` is the address that it sleeps on, if it does."""

    thread: int
    name: str
    is_active: bool
    owns_gil: bool
    frames: tuple[Frame, ...]
    futex: str | None
    wait_channel: str
    asks_for_work: bool = False

    @property
    def where(self) -> Frame | None:
        """The innermost frame outside the standard library's waiting functions."""
        for frame in self.frames:
            if not frame.file.startswith(_LIBRARY_WAITS):
                return frame
        return self.frames[0] if self.frames else None

    @property
    def waiting(self) -> Waiting:
        """What the thread does.

        A lock written in C has no frame of its own, so the innermost frame is the line that asks for it; the kernel
        tells that it sleeps on a futex. A thread that waits inside the standard library waits for work, unless it
        is a semaphore's or lock's `acquire`, which is a permit that somebody holds.
        """
        if not self.frames:
            return Waiting.ELSEWHERE
        if _KERNEL_LOCK.search(self.wait_channel):
            return Waiting.LOCK
        if self.is_active and self.futex is None:
            return Waiting.RUNS
        library = [frame for frame in self.frames[:3] if frame.file.startswith(_LIBRARY_WAITS)]
        if not self.frames[0].file.startswith(_LIBRARY_WAITS):
            if self.futex is None:
                return Waiting.ELSEWHERE
            return self._wait_for_work if self.asks_for_work else Waiting.LOCK
        if any(frame.function.rpartition(".")[2] == "acquire" for frame in library):
            return Waiting.LOCK
        return self._wait_for_work

    @property
    def _wait_for_work(self) -> Waiting:
        is_consumer = any(
            _LOADER.search(frame.function) or _LOADER.search(frame.file) for frame in self.frames
        )
        return Waiting.INPUT if is_consumer else Waiting.IDLE


def find_py_spy() -> str | None:
    """Path of the py-spy binary beside this interpreter, else on the PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.exists() else shutil.which("py-spy")


def take_stacks(proc: ProcRoot, pid: int, timeout_seconds: float) -> tuple[Stack, ...]:
    """One non-blocking dump of all Python threads of a process.

    `dump --nonblocking` because the default pauses the target. Source: benfred/py-spy#872, 8-9 ms stops of 159 threads.

    Raises:
        ProbeError: `unsupported` without py-spy or for a process that is no Python; `unauthorised` without
            permission to trace; `not_found` once it is gone; `malformed` where a sample failed, which a
            non-blocking dump may.
    """
    binary = find_py_spy()
    if binary is None:
        raise ProbeError(
            "py-spy is not installed on this node; install rca-bot[agent]",
            reason=Reason.UNSUPPORTED,
        )
    command = [binary, "dump", "--pid", str(int(pid)), "--nonblocking", "--json"]
    try:
        # Fixed words and one number: nothing of the caller reaches the command line.
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise ProbeError(
            f"py-spy did not end within {timeout_seconds:g} s", reason=Reason.TIMEOUT
        ) from error
    except OSError as error:
        raise ProbeError(f"py-spy cannot be started: {error}") from error
    if done.returncode != 0:
        raise py_spy_failure(proc, pid, done.stderr.decode("utf-8", errors="replace"))
    try:
        return tuple(_stack(proc, pid, item) for item in json.loads(done.stdout))
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeError("py-spy answered in an unknown shape") from error


def hottest_group(stacks: Iterable[Stack]) -> tuple[Frame, tuple[Stack, ...]] | None:
    """The largest set of threads that ask for a lock at the same line, or on the same futex."""
    groups: dict[tuple[str, str], list[Stack]] = {}
    for stack in stacks:
        if stack.waiting is Waiting.LOCK and stack.where is not None:
            key = (stack.futex or "", f"{stack.where.file}:{stack.where.function}")
            groups.setdefault(key, []).append(stack)
    if not groups:
        return None
    _, members = max(groups.items(), key=lambda item: (len(item[1]), item[0]))
    frame = members[0].where
    return None if frame is None else (frame, tuple(members))


def _stack(proc: ProcRoot, pid: int, item: Mapping[str, Any]) -> Stack:
    thread = int(item["os_thread_id"] or 0)
    channel = futex = None
    if thread:
        with contextlib.suppress(ProbeError):
            channel = proc.text(pid, "task", thread, "wchan")
        futex = futex_address(proc, pid, thread, channel or "")
    frames = item["frames"]
    line = _source_line(proc, pid, frames[0]) if futex is not None and frames else ""
    return Stack(
        thread=thread,
        name=str(item.get("thread_name") or ""),
        is_active=bool(item["active"]),
        owns_gil=bool(item["owns_gil"]),
        frames=tuple(
            Frame(str(frame["name"]), str(frame["short_filename"]), int(frame["line"]))
            for frame in frames
        ),
        futex=futex,
        wait_channel=channel or "",
        asks_for_work=_ASKS_FOR_WORK.search(line) is not None,
    )


def _source_line(proc: ProcRoot, pid: int, frame: Mapping[str, Any]) -> str:
    """The line of source that the frame is at, "" where it cannot be read; it is looked at and never returned."""
    name = str(frame["filename"])
    if not name.startswith("/") or not name.endswith(".py"):
        return ""
    with contextlib.suppress(ProbeError, IndexError):
        text = read_text(proc.path / str(pid) / "root" / name.lstrip("/"), limit_bytes=1024 * 1024)
        return text.splitlines()[int(frame["line"]) - 1]
    return ""


def futex_address(proc: ProcRoot, pid: int, thread: int, wait_channel: str) -> str | None:
    """The address of the lock that a thread sleeps on; "unknown" where only the wait channel says so."""
    if not _FUTEX.search(wait_channel):
        return None
    with contextlib.suppress(ProbeError):
        parts = proc.text(pid, "task", thread, "syscall").split()
        # "running" stands alone; otherwise the second word is the first argument, the futex's address.
        if len(parts) > 1:
            return parts[1]
    return "unknown"


def is_kernel_lock(wait_channel: str) -> bool:
    """True where the kernel has the thread asleep on one of its own sleeping locks."""
    return _KERNEL_LOCK.search(wait_channel) is not None


def py_spy_failure(proc: ProcRoot, pid: int, stderr: str) -> ProbeError:
    """What py-spy said, as the reason that a probe reports."""
    text = " ".join(stderr.split())[:200]
    if not (proc.path / str(pid)).exists():
        return ProbeError(f"process {pid} is gone", reason=Reason.NOT_FOUND)
    lowered = text.lower()
    if "permission denied" in lowered or "operation not permitted" in lowered:
        return ProbeError(
            f"py-spy may not trace process {pid}; give the agent SYS_PTRACE",
            reason=Reason.UNAUTHORISED,
        )
    if "python version" in lowered or "python interpreter" in lowered or "libpython" in lowered:
        return ProbeError(f"process {pid} is no Python process", reason=Reason.UNSUPPORTED)
    return ProbeError(f"py-spy failed on process {pid}: {text}")
