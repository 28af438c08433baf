"""The faults, each made by a process or a namespace of its own and undone when the test ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")

HOG = "while True: pass"
FSYNC = """
import os, sys, threading
block = os.urandom(64 << 10)
def storm(number):
    file = os.open(f"{sys.argv[1]}/storm-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        # A file that grows makes each flush wait for the journal too.
        for _ in range(500):
            os.write(file, block)
            os.fsync(file)
        os.ftruncate(file, 0)
for number in range(12):
    threading.Thread(target=storm, args=(number,), daemon=True).start()
threading.Event().wait()
"""
FUTEX = """
import threading, time
held = threading.Lock()
def hold():
    with held:
        time.sleep(3600)
def need():
    with held:
        pass
threading.Thread(target=hold, daemon=True).start()
time.sleep(0.2)
for _ in range(8):
    threading.Thread(target=need, daemon=True).start()
threading.Event().wait()
"""
CALM = """
import threading, time
for _ in range(8):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
time.sleep(3600)
"""
SENDER = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 5555))
def sink(connection):
    while connection.recv(1 << 16):
        pass
def take():
    while True:
        threading.Thread(target=sink, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=take, daemon=True).start()
def send():
    with socket.create_connection(("127.0.0.1", 5555)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            line.sendall(b"x" * 1000)
            threading.Event().wait(0.002)
for _ in range(8):
    threading.Thread(target=send, daemon=True).start()
threading.Event().wait()
"""


def require_root() -> None:
    """The lab makes cgroups and namespaces; without root it fails and does not pass over anything."""
    assert os.getuid() == 0, (
        "the lab needs root for cgroups and network namespaces; run: sudo make lab"
    )


@contextlib.contextmanager
def program(text: str, *arguments: str, prefix: tuple[str, ...] = ()) -> Iterator[int]:
    """Runs the program; yields its process id. `prefix` starts it inside something else."""
    with subprocess.Popen([*prefix, sys.executable, "-c", text, *arguments]) as process:
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@contextlib.contextmanager
def cpu_quota(pid: int, cores: float) -> Iterator[None]:
    """Puts the process into a cgroup of its own that may use `cores` of a CPU."""
    require_root()
    period = 100_000
    first = CGROUP_ROOT / "cpu" / "cpu.cfs_quota_us"
    folder = (CGROUP_ROOT / "cpu" if first.exists() else CGROUP_ROOT) / f"rca-lab-{pid}"
    home = folder.parent / "cgroup.procs"
    folder.mkdir()
    try:
        if first.exists():
            (folder / "cpu.cfs_period_us").write_text(str(period))
            (folder / "cpu.cfs_quota_us").write_text(str(int(cores * period)))
        else:
            (folder / "cpu.max").write_text(f"{int(cores * period)} {period}")
        (folder / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with contextlib.suppress(OSError):
            home.write_text(str(pid))
        _until(lambda: _removed(folder))


@contextlib.contextmanager
def network_namespace(loss_percent: int) -> Iterator[tuple[str, ...]]:
    """A network namespace with loopback up and, where asked, a random drop; yields the words that start a program in it."""
    require_root()
    assert shutil.which("nft"), "nft is missing; run: apt-get install nftables"
    name = f"rca-lab-{os.getpid()}-{loss_percent}"
    inside = ("ip", "netns", "exec", name)
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        # Loopback takes 64 KiB at once; segments of a real link are smaller, and each may be lost.
        subprocess.run([*inside, "ip", "link", "set", "lo", "mtu", "1500"], check=True)
        if loss_percent:
            rules = (
                "table inet lab {\nchain input {\ntype filter hook input priority 0;\n"
                f"tcp dport 5555 numgen random mod 100 < {loss_percent} drop\n}}\n}}\n"
            )
            subprocess.run([*inside, "nft", "-f", "-"], input=rules.encode(), check=True)
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _until(condition: object, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)
