"""The runner with real children that hang, crash, flood and refuse to end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.agent.runner import ChildRunner
from bot.agent.serve import probe_catalogue
from bot.agent.settings import AgentSettings, Limits
from bot.domain.finding import ProbeResult, ProbeStatus
from tests.device.standin_libraries import nvml_library

PROBES = probe_catalogue()
GIB = 2**30


def _runner(**settings: Any) -> ChildRunner:
    return ChildRunner(AgentSettings(node="n", **settings), now=time.time, monotonic=time.monotonic)


async def _once(
    name: str, seconds: float, args: dict[str, Any] | None = None, **settings: Any
) -> ProbeResult:
    runner = _runner(**settings)
    try:
        return await runner.run(PROBES[name], args or {}, seconds)
    finally:
        await runner.close()


async def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def _card(index: int, **calls: Any) -> dict[str, Any]:
    answers: dict[str, Any] = {
        "nvmlDeviceGetMemoryInfo": {
            "return": {"total": 80 * GIB, "used": 8 * GIB, "free": 72 * GIB}
        },
        "nvmlDeviceGetUtilizationRates": {"return": {"gpu": 80, "memory": 40}},
        "nvmlDeviceGetTemperature": {"return": 60},
        "nvmlDeviceGetClockInfo": {"return": 1980},
        "nvmlDeviceGetMaxClockInfo": {"return": 1980},
        "nvmlDeviceGetCurrentClocksEventReasons": {"return": 0},
    }
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "pci": f"00000000:{index:02x}:00.0",
        "name": "Test Card",
        "calls": answers | calls,
    }


def _table(path: Path, *cards: dict[str, Any]) -> str:
    path.write_text(json.dumps({"driver": "1", "device_count": len(cards), "devices": list(cards)}))
    return f"standin:{path}"


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    return path


async def test_hang_is_answered_at_the_deadline_and_the_child_is_gone_soon(fifo: Path) -> None:
    runner = _runner(kernel_log=fifo)
    result = await runner.run(PROBES["kernel_log"], {}, 1.0)
    pid = result.data["child"]["pid"]
    # The answer did not wait for the child: that is still to be seen off, and nobody has reaped it yet.
    assert [child.pid for child in runner.hung.values()] == [pid]
    assert Path(f"/proc/{pid}").exists()
    assert (result.status, result.findings) == (ProbeStatus.TIMEOUT, ())
    assert result.duration_seconds >= 1.0
    await _until(lambda: not Path(f"/proc/{pid}").exists())
    await _until(lambda: not runner.hung)
    await runner.close()


async def test_child_that_cannot_end_blocks_only_its_own_probe(fifo: Path) -> None:
    """A stopped child takes SIGTERM only when it goes on, like one inside the driver."""
    runner = _runner(kernel_log=fifo, limits=Limits(sigkill=True, grace_seconds=60))
    run = asyncio.create_task(runner.run(PROBES["kernel_log"], {}, 1.5))
    pid = await _child_of_test(b"bot.agent.child")
    os.kill(pid, signal.SIGSTOP)
    assert (await run).status is ProbeStatus.TIMEOUT
    again = await runner.run(PROBES["kernel_log"], {}, 1.0)
    assert again.status is ProbeStatus.TIMEOUT
    assert "still hangs" in str(again.error)
    assert str(pid) in str(again.error)
    assert (await runner.run(PROBES["host_memory"], {}, 5.0)).status is ProbeStatus.OK
    os.kill(pid, signal.SIGCONT)
    await _until(lambda: not runner.hung)
    await runner.close()


async def _child_of_test(command: bytes) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes()
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except (OSError, IndexError):
                continue
            if command in line and parent == str(os.getpid()):
                return int(entry.name)
        await asyncio.sleep(0.01)
    raise AssertionError("no child")


async def test_crash_of_the_child_is_an_error_that_names_the_signal(fifo: Path) -> None:
    runner = _runner(kernel_log=fifo)
    run = asyncio.create_task(runner.run(PROBES["kernel_log"], {}, 5.0))
    os.kill(await _child_of_test(b"bot.agent.child"), signal.SIGSEGV)
    result = await run
    assert result.status is ProbeStatus.ERROR
    assert "SIGSEGV" in str(result.error)
    await runner.close()


async def test_one_hanging_gpu_leaves_the_readings_of_the_others(tmp_path: Path) -> None:
    slow = {"nvmlDeviceGetMemoryInfo": {"block_s": 600, "return": None}}
    library = _table(
        tmp_path / "gpus.json",
        *(_card(index, **(slow if index == 5 else {})) for index in range(8)),
    )
    runner = _runner(nvml_library=library, limits=Limits(grace_seconds=0.2))
    result = await runner.run(PROBES["gpu_state"], {}, 10.0)
    assert result.status is ProbeStatus.OK
    rows = result.data["gpus"]
    assert [row["index"] for row in rows if row["skipped"] is None] == [0, 1, 2, 3, 4, 6, 7]
    assert all(row["name"] == "Test Card" for row in rows if row["skipped"] is None)
    assert any("GPU 5: NVML call blocked over" in gap for gap in result.data["not_checked"])
    assert "gpu.ok" not in {finding.id for finding in result.findings}
    await runner.close()


async def test_second_check_does_not_pile_up_another_hung_call(tmp_path: Path) -> None:
    slow = {"nvmlDeviceGetMemoryInfo": {"block_s": 600, "return": None}}
    library = _table(tmp_path / "gpus.json", _card(0), _card(1, **slow))
    runner = _runner(nvml_library=library, limits=Limits(grace_seconds=60))
    run = asyncio.create_task(runner.run(PROBES["gpu_state"], {}, 8.0))
    await _until(lambda: any(child.mark == "window" for child in runner._children))
    await _until(lambda: any(child.mark == "gpu 1" for child in runner._children))
    hung = await _child_of_test(b"bot.agent.child")
    os.kill(hung, signal.SIGSTOP)  # it will not even take SIGTERM
    first = await run
    assert [row["index"] for row in first.data["gpus"] if row["skipped"] is None] == [0]
    second = await runner.run(PROBES["gpu_state"], {}, 8.0)
    # Left out from the start: the second run did not wait for the same GPU again.
    [gap] = [text for text in second.data["not_checked"] if text.startswith("GPU 1")]
    assert f"an earlier NVML call still hangs (child {hung} " in gap
    assert "blocked over" not in gap
    assert [child.pid for child in runner.hung.values()] == [hung]
    os.kill(hung, signal.SIGCONT)
    await _until(lambda: not runner.hung)
    await runner.close()


async def test_hang_while_the_driver_starts_is_a_timeout(tmp_path: Path) -> None:
    path = tmp_path / "gpus.json"
    path.write_text(json.dumps({"init": {"block_s": 600, "return": None}, "devices": []}))
    result = await _once("gpu_state", 1.0, nvml_library=f"standin:{path}")
    assert (result.status, result.findings) == (ProbeStatus.TIMEOUT, ())
    assert result.data["child"]["at"] == "init"


async def test_result_over_the_limit_is_cut_and_says_so(tmp_path: Path) -> None:
    library = _table(tmp_path / "gpus.json", *(_card(index) for index in range(16)))
    result = await _once("gpu_state", 8.0, nvml_library=library, limits=Limits(result_bytes=4096))
    assert result.status is ProbeStatus.OK
    assert result.truncated
    assert len(json.dumps(result.to_json())) < 6000
    assert [finding.id for finding in result.findings] == ["gpu.ok"]


async def test_runs_of_one_probe_take_turns_within_the_callers_deadline() -> None:
    runner = _runner()
    args = {"window_s": 2.0}
    first = asyncio.create_task(runner.run(PROBES["host_cpu"], args, 30.0))
    await _until(lambda: len(runner._children) == 1)
    second = await runner.run(PROBES["host_cpu"], args, 0.5)
    # The second gave up while the first was still at it, and no child of its own was started.
    assert not first.done()
    assert len(runner._children) == 1
    assert second.status is ProbeStatus.TIMEOUT
    assert "while other probes ran" in str(second.error)
    assert (await first).status is ProbeStatus.OK
    await runner.close()


async def test_closing_ends_what_still_hangs(fifo: Path) -> None:
    runner = _runner(kernel_log=fifo, limits=Limits(grace_seconds=60))
    run = asyncio.create_task(runner.run(PROBES["kernel_log"], {}, 1.0))
    pid = await _child_of_test(b"bot.agent.child")
    os.kill(pid, signal.SIGSTOP)
    await run
    await runner.close()
    await _until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in _state(pid))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


async def test_child_sees_nothing_of_the_agents_environment(
    monkeypatch: pytest.MonkeyPatch, fifo: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret-of-the-node")
    runner = _runner(kernel_log=fifo)
    run = asyncio.create_task(runner.run(PROBES["kernel_log"], {}, 1.0))
    pid = await _child_of_test(b"bot.agent.child")
    assert b"secret-of-the-node" not in Path(f"/proc/{pid}/environ").read_bytes()
    await run
    await runner.close()


async def _stuck_in_the_driver(runner: ChildRunner) -> dict[str, Any]:
    """Asks for the GPUs while a call of the library sleeps uninterruptibly; the child as the answer tells it."""
    result = await runner.run(PROBES["gpu_state"], {}, 1.5)
    assert (result.status, result.findings) == (ProbeStatus.TIMEOUT, ())
    child: dict[str, Any] = result.data["child"]
    assert child["state"] == "D"
    assert child["wait_channel"]  # its name differs from kernel to kernel
    assert f"state D, in {child['wait_channel']}" in str(result.error)
    return child


async def test_child_in_uninterruptible_sleep_is_told_with_its_wait_channel(tmp_path: Path) -> None:
    library = nvml_library(tmp_path, all={"stuck_s": {"nvmlDeviceGetCount_v2": 60}})
    runner = _runner(nvml_library=str(library.path), limits=Limits(grace_seconds=0.2))
    child = await _stuck_in_the_driver(runner)
    # Asked to end it does not; killed, last of all, it does.
    await _until(lambda: not Path(f"/proc/{child['pid']}").exists())
    await _until(lambda: not runner.hung)
    await runner.close()


async def test_node_that_forbids_it_never_kills_a_client_of_the_driver(tmp_path: Path) -> None:
    library = nvml_library(tmp_path, all={"stuck_s": {"nvmlDeviceGetCount_v2": 4}})
    limits = Limits(grace_seconds=0.2, sigkill=False)
    runner = _runner(nvml_library=str(library.path), limits=limits)
    child = await _stuck_in_the_driver(runner)
    await asyncio.sleep(3 * limits.grace_seconds)
    assert _state(child["pid"]) == "D"
    # It blocks its own probe, and no other.
    again = await runner.run(PROBES["gpu_state"], {}, 1.0)
    assert again.status is ProbeStatus.TIMEOUT
    assert "still hangs" in str(again.error)
    assert (await runner.run(PROBES["host_memory"], {}, 5.0)).status is ProbeStatus.OK
    # The SIGTERM that it was sent ends it once the driver lets it go.
    await _until(lambda: not runner.hung)
    assert _state(child["pid"]) == "Z"
    await runner.close()
