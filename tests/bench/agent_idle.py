"""What the agent costs: 60 s of idling, and what 3,600 requests leave behind."""

import asyncio
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.agent.live_agent import LiveAgent, start_agent

IDLE_SECONDS = 60
REQUESTS = 3600
GOAL_CPU_RATIO = 0.005
GOAL_RSS_MIB = 64
GOAL_GROWTH_MIB = 5
WARM_UP = 50
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of the agent's own process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid: int) -> float:
    """Resident memory of the agent's own process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} is gone")


def ask(agent: LiveAgent, count: int) -> dict[str, int]:
    """Sends `count` requests, a few at a time, each of which runs a real child."""
    told: dict[str, int] = {}
    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(3) as pool:

        def one(_number: int) -> str:
            answer = client.post(
                f"{agent.url}/v1/probes/host_memory",
                json={"args": {}, "timeout": 30},
                headers={"Authorization": f"Bearer {agent.token('host_memory', {})}"},
            )
            return str(answer.json().get("status", answer.status_code))

        for status in pool.map(one, range(count)):
            told[status] = told.get(status, 0) + 1
    return told


async def run() -> list[str]:
    """Idle first, then the requests; memory is read once the warm-up's pools are there."""
    with tempfile.TemporaryDirectory(prefix="rca-bench-") as root:
        agent = await asyncio.to_thread(
            start_agent, Path(root), "[limits]\nrequests_per_minute = 1000000\n"
        )
        pid = agent.process.pid
        try:
            await asyncio.sleep(3)
            spent, began = cpu_seconds(pid), time.monotonic()
            await asyncio.sleep(IDLE_SECONDS)
            idle = (cpu_seconds(pid) - spent) / (time.monotonic() - began)
            resting = rss_mib(pid)
            await asyncio.to_thread(ask, agent, WARM_UP)
            before, began = rss_mib(pid), time.monotonic()
            told = await asyncio.to_thread(ask, agent, REQUESTS)
            taken = time.monotonic() - began
            await asyncio.sleep(2)
            after = rss_mib(pid)
        finally:
            agent.stop()
    is_idle_met = idle <= GOAL_CPU_RATIO and resting <= GOAL_RSS_MIB
    is_growth_met = after - before <= GOAL_GROWTH_MIB and set(told) == {"ok"}
    return [
        f"idle {IDLE_SECONDS} s: {idle:.2%} of a core (goal {GOAL_CPU_RATIO:.1%}), {resting:.1f} MiB RSS "
        f"(goal {GOAL_RSS_MIB}): {'met' if is_idle_met else 'MISSED'}",
        f"{REQUESTS} requests in {taken:.0f} s ({told}): RSS {before:.1f} -> {after:.1f} MiB, "
        f"{after - before:+.1f} (goal +{GOAL_GROWTH_MIB}; {after - resting:+.1f} since idle): "
        f"{'met' if is_growth_met else 'MISSED'}",
    ]
