"""Processes that the demo starts, waits for and stops; it touches no other."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bot.errors import BotError, Reason

_POLL_SECONDS = 0.1
_ASK_SECONDS = 2.0
_OWN_VARIABLES = (
    "RCA_",
    "SLACK_",
    "REDIS_URL",
    "PROMETHEUS_URL",
    "ALERTMANAGER_URL",
    "LOKI_URL",
    "JAEGER_URL",
    "TEMPO_URL",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start.

    ready_url: answers 200 once the program works; None where starting is enough.
    environment: added to the demo's own, from which every setting of the bot is taken out first.
    """

    name: str
    command: Sequence[str]
    log: Path
    ready_url: str | None = None
    start_seconds: float = 60.0
    stop_seconds: float = 10.0
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None


class RunningProgram:
    """One started program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        program.log.parent.mkdir(parents=True, exist_ok=True)
        with program.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_ends_with_parent(), *program.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**inherited_environment(), **program.environment},
                cwd=program.directory,
                # Not a session of its own: the scheduler may share CPU time by session, and the CPU fault of the
                # demo needs the service and its neighbour to compete as equals.
                process_group=0,
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    async def wait_ready(self, client: httpx.AsyncClient) -> None:
        """Returns once the program answers.

        Raises:
            BotError: it ended, or did not answer in time; the message names its log.
        """
        program = self.program
        if program.ready_url is None:
            return
        deadline = time.monotonic() + program.start_seconds
        while time.monotonic() < deadline:
            if not self.is_running:
                raise BotError(
                    f"{program.name} ended with code {self._process.returncode}; see {program.log}",
                    reason=Reason.REFUSED,
                )
            try:
                answer = await client.get(program.ready_url, timeout=_ASK_SECONDS)
            except httpx.HTTPError:
                pass
            else:
                if answer.is_success:
                    return
            await asyncio.sleep(_POLL_SECONDS)
        raise BotError(
            f"{program.name} did not come up in {program.start_seconds:g} s; see {program.log}",
            reason=Reason.TIMEOUT,
        )

    def ask_to_stop(self) -> None:
        """Sends SIGTERM."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Asks, waits, and kills at last."""
        self.ask_to_stop()
        try:
            self._process.wait(self.program.stop_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(self.program.stop_seconds)


def is_free(port: int) -> bool:
    """Whether nobody listens on a loopback port.

    Another program may take it before it is used; the start of the program that wanted it then fails with its log.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Different free loopback ports."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _ends_with_parent() -> list[str]:
    """Children do not outlive a demo that was killed. Source: setpriv(1) of util-linux."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def inherited_environment() -> dict[str, str]:
    """The demo's own environment without the settings of any other bot."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)
    }
