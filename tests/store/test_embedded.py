"""A real server under the data directory: joined, adopted, stopped by the last one, its data kept."""

import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest
import redis

from bot.errors import ConfigError, StoreError
from bot.store.embedded import EmbeddedRedis
from tests.waiting import PATIENCE_SECONDS


def client(url):
    return redis.Redis.from_url(url, socket_timeout=PATIENCE_SECONDS)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_data_survives_the_restart(tmp_path):
    first = EmbeddedRedis(tmp_path)
    with client(first.start()) as redis_client:
        redis_client.set("k", "kept")
        pid = redis_client.info("server")["process_id"]
    first.stop()
    assert not alive(pid)
    second = EmbeddedRedis(tmp_path)
    with client(second.start()) as redis_client:
        assert redis_client.get("k") == b"kept"
    second.stop()


def test_a_second_user_joins_and_the_last_one_stops_it(tmp_path):
    first, second = EmbeddedRedis(tmp_path), EmbeddedRedis(tmp_path)
    assert first.start() == second.start()
    first.stop()
    with client(second.url) as redis_client:
        assert redis_client.ping()
        pid = redis_client.info("server")["process_id"]
    second.stop()
    assert not alive(pid)


def test_a_server_left_by_kill_9_is_adopted_and_then_stopped(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from bot.store.embedded import EmbeddedRedis\n"
        "print(EmbeddedRedis(Path(sys.argv[1])).start(), flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    url = owner.stdout.readline().strip()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    heir = EmbeddedRedis(tmp_path)
    assert heir.start() == url
    with client(url) as redis_client:
        pid = redis_client.info("server")["process_id"]
    heir.stop()
    assert not alive(pid)


def test_it_asks_for_a_password_and_syncs_every_write(tmp_path):
    server = EmbeddedRedis(tmp_path)
    url = server.start()
    with client(url) as redis_client:
        assert redis_client.config_get("appendonly")["appendonly"] == "yes"
        assert redis_client.config_get("appendfsync")["appendfsync"] == "always"
    port = int(url.rpartition(":")[2].partition("/")[0])
    with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    server.stop()


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="RCA_DATA_DIR: .* cannot be created"):
        EmbeddedRedis(tmp_path / "file").start()


@pytest.mark.parametrize("name", ["two words", "a\"b'c#d", "back\\slash", "数据", "line\nend"])
def test_a_folder_may_have_any_name(tmp_path, name):
    server = EmbeddedRedis(tmp_path / name)
    with client(server.start()) as redis_client:
        redis_client.set("k", "kept")
    server.stop()
    assert any((tmp_path / name / "redis").glob("appendonly*"))


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "redis" / "users.lock").mkdir(parents=True)
    with pytest.raises(ConfigError, match="RCA_DATA_DIR: .* cannot be written: Is a directory; "):
        EmbeddedRedis(tmp_path).start()


def test_a_port_that_is_taken_meanwhile_is_changed_for_another(tmp_path, monkeypatch):
    """The system's server, told of a port that another program holds the first time it is started."""
    real = shutil.which("redis-server")
    stand_in = tmp_path / "bin" / "redis-server"
    stand_in.parent.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        stand_in.write_text(
            f'#!/bin/sh\nif mkdir {tmp_path}/first; then exec {real} "$@" --port {port}; fi\nexec {real} "$@"\n'
        )
        stand_in.chmod(0o755)
        monkeypatch.setenv("PATH", str(stand_in.parent), prepend=os.pathsep)
        server = EmbeddedRedis(tmp_path)
        with client(server.start()) as redis_client:
            assert redis_client.ping()
        assert (tmp_path / "first").exists()
        server.stop()


def test_a_server_that_cannot_run_is_one_line_that_names_its_log(tmp_path, monkeypatch):
    stand_in = tmp_path / "redis-server"
    stand_in.write_text("#!/bin/sh\nexit 1\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(StoreError, match=r"ended as soon as it was started; see .*redis\.log"):
        EmbeddedRedis(tmp_path).start()
