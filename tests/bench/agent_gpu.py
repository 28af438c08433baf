"""One reading of eight GPUs: against nvidia-ml-py alone, nvitop and gpustat on the same library, and step by step to the wire.

nvitop and gpustat are installed into a folder of the bench's own and leave with it; the project does not depend on them.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import httpx

from bot.agent.runner import ChildRunner
from bot.agent.serve import probe_catalogue
from bot.agent.settings import AgentSettings, Limits
from bot.probes.gpu_state import WINDOW_SECONDS
from tests.agent.live_agent import start_agent
from tests.device.standin_libraries import nvml_library

ROOT = Path(__file__).resolve().parents[2]
GOAL_RATIO = 0.5
ROUNDS = 3
RUNS = 10

TIMING = """
import json, statistics, sys, time
def median_ms(look, runs):
    look()
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        look()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)
"""
ALONE = """
import pynvml as n
def alone():
    rows = []
    for index in range(n.nvmlDeviceGetCount()):
        h = n.nvmlDeviceGetHandleByIndex(index)
        memory, use = n.nvmlDeviceGetMemoryInfo(h), n.nvmlDeviceGetUtilizationRates(h)
        rows.append((
            n.nvmlDeviceGetName(h), n.nvmlDeviceGetUUID(h), memory.used, memory.total, use.gpu,
            n.nvmlDeviceGetTemperature(h, 0), n.nvmlDeviceGetPowerUsage(h), n.nvmlDeviceGetEnforcedPowerLimit(h),
            n.nvmlDeviceGetClockInfo(h, 1), n.nvmlDeviceGetMaxClockInfo(h, 1),
            n.nvmlDeviceGetCurrentClocksThrottleReasons(h), n.nvmlDeviceGetTotalEccErrors(h, 1, 0),
            n.nvmlDeviceGetPerformanceState(h), n.nvmlDeviceGetComputeRunningProcesses(h),
        ))
    assert len(rows) == 8 and rows[7][0] == "Stand-in H200", rows
    return rows
"""
PEERS = f"""{TIMING}{ALONE}
import gpustat, nvitop
n.nvmlInit()
devices = nvitop.Device.all()
assert [device.name() for device in devices] == ["Stand-in H200"] * 8
assert len(gpustat.GPUStatCollection.new_query().gpus) == 8
print(json.dumps({{
    "nvidia-ml-py alone": median_ms(alone, 100),
    "nvitop": median_ms(lambda: [device.as_snapshot() for device in nvitop.Device.all()], 30),
    "nvitop, devices kept": median_ms(lambda: [device.as_snapshot() for device in devices], 30),
    "gpustat": median_ms(gpustat.GPUStatCollection.new_query, 3),
    "versions": {{"nvitop": nvitop.__version__, "gpustat": gpustat.__version__}},
}}))
"""
OURS = f"""{TIMING}{ALONE}
from bot.device.gpu_condition import read_conditions
from bot.device.nvml import open_nvml
with open_nvml(sys.argv[1]) as library:
    def ours():
        found = read_conditions(
            library, None, 0.0, mark=lambda _: None, skipped={{}}, wait=lambda _: None, monotonic=time.monotonic
        )
        assert len(found) == 8 and found[7].identity["name"] == "Stand-in H200"
    print(json.dumps({{"ours": median_ms(ours, 100), "alone here": median_ms(alone, 100)}}))
"""


def _python(interpreter: str, script: str, library: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [interpreter, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(library.parent)},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _peers_interpreter(folder: Path) -> str:
    venv.create(folder, with_pip=True)
    interpreter = str(folder / "bin" / "python")
    subprocess.run(
        [
            interpreter,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "nvitop",
            "gpustat",
        ],
        check=True,
        timeout=300,
    )
    return interpreter


async def _steps(folder: Path, library: Path) -> tuple[float, float]:
    """Milliseconds beside the window: through the child, and over the wire; in turns, for the sake of noise."""
    runner = ChildRunner(
        AgentSettings(node="n", nvml_library=str(library)), now=time.time, monotonic=time.monotonic
    )
    agent = await asyncio.to_thread(
        start_agent,
        folder / "agent",
        f'[paths]\nnvml_library = "{library}"\n[limits]\nrequests_per_minute = 100000\n',
    )
    child: list[float] = []
    wire: list[float] = []
    try:
        # One connection, as the bot keeps it.
        async with httpx.AsyncClient(timeout=30) as client:
            for _ in range(RUNS):
                began = time.perf_counter()
                result = await runner.run(probe_catalogue()["gpu_state"], {}, 10.0)
                child.append(time.perf_counter() - began - WINDOW_SECONDS)
                began = time.perf_counter()
                answer = await client.post(
                    f"{agent.url}/v1/probes/gpu_state",
                    json={"args": {}},
                    headers={"Authorization": f"Bearer {agent.token('gpu_state', {})}"},
                )
                wire.append(time.perf_counter() - began - WINDOW_SECONDS)
                if not len(result.data["gpus"]) == len(answer.json()["data"]["gpus"]) == 8:
                    raise RuntimeError(answer.text[:500])
    finally:
        await runner.close()
        await asyncio.to_thread(agent.stop)
    return statistics.median(child) * 1000, statistics.median(wire) * 1000


async def _hung(library_folder: Path) -> str:
    """How late a hung driver call is answered, and whether host probes are served meanwhile."""
    library = nvml_library(library_folder, all={"hang_s": {"nvmlDeviceGetCount_v2": 600}})
    deadline = 2.0
    runner = ChildRunner(
        AgentSettings(node="n", nvml_library=str(library.path), limits=Limits(grace_seconds=0.5)),
        now=time.time,
        monotonic=time.monotonic,
    )
    probes = probe_catalogue()
    began = time.perf_counter()
    hanging = asyncio.create_task(runner.run(probes["gpu_state"], {}, deadline))
    host = [
        (await runner.run(probes[name], {}, 5.0)).status.value
        for name in ("host_memory", "kernel_log", "time_sync", "host_memory")
    ]
    is_meanwhile = not hanging.done()
    result = await hanging
    late = (time.perf_counter() - began - deadline) * 1000
    await runner.close()
    verdict = "met" if late <= 50 and is_meanwhile and set(host) <= {"ok", "denied"} else "MISSED"
    return (
        f"hung NVML call: {result.status.value} {late:.1f} ms after its deadline (goal: 50 ms); "
        f"host probes meanwhile: {', '.join(host)}: {verdict}"
    )


async def run() -> list[str]:
    """Peers and own reading in turns, so that the machine's noise falls on both."""
    with tempfile.TemporaryDirectory(prefix="rca-bench-") as root:
        folder = Path(root)
        library = nvml_library(folder / "lib", all={"count": 8, "pid": os.getpid()}).path
        interpreter = await asyncio.to_thread(_peers_interpreter, folder / "peers")
        rounds: list[dict[str, Any]] = []
        for _ in range(ROUNDS):
            theirs = await asyncio.to_thread(_python, interpreter, PEERS, library)
            ours = await asyncio.to_thread(_python, sys.executable, OURS, library, str(library))
            rounds.append(theirs | ours)
        child, wire = await _steps(folder, library)
        hung = await _hung(folder / "hung")

    def of(name: str) -> float:
        return statistics.median(item[name] for item in rounds)

    # The harder of the two comparisons decides: nvitop need not find its devices again.
    own, nvitop = of("ours"), of("nvitop, devices kept")
    verdict = "met" if own <= GOAL_RATIO * nvitop else "MISSED"
    versions = rounds[0]["versions"]
    return [
        f"8-GPU read p50: ours {own:.2f} ms; nvidia-ml-py alone {of('nvidia-ml-py alone'):.2f} ms; "
        f"nvitop {versions['nvitop']} {nvitop:.2f} ms; gpustat {versions['gpustat']} {of('gpustat'):.0f} ms",
        f"against nvitop with its devices, names and ids kept: {own / nvitop:.2f} of it "
        f"(goal: at most {GOAL_RATIO}): {verdict}; where it finds them anew, as ours and gpustat do: "
        f"{own / of('nvitop'):.2f}",
        f"steps beside the 1 s window: read {own:.1f} ms, through the child {child:.0f} ms "
        f"({child - own:+.0f}), over the wire {wire:.0f} ms ({wire - child:+.0f})",
        hung,
    ]
