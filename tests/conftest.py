"""Real servers for the tests, each its own on a free port, stopped by whoever started it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import settings

# `make fuzz` sets it; without it every property takes the few examples of an ordinary run.
settings.register_profile("long", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def examples(few: int, many: int = 5_000) -> int:
    """How many examples a property takes: `few` in an ordinary run, `many` under `make fuzz`."""
    return many if settings.get_current_profile_name() == "long" else few


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def _redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("redis")
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
    deadline = time.monotonic() + 15
    client = redis.Redis(port=port)
    while True:
        try:
            client.ping()
            break
        except redis.ConnectionError:
            assert time.monotonic() < deadline, "redis-server did not come up"
            time.sleep(0.02)
    client.close()
    yield f"redis://127.0.0.1:{port}"
    server.terminate()
    server.wait(10)


_databases = iter(range(1, 256))


@pytest.fixture
def redis_url(_redis_server: str) -> Iterator[str]:
    """An empty database of a real Redis."""
    number = next(_databases)
    url = f"{_redis_server}/{number}"
    yield url
    client = redis.Redis.from_url(url)
    client.flushdb()
    client.close()


@pytest.fixture
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent
