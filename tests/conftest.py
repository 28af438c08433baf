"""Real servers for the tests, each its own on a free port, stopped by whoever started it."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, settings

from tests.waiting import PATIENCE_SECONDS, wait_until

# A property promises something about values; how long a busy machine takes to make and try them proves nothing.
settings.register_profile("short", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("short"), max_examples=5_000)
# `make fuzz` sets it; without it every property takes the few examples of an ordinary run.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def examples(few: int, many: int = 5_000) -> int:
    """How many examples a property takes: `few` in an ordinary run, `many` under `make fuzz`."""
    return many if settings.get_current_profile_name() == "long" else few


# Below the range from which the system takes ports for outgoing connections (32768 and up, ip(7)): a port from there
# may be gone between the moment it was found free and the moment its server binds it.
_ports = itertools.cycle(range(15_000, 32_000))


def free_port() -> int:
    """A loopback port that nobody listens on, kept for this test process until it ends.

    Every other test process of this machine passes it over, so a server may bind it, give it up and bind it again.
    """
    folder = Path(tempfile.gettempdir()) / f"rca-bot-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for port in itertools.islice(_ports, 17_000):
        mark = os.open(folder / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        with contextlib.suppress(OSError), socket.socket() as probe:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port  # the lock is this process's for as long as it lives
        os.close(mark)
    raise AssertionError("no port is free")


@contextlib.contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """A Redis of its own, without files, while the block runs; gives its URL without a database."""
    port = free_port()
    binary = shutil.which("redis-server")
    assert binary, "redis-server is not installed; run: apt-get install redis-server"
    server = subprocess.Popen(
        [
            *(binary, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory)),
            *("--appendonly", "no", "--save", "", "--databases", "256"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with redis.Redis(port=port) as client:
            wait_until(client.ping, "redis-server is up", passing=(redis.ConnectionError,))
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def _redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


_databases = itertools.cycle(range(1, 256))


@pytest.fixture
def redis_url(_redis_server: str) -> Iterator[str]:
    """An empty database of a real Redis."""
    url = f"{_redis_server}/{next(_databases)}"
    yield url
    with redis.Redis.from_url(url) as client:
        client.flushdb()


@pytest.fixture
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent
