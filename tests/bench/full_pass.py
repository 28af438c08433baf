"""A whole pass of `rca-bot diagnose`, from the start of the process to the ranking, on a generated incident.

A real Prometheus holds six hours of a service on two nodes at 15 s; one disk becomes slow in the last twenty minutes.
Recorded cases, where there are any, are timed by the bench `diagnosis`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.conftest import free_port

SECONDS = 5.0
ROUNDS = 3
STEP, HOURS, SICK = 15, 6, 1_200
AT = datetime(2026, 11, 30, 8, tzinfo=UTC)
NODES = ("node-1", "node-2")

LEVELS: dict[str, tuple[float, float, bool]] = {
    # name with labels: calm, sick, whether it is a counter (then these are rates)
    'http_request_duration_seconds_sum{job="gateway",service="rank"}': (6.0, 30.0, True),
    'http_request_duration_seconds_count{job="gateway",service="rank"}': (60.0, 58.0, True),
    'http_requests_total{job="gateway",service="rank",code="200"}': (60.0, 58.0, True),
    'http_requests_in_flight{job="gateway",service="rank"}': (6.0, 40.0, False),
    'app_stage_duration_seconds_sum{service="rank",stage="read_input",node="{n}"}': (0.3, 12.0, True),
    'app_stage_duration_seconds_count{service="rank",stage="read_input",node="{n}"}': (30.0, 29.0, True),
    'app_stage_duration_seconds_sum{service="rank",stage="forward",node="{n}"}': (1.5, 1.5, True),
    'app_stage_duration_seconds_count{service="rank",stage="forward",node="{n}"}': (30.0, 29.0, True),
    'app_queue_depth{service="rank",node="{n}"}': (1.0, 0.0, False),
    'up{service="rank",node="{n}"}': (1.0, 1.0, False),
    'DCGM_FI_DEV_GPU_UTIL{Hostname="{n}",gpu="0"}': (62.0, 24.0, False),
    'DCGM_FI_DEV_SM_CLOCK{Hostname="{n}",gpu="0"}': (1_700.0, 1_700.0, False),
    'node_disk_write_time_seconds_total{node="{n}",device="sda"}': (0.2, 9.0, True),
    'node_disk_writes_completed_total{node="{n}",device="sda"}': (80.0, 90.0, True),
    'node_pressure_io_waiting_seconds_total{node="{n}"}': (0.004, 0.36, True),
    'node_pressure_cpu_waiting_seconds_total{node="{n}"}': (0.01, 0.01, True),
    'node_procs_blocked{node="{n}"}': (0.0, 9.0, False),
    'node_context_switches_total{node="{n}"}': (40_000.0, 40_000.0, True),
    'node_netstat_Tcp_RetransSegs{node="{n}"}': (1.0, 1.0, True),
    'node_netstat_Tcp_OutSegs{node="{n}"}': (9_000.0, 9_000.0, True),
    'container_fs_writes_bytes_total{node="{n}",container="archiver"}': (1e5, 2e8, True),
}  # fmt: skip


async def run() -> list[str]:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        url, server = await _server(folder)
        try:
            found = [await _pass(folder, url) for _ in range(ROUNDS)]
        finally:
            server.terminate()
            await server.wait()
    middle = statistics.median(seconds for seconds, _ in found)
    verdict = "met" if middle <= SECONDS else "MISSED"
    return [
        f"process start to ranking, {2 * len(LEVELS)} series over {HOURS} h on two nodes: {middle:.1f} s "
        f"(goal {SECONDS:g} s: {verdict}); first answer {found[0][1]}"
    ]


def _lines() -> Iterator[str]:
    start = AT.timestamp() - HOURS * 3_600
    for name in sorted(LEVELS, key=lambda text: text.split("{")[0]):
        calm, sick, is_counter = LEVELS[name]
        for node in NODES if "{n}" in name else ("",):
            total = 1_000.0
            for at in range(HOURS * 3_600 // STEP):
                moment = start + at * STEP
                is_sick = moment > AT.timestamp() - SICK and node in ("", NODES[0])
                level = (sick if is_sick else calm) * (1 + 0.02 * math.sin(at))
                total += level * STEP
                value = total if is_counter else level
                yield f"{name.replace('{n}', node)} {value:.6g} {moment:.0f}"


async def _server(home: Path) -> tuple[str, asyncio.subprocess.Process]:
    families: dict[str, list[str]] = {}
    for line in _lines():
        families.setdefault(line.split("{")[0], []).append(line)
    text = [
        line for name in sorted(families) for line in (f"# TYPE {name} unknown", *families[name])
    ]
    (home / "series.om").write_text("\n".join([*text, "# EOF", ""]))
    build = await asyncio.create_subprocess_exec(
        "promtool", "tsdb", "create-blocks-from", "--max-block-duration=24h", "openmetrics", "-q",
        str(home / "series.om"), str(home / "data"), stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    await build.wait()
    (home / "prometheus.yml").write_text("scrape_configs: []\n")
    services = [{"name": "rank", "nodes": list(NODES)}]
    (home / "nodes.yaml").write_text(
        json.dumps({"nodes": [{"name": n} for n in NODES], "services": services})
    )
    port = free_port()
    server = await asyncio.create_subprocess_exec(
        "prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        break
    return f"http://127.0.0.1:{port}", server


async def _pass(home: Path, url: str) -> tuple[float, str]:
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("RCA_", "SLACK_"))
    }
    began = time.perf_counter()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.cli", "diagnose", "--at", f"{AT:%Y-%m-%dT%H:%M:%SZ}", "--service", "rank", "--json",
        stdout=asyncio.subprocess.PIPE,
        env={**clean, "PROMETHEUS_URL": url, "RCA_NODES": str(home / "nodes.yaml"), "RCA_DATA_DIR": str(home / "rca")},
    )  # fmt: skip
    out, _ = await child.communicate()
    first = json.loads(out)["hypotheses"][0]
    return (
        time.perf_counter() - began,
        f"{' > '.join(first['chain'])} at {first['probability']:.2f}",
    )
