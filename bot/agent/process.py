"""One child process: started in its own session, followed line by line, described from /proc when it hangs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.device.proc import ProcRoot
from bot.errors import ProbeError

_LOOK_SECONDS = 0.25
"""How late it may be seen that a child has ended whose pipes somebody else holds."""


class ChildProcess:
    """A running child. `mark` is what it said last that it would read; "start" until it has begun."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        proc: ProcRoot,
        now: float,
        *,
        is_driver_client: bool,
    ) -> None:
        self._process = process
        self._proc = proc
        self.is_driver_client = is_driver_client
        self.mark = "start"
        self._marked_at = now
        self._errors = bytearray()
        self._error_reader = asyncio.create_task(self._read_errors())
        self._pending: asyncio.Task[bytes] | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        task: str,
        *,
        environment: Mapping[str, str],
        output_limit_bytes: int,
        proc: ProcRoot,
        now: float,
        is_driver_client: bool,
    ) -> ChildProcess:
        """Starts the command in a new session and writes `task` to its standard input."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
            limit=output_limit_bytes,
        )
        assert process.stdin is not None  # noqa: S101 - narrows the type; the pipe was asked for
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(task.encode())
            process.stdin.close()
        return cls(process, proc, now, is_driver_client=is_driver_client)

    @property
    def is_alive(self) -> bool:
        """True until the process was reaped."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """Process id, and the id of its session and group."""
        return self._process.pid

    def stalled_seconds(self, now: float) -> float:
        """How long ago it last said something."""
        return now - self._marked_at

    async def follow(
        self, deadline: float, monotonic: Callable[[], float], *, stall_seconds: float | None
    ) -> dict[str, Any] | None:
        """Reads until the result; None when the deadline passed, or one GPU took longer than `stall_seconds`."""
        while True:
            limit = deadline - monotonic()
            if stall_seconds is not None and self.mark.startswith("gpu "):
                limit = min(limit, stall_seconds - self.stalled_seconds(monotonic()))
            line = await self._line(limit)
            if line is None:
                return None
            if line == b"":
                return await self._ended_early()
            message = _parse(line)
            if "result" in message:
                result: dict[str, Any] = message["result"]
                return result
            self.mark = str(message.get("mark", ""))
            self._marked_at = monotonic()

    async def wait(self) -> None:
        """Returns once the process is gone; its pipes are closed then, whoever else still holds their other end."""
        # asyncio's own wait ends with the pipes, and what a profiler leaves behind may hold them for ever.
        gone = asyncio.ensure_future(self._process.wait())
        try:
            while self.is_alive and not gone.done():
                await asyncio.wait({gone}, timeout=_LOOK_SECONDS)
        finally:
            if self.is_alive:
                gone.cancel()
            else:
                self._close_pipes()
        await gone

    def _close_pipes(self) -> None:
        for task in (self._error_reader, self._pending):
            if task is not None:
                task.cancel()
        # There is no public call for it.
        transport = getattr(self._process, "_transport", None)
        if isinstance(transport, asyncio.SubprocessTransport):
            transport.close()

    def sweep(self, number: signal.Signals) -> None:
        """Signals what the child started and left behind; for the moment in which the child itself has ended.

        The kernel hands out process ids in a circle, so its id is not a new group's yet.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the whole group, so that what the child started goes with it."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def describe(self) -> str:
        """For people: pid, state, wait channel and what it was at."""
        facts = self.to_json()
        channel = f", in {facts['wait_channel']}" if facts["wait_channel"] else ""
        return f"child {self.pid} state {facts['state']}{channel}, at {self.mark!r}"

    def to_json(self) -> dict[str, Any]:
        """`{"pid","state","wait_channel","at"}` as the kernel tells it now."""
        state, channel = "gone", ""
        with contextlib.suppress(ProbeError):
            state = self._proc.task(self.pid).state
        with contextlib.suppress(ProbeError):
            channel = self._proc.text(self.pid, "wchan").strip("\0\n")
        return {
            "pid": self.pid,
            "state": state,
            "wait_channel": "" if channel == "0" else channel,
            "at": self.mark,
        }

    async def _line(self, limit_seconds: float) -> bytes | None:
        assert self._process.stdout is not None  # noqa: S101 - narrows the type; the pipe was asked for
        if self._pending is None:
            self._pending = asyncio.create_task(self._process.stdout.readline())
        # A cancelled readline could lose half a line, so the read goes on across waits.
        done, _ = await asyncio.wait({self._pending}, timeout=max(0.0, limit_seconds))
        if not done:
            return None
        pending, self._pending = self._pending, None
        try:
            return pending.result()
        except ValueError:
            # Not killed here: whether it may be is the node's policy, and whoever reaps it knows that.
            self.signal(signal.SIGTERM)
            return json.dumps(
                _failure("the probe process wrote more than a result may have")
            ).encode()

    async def _ended_early(self) -> dict[str, Any]:
        await self.wait()
        code = self._process.returncode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        last = self._errors.decode("utf-8", errors="replace").strip().splitlines()
        said = f": {last[-1][:200]}" if last else ""
        failure: dict[str, Any] = _failure(
            f"the probe process {how} at {self.mark!r} without an answer{said}"
        )["result"]
        return failure

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - narrows the type; the pipe was asked for
        while chunk := await self._process.stderr.read(4096):
            self._errors = (self._errors + chunk)[-4096:]


def _parse(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return _failure("the probe process wrote something that is no JSON")
    return (
        message
        if isinstance(message, dict)
        else _failure("the probe process answered out of shape")
    )


def _failure(error: str) -> dict[str, Any]:
    return {
        "result": {
            "status": "error",
            "error": error,
            "findings": [],
            "data": {},
            "truncated": False,
        }
    }
