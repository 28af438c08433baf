"""Each fault is made for real and found by a running agent; beside it a service that is well is found clean."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.live_agent import LiveAgent, start_agent
from tests.agent.live_service import start_service
from tests.lab import faults

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Runs one probe through an agent whose service is the process with this id."""
    pidfile = tmp_path / "svc.pid"
    pidfile.write_text("0")
    agent: LiveAgent = start_agent(
        tmp_path / "agent",
        f'[services.svc]\nmatch = {{ pidfile = "{pidfile}" }}\n'
        "[limits]\nrequests_per_minute = 1000\nmoderate_per_minute = 1000\n",
    )

    def run(pid: int, probe: str, **args: Any) -> dict[str, Any]:
        pidfile.write_text(str(pid))
        result: dict[str, Any] = agent.post(probe, args).json()
        assert result["status"] == "ok", result
        return result

    yield run
    agent.stop()


def _ids(result: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in result["findings"]}


def _summary(result: dict[str, Any], finding: str) -> str:
    return next(item["summary"] for item in result["findings"] if item["id"] == finding)


def test_process_over_its_quota_is_throttled_and_a_calm_one_is_not(ask: Ask) -> None:
    with faults.program(faults.HOG) as pid, faults.cpu_quota(pid, 0.2):
        found = ask(pid, "host_cpu", window_s=2)
        assert "cpu.cfs_throttled" in _ids(found)
    with faults.program(faults.CALM) as pid, faults.cpu_quota(pid, 0.2):
        assert "cpu.cfs_throttled" not in _ids(ask(pid, "host_cpu", window_s=2))


def test_fsync_storm_presses_on_the_disk_and_names_its_writer(ask: Ask, tmp_path: Path) -> None:
    with faults.program(faults.FSYNC, str(tmp_path)) as pid:
        time.sleep(3)  # the pressure average needs a few seconds of the real thing
        disk = ask(pid, "host_disk", window_s=2)
        threads = ask(pid, "process_threads", service="svc", samples=10)
    assert {"disk.pressure", "disk.top_writer"} <= _ids(disk), disk
    assert str(pid) in _summary(disk, "disk.top_writer")
    assert "proc.blocked_io" in _ids(threads), threads
    with faults.program(faults.CALM) as pid:
        assert "proc.blocked_io" not in _ids(ask(pid, "process_threads", service="svc"))
        disk = ask(pid, "host_disk", window_s=2)
        writers = [item["pid"] for item in disk["data"]["top_writers"]]
        assert pid not in writers


def test_held_futex_is_told_from_threads_that_only_sleep(ask: Ask) -> None:
    with faults.program(faults.FUTEX) as pid:
        time.sleep(1)
        threads = ask(pid, "process_threads", service="svc")
        stacks = ask(pid, "process_stacks", service="svc")
    assert "proc.lock_wait" in _ids(threads), threads
    assert "need" in _summary(threads, "proc.lock_wait")
    # Nobody ever gets it, so it is no contention: the frames are the same in every sample.
    assert _ids(stacks) == {"proc.deadlock"}, stacks
    with faults.program(faults.CALM) as pid:
        time.sleep(1)
        assert "proc.lock_wait" not in _ids(ask(pid, "process_threads", service="svc"))
        assert "proc.deadlock" not in _ids(ask(pid, "process_stacks", service="svc"))


def test_leak_grows_and_a_calm_process_does_not(ask: Ask, tmp_path: Path) -> None:
    for mode, is_leaking in (("leaking", True), ("idle", False)):
        service = start_service(tmp_path / mode, mode)
        try:
            found = ask(service.process.pid, "process_memory", service="svc")
        finally:
            service.stop()
        assert ("mem.anon_growth" in _ids(found)) is is_leaking, found


def test_stopped_process_is_never_called_well(ask: Ask) -> None:
    with faults.program(faults.CALM) as pid:
        time.sleep(0.5)
        os.kill(pid, signal.SIGSTOP)
        threads = ask(pid, "process_threads", service="svc")
        assert threads["data"]["stopped_threads"] >= 9
        assert "proc.threads_ok" not in _ids(threads)
        assert any("stopped" in gap for gap in threads["data"]["not_checked"])
        os.kill(pid, signal.SIGCONT)
        assert ask(pid, "process_threads", service="svc")["data"]["stopped_threads"] == 0


@pytest.mark.parametrize("loss_percent", [5, 0])
def test_loss_in_the_services_own_namespace_is_read_there(ask: Ask, loss_percent: int) -> None:
    with (
        faults.network_namespace(loss_percent) as inside,
        faults.program(faults.SENDER, prefix=inside) as pid,
    ):
        time.sleep(2)
        found = ask(pid, "host_network", window_s=3)
    space = found["data"]["namespaces"]["svc"]
    assert space["segments_per_second"] > 100, space
    is_named = any(
        finding["id"] == "net.retransmit" and finding["summary"].startswith("svc:")
        for finding in found["findings"]
    )
    assert is_named is (loss_percent > 0), found
    assert (space["retransmit_ratio"] > 0.01) is (loss_percent > 0)


def test_kernel_log_is_read_where_a_container_has_no_device_for_it() -> None:
    faults.require_root()
    script = 'mount -t tmpfs none /dev && mknod /dev/null c 1 3 && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "bot.cli", "agent", "run", "kernel_log", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    result = json.loads(done.stdout)
    assert result["status"] == "ok", result
    assert result["data"]["lines"] > 10
