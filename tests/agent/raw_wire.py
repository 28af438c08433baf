"""Bytes to a live agent without a client's manners, and what came of them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from tests.agent.live_agent import LiveAgent

WAIT_SECONDS = 60.0


def connect(agent: LiveAgent) -> socket.socket:
    """A bare connection; the caller closes it."""
    host, port = agent.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)


def read_to_end(line: socket.socket) -> bytes:
    """Everything until the agent closes; a reset is an end too."""
    answer = b""
    try:
        while piece := line.recv(65536):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


def send(agent: LiveAgent, content: bytes) -> bytes:
    """Sends and reads until the agent closes."""
    with connect(agent) as line:
        try:
            line.sendall(content)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_to_end(line)


def status_of(answer: bytes) -> int:
    """The status of the first answer."""
    return int(answer.split(b" ", 2)[1])


def until(condition: Callable[[], Any], what: str) -> Any:
    """Polls until the condition holds, and gives its value."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return value


def reasons(agent: LiveAgent, since: int) -> list[str]:
    """Why requests were refused, from this audit line on."""
    return [line["reason"] for line in agent.audit()[since:] if line["outcome"] == "refused"]
