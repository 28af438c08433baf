"""Runs one profiler for a bounded time: py-spy on a process, Nsight Systems on the GPUs, a server's own torch profiler."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.device.artefact import Artefact, ArtefactFolder
from bot.device.local_http import ask
from bot.device.proc import ProcRoot, TaskStat
from bot.device.stacks import find_py_spy, py_spy_failure
from bot.errors import ProbeError, Reason

SAMPLE_HERTZ = 50
"""Source: py-spy's default is 100; half of it halves the reads of a production process."""
_START_SECONDS = 10.0
"""What a profiler may take beyond its time to start and to write its file."""
_GRACE_SECONDS = 3.0
"""For a profiler that is asked to end: py-spy detaches and writes its file within a second."""
_HTTP_SECONDS = 10.0
_ANSWER_BYTES = 64 * 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_TRACE_SUFFIXES = (".json", ".json.gz", ".pt.trace.json", ".pt.trace.json.gz")


@dataclass(frozen=True, slots=True)
class Capture:
    """What was taken, and of which process, None where it is of the node."""

    artefact: Artefact
    pid: int | None
    is_stopped: bool = False


def record_python(
    proc: ProcRoot,
    tasks: Sequence[TaskStat],
    seconds: float,
    folder: ArtefactFolder,
    *,
    is_native: bool,
) -> Capture:
    """Samples the first of the processes that is Python. Native frames pause it for each sample, Python's do not.

    Raises:
        ProbeError: `unsupported` without py-spy or a Python process, `unauthorised` without SYS_PTRACE, `timeout`.
    """
    binary = find_py_spy()
    if binary is None:
        raise ProbeError(
            "py-spy is not installed on this node; install rca-bot[agent]",
            reason=Reason.UNSUPPORTED,
        )
    failure = ProbeError("the service has no process to profile", reason=Reason.UNSUPPORTED)
    for task in tasks:
        path = folder.new_path()
        command = [
            *(binary, "record", "--pid", str(int(task.pid)), "--output", str(path)),
            *("--duration", str(max(1, round(seconds))), "--rate", str(SAMPLE_HERTZ)),
            *("--format", "speedscope", "--threads", "--idle"),
            "--native" if is_native else "--nonblocking",
        ]
        try:
            done = _run(command, seconds + _START_SECONDS, folder)
        except ProbeError as late:
            path.unlink(missing_ok=True)
            if _was_stopped(proc, task):
                raise ProbeError(
                    f"{late}; process {task.pid} stands stopped (state T) since, send it SIGCONT",
                    reason=late.reason,
                ) from late
            raise
        is_stopped = _was_stopped(proc, task)
        if done.returncode == 0:
            name = f"{_UNSAFE.sub('_', task.comm)}-{task.pid}.speedscope.json"
            artefact = folder.keep(path, name, "application/json")
            return Capture(artefact, task.pid, is_stopped)
        path.unlink(missing_ok=True)
        failure = py_spy_failure(proc, task.pid, done.stderr.decode("utf-8", errors="replace"))
        if failure.reason is not Reason.UNSUPPORTED:
            raise failure
    raise failure


def _was_stopped(proc: ProcRoot, task: TaskStat) -> bool:
    """Some tools leave their target stopped (benfred/py-spy#390); looked at after every run, and said."""
    with contextlib.suppress(ProbeError):
        return proc.task(task.pid).state == "T" and task.state != "T"
    return False


def record_gpus(seconds: float, folder: ArtefactFolder) -> Capture:
    """Samples the counters of all GPUs with Nsight Systems; it attaches to no process.

    Raises:
        ProbeError: `unsupported` without nsys, with the line that a person can run where there is one.
    """
    path = folder.new_path()
    words = _nsys_words(seconds, str(path))
    binary = shutil.which("nsys")
    if binary is None:
        line = " ".join(["nsys", *_nsys_words(seconds, "rca-profile")])
        raise ProbeError(
            f"nsys is not installed on this node; where it is, run by hand: {line}",
            reason=Reason.UNSUPPORTED,
        )
    done = _run([binary, *words], seconds + 3 * _START_SECONDS, folder)
    written = path.with_name(path.name + ".nsys-rep")
    if done.returncode != 0:
        written.unlink(missing_ok=True)
        said = " ".join(done.stderr.decode("utf-8", errors="replace").split())[:200]
        is_denied = "permission" in said.lower() or "ERR_NVGPUCTRPERM" in said
        raise ProbeError(
            f"nsys failed: {said or done.returncode}",
            reason=Reason.UNAUTHORISED if is_denied else Reason.MALFORMED,
        )
    with contextlib.suppress(FileNotFoundError):
        written.rename(path)
    return Capture(folder.keep(path, "gpus.nsys-rep", "application/octet-stream"), None)


def record_torch(
    url: str | None,
    traces: Path | None,
    seconds: float,
    folder: ArtefactFolder,
    wait: Callable[[float], None],
) -> Capture:
    """Asks a server that has a torch profiler of its own (vLLM, SGLang) to run it, and takes over the newest trace.

    Raises:
        ProbeError: `unsupported` where the node's configuration or the server has none; `refused`, `timeout`.
    """
    if url is None or traces is None:
        raise ProbeError(
            "the service has no torch profiler on this node; start it with VLLM_TORCH_PROFILER_DIR (or "
            "SGLANG_TORCH_PROFILER_DIR) and set [services.<name>] profile_url and profile_dir",
            reason=Reason.UNSUPPORTED,
        )
    before = _traces(traces)
    try:
        _switch(url, "start_profile")
    except ProbeError as failure:
        if failure.reason is Reason.NOT_FOUND:
            raise ProbeError(
                f"{failure}; the server was started without its torch profiler",
                reason=Reason.UNSUPPORTED,
            ) from failure
        raise
    try:
        wait(seconds)
    finally:
        _switch(url, "stop_profile")
    new = [path for path, changed in _traces(traces).items() if before.get(path) != changed]
    if not new:
        raise ProbeError("the server's profiler wrote no trace into profile_dir")
    newest = max(new, key=lambda path: path.stat().st_mtime)
    suffix = ".json.gz" if newest.name.endswith(".gz") else ".json"
    media_type = "application/gzip" if suffix.endswith("gz") else "application/json"
    return Capture(folder.copy(newest, f"torch.pt.trace{suffix}", media_type), None)


def _nsys_words(seconds: float, output: str) -> list[str]:
    duration = str(max(1, round(seconds)))
    return [
        *(
            "profile",
            "--trace=none",
            "--sample=none",
            "--cpuctxsw=none",
            "--gpu-metrics-devices=all",
        ),
        *(f"--duration={duration}", f"--output={output}", "sleep", duration),
    ]


def _run(
    command: Sequence[str], timeout_seconds: float, folder: ArtefactFolder
) -> subprocess.CompletedProcess[bytes]:
    """Fixed words and numbers only; the profiler's own temporary files stay in the agent's folder."""
    name = Path(command[0]).name
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder.path), "HOME": str(folder.path)},
        )
    except OSError as error:
        raise ProbeError(f"{name} cannot be started: {error.strerror}") from error
    with process:
        try:
            output, errors = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise ProbeError(
                f"{name} did not end within {timeout_seconds:g} s", reason=Reason.TIMEOUT
            ) from error
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks first: a profiler that is killed while it holds its target can leave it stopped (benfred/py-spy#390)."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _switch(url: str, word: str) -> None:
    ask(
        f"{url.rstrip('/')}/{word}",
        f"the profiler's {word}",
        timeout_seconds=_HTTP_SECONDS,
        limit_bytes=_ANSWER_BYTES,
        body=b"{}",
    )


def _traces(folder: Path) -> dict[Path, float]:
    found: dict[Path, float] = {}
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name.endswith(_TRACE_SUFFIXES) and path.is_file() and not path.is_symlink():
                found[path] = path.stat().st_mtime
    return found
