"""Service probes against real processes with a real fault, and against the same service when it is well."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.device.proc import ProcRoot
from bot.device.service import ServiceTarget
from bot.probe import Probe, ProbeContext, Reading
from bot.probes.gpu_allocator import gpu_allocator
from bot.probes.log_health import log_health
from bot.probes.process_memory import process_memory
from bot.probes.process_stacks import process_stacks
from bot.probes.process_threads import process_threads
from bot.probes.service_metrics import service_metrics
from bot.probes.service_sockets import service_sockets
from tests.agent.live_service import LiveService, start_service
from tests.probes.stage import ids, look

Start = Callable[[str], ProbeContext]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the service in a mode and gives a context that knows it as `svc`."""
    services: list[LiveService] = []

    def begin(mode: str) -> ProbeContext:
        service = start_service(tmp_path / mode, mode)
        services.append(service)
        return _context(
            ServiceTarget(
                name="svc",
                pidfile=service.folder / "service.pid",
                metrics_url=f"http://127.0.0.1:{service.port}/metrics",
                log_files=(f"{service.folder}/*.log",),
            )
        )

    yield begin
    for service in services:
        service.stop()


def _context(target: ServiceTarget) -> ProbeContext:
    return ProbeContext(
        proc=ProcRoot(Path("/proc")),
        sys_root=Path("/sys"),
        services={"svc": target},
        wait=time.sleep,
        monotonic=time.monotonic,
        now=time.time,
    )


def _look(probe: Probe, context: ProbeContext, **args: object) -> Reading:
    return look(probe, context, service="svc", **args)


def test_contended_lock_is_found_by_stacks_and_by_threads(start: Start) -> None:
    context = start("contended")
    stacks = _look(process_stacks, context)
    assert ids(stacks) == ["proc.lock_contention"]
    assert "allocate" in stacks.findings[0].summary
    assert float(str(stacks.findings[0].value)) >= 6
    threads = _look(process_threads, context)
    found = {finding.id: finding for finding in threads.findings}
    assert "allocate" in found["proc.lock_wait"].summary


def test_idle_pool_is_no_contended_lock(start: Start) -> None:
    """Its workers sleep on one futex, exactly as the waiters of a lock do."""
    context = start("idle")
    assert ids(_look(process_stacks, context)) == ["proc.stacks_ok"]
    threads = _look(process_threads, context)
    assert "proc.lock_wait" not in ids(threads)
    assert "proc.blocked_io" not in ids(threads)
    assert float(str(threads.data["futex_threads"])) >= 6


def test_deadlock_is_told_apart_from_contention(start: Start) -> None:
    reading = _look(process_stacks, start("deadlocked"))
    assert ids(reading) == ["proc.deadlock"]
    assert reading.findings[0].value == 2


def test_consumer_of_an_empty_queue_waits_for_input(start: Start) -> None:
    reading = _look(process_stacks, start("loader"))
    assert ids(reading) == ["proc.waiting_for_input"]
    assert "next_batch" in reading.findings[0].summary


def test_stacks_leave_the_process_running(start: Start) -> None:
    context = start("idle")
    reading = _look(process_stacks, context)
    row = reading.wire_data()["processes"][0]
    assert row["is_stopped"] is False
    assert row["good_samples"] == 4
    assert context.proc.task(row["pid"]).state not in "Tt"


def test_stopped_process_is_not_called_well(start: Start) -> None:
    context = start("idle")
    pid = int(Path(str(context.services["svc"].pidfile)).read_text())
    os.kill(pid, 19)
    try:
        reading = _look(process_stacks, context)
    finally:
        os.kill(pid, 18)
    assert "proc.stacks_ok" not in ids(reading)
    assert any("stopped" in gap for gap in reading.not_checked)


def test_slow_pinned_allocation_is_found(start: Start) -> None:
    reading = _look(gpu_allocator, start("slow_pool"), window_s=0.5)
    assert ids(reading) == ["gpu.host_alloc_slow"]
    finding = reading.findings[0]
    assert (finding.value, finding.unit, finding.threshold) == (0.02, "s", 0.001)
    assert reading.wire_data()["host_alloc_slow_seconds"] == 0.02


def test_fast_allocator_is_clean(start: Start) -> None:
    assert ids(_look(gpu_allocator, start("idle"), window_s=0.5)) == ["gpu.allocator_ok"]


def test_engine_that_stands_still_with_work_is_frozen(start: Start) -> None:
    reading = _look(service_metrics, start("frozen"), window_s=0.5)
    assert ids(reading) == ["svc.engine_frozen"]
    assert ids(_look(service_metrics, start("idle"), window_s=0.5)) == ["svc.metrics_ok"]


def test_leak_is_found_by_its_growth(start: Start) -> None:
    reading = _look(process_memory, start("leaking"), window_s=2.0)
    assert ids(reading) == ["mem.anon_growth"]
    assert float(str(reading.findings[0].value)) > 10


def test_short_look_does_not_exclude_a_slow_leak(start: Start) -> None:
    """A process of a few seconds cannot be shown not to leak."""
    reading = _look(process_memory, start("idle"), window_s=0.5)
    assert ids(reading) == []
    assert any("slow growth" in gap for gap in reading.not_checked)


def test_deleted_log_file_is_silent(start: Start) -> None:
    context = start("idle")
    log = Path(context.services["svc"].log_files[0]).parent / "service.log"
    log.unlink()
    log.touch()
    reading = _look(log_health, context, window_s=0.5)
    assert ids(reading) == ["log.silent"]
    assert "deleted" in reading.findings[0].summary


def test_log_that_grows_as_usual_is_clean_and_a_surge_is_not(start: Start) -> None:
    context = start("idle")
    assert ids(_look(log_health, context, window_s=0.5)) == ["log.ok"]
    folder = Path(context.services["svc"].log_files[0]).parent

    def surge(_seconds: float) -> None:
        with (folder / "debug.log").open("ab") as stream:
            stream.write(b"x" * 30_000_000)

    (folder / "debug.log").touch()
    from dataclasses import replace

    started = time.monotonic()
    clock = iter([started, started + 1.0])
    loud = replace(context, wait=surge, monotonic=lambda: next(clock, started + 1.0))
    reading = _look(log_health, loud, window_s=1.0)
    assert ids(reading) == ["log.write_surge"]
    assert reading.findings[0].value == pytest.approx(30, abs=0.1)


def test_suppressed_lines_are_told(start: Start) -> None:
    context = start("idle")
    folder = Path(context.services["svc"].log_files[0]).parent
    (folder / "journal.log").write_text("Suppressed 1200 messages from translate.service\n")
    assert "log.suppressed" in ids(_look(log_health, context, window_s=0.3))


PEER = """
import socket, sys, time
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(16)
held = [socket.create_connection(server.getsockname()) for _ in range(6)]
for one in held: one.send(b"question")
print("up", flush=True)
time.sleep(60)
"""


def test_peer_that_owes_answers_is_slow() -> None:
    with subprocess.Popen([sys.executable, "-c", PEER], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.7)  # the answers must be owed for longer than the threshold
            context = _context(ServiceTarget(name="svc", cmdline=f"*{PEER.strip()[:30]}*"))
            reading = _look(service_sockets, context)
        finally:
            process.kill()
    assert ids(reading) == ["net.peer_slow"]
    assert "6 of 6 sockets" in reading.findings[0].summary


def test_service_without_process_is_an_error_and_not_clean() -> None:
    from bot.errors import ProbeError

    context = _context(ServiceTarget(name="svc", cmdline="no such process anywhere"))
    for probe in (process_threads, process_stacks, process_memory, service_sockets, log_health):
        with pytest.raises(ProbeError, match="no process matches"):
            _look(probe, context)
