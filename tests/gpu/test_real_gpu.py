"""Every probe on a machine with a GPU, through the shell as an operator runs it; under five minutes in all.

The names of the devices are asserted against NVIDIA's own binding in another process, so that no stand-in can pass.
Set RCA_GPU_NAME to what the machine must have, for example H200.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVICE = "holder"
HELD_BYTES = 512 * 2**20
pytestmark = pytest.mark.gpu

_NAMES = """
import json, pynvml
pynvml.nvmlInit()
names = []
for index in range(pynvml.nvmlDeviceGetCount()):
    name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))
    names.append(name.decode() if isinstance(name, bytes) else name)
print(json.dumps(names))
"""
# Holds memory on the first GPU through the driver's own interface, without any framework.
_HOLDER = f"""
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t({HELD_BYTES})) == 0
print("held", flush=True)
time.sleep(600)
"""
ARGS: dict[str, dict[str, Any]] = {
    "h2d_bandwidth": {"gpu": 0},
    "profile": {"service": SERVICE, "seconds": 1, "tool": "py-spy"},
}
# What this service does not have, each for a reason that the probe gives.
UNSUPPORTED = {
    "dependency_check", "golden_set", "gpu_allocator", "log_health", "model_artifact", "service_metrics",
}  # fmt: skip


@pytest.fixture(scope="module")
def names() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _NAMES], capture_output=True, text=True, timeout=60, check=True
    )
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("gpu")
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (folder / "holder.pid").write_text(str(holder.pid))
        (folder / "agent.toml").write_text(
            f'[services.{SERVICE}]\nmatch = {{ pidfile = "{folder}/holder.pid" }}\n'
            '[probes]\nheavy = ["*"]\n'
        )
        yield {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "RCA_AGENT_NODE": "gpu-under-test",
            "RCA_AGENT_CONFIG": str(folder / "agent.toml"),
        }
        holder.kill()


def _shell(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "agent", *words],
        capture_output=True, text=True, timeout=120, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def catalogue(environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in json.loads(_shell(environment, "list", "--json"))}


@pytest.fixture(scope="module")
def results(
    environment: dict[str, str], catalogue: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Each probe once, one after the other; written out, so that a run is a record too."""
    found: dict[str, dict[str, Any]] = {}
    for name, entry in catalogue.items():
        args = ARGS.get(
            name, {"service": SERVICE} if "service" in entry["args"]["required"] else {}
        )
        started = time.monotonic()
        found[name] = json.loads(
            _shell(environment, "run", name, "--args", json.dumps(args), "--json")
        )
        findings = [item["id"] for item in found[name]["findings"]]
        seconds = time.monotonic() - started
        line = f"{name:<18} {found[name]['status']:<12} {seconds:5.1f} s  {findings}"
        sys.stdout.write(f"{line}\n    {json.dumps(found[name])[:2000]}\n")
    return found


def test_machine_has_the_gpu_that_it_should_have(names: list[str]) -> None:
    assert names
    assert all(os.environ.get("RCA_GPU_NAME", "") in name for name in names), names
    assert not any("stand-in" in name.lower() for name in names)


def test_every_probe_answers_with_findings_of_its_own(
    results: dict[str, dict[str, Any]], catalogue: dict[str, dict[str, Any]]
) -> None:
    for name, result in results.items():
        assert "report this" not in str(result["error"]), (name, result["error"])
        wanted = {"unsupported"} if name in UNSUPPORTED else {"ok", "denied", "unsupported"}
        assert result["status"] in wanted, (name, result["status"], result["error"])
        assert {item["id"] for item in result["findings"]} <= set(catalogue[name]["findings"])
        assert "standin" not in result["data"]


@pytest.mark.parametrize("name", ["gpu_state", "gpu_errors", "gpu_link"])
def test_gpus_are_the_ones_that_the_driver_names(
    results: dict[str, dict[str, Any]], names: list[str], name: str
) -> None:
    result = results[name]
    assert result["status"] == "ok", result["error"]
    rows = [row.get("identity", row) for row in result["data"]["gpus"]]
    assert [row["name"] for row in rows] == names
    assert all(re.fullmatch(r"[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.0", row["pci"]) for row in rows)


def test_figures_are_such_as_a_card_can_have(results: dict[str, dict[str, Any]]) -> None:
    for row in results["gpu_state"]["data"]["gpus"]:
        assert 10 < row["temperature_celsius"] < 110
        assert 5 < row["power_watts"] < 2000
        assert 100 < row["sm_clock_mhz"] <= row["max_sm_clock_mhz"] < 5000
        assert 2**30 < row["memory_total_bytes"] < 2**40
        assert 0 <= row["utilization_ratio"] <= 1
        assert isinstance(row["throttle_reasons_raw"], int)
    first = results["gpu_state"]["data"]["gpus"][0]
    assert first["memory_used_bytes"] >= HELD_BYTES


def test_holder_of_the_memory_is_seen_or_said_to_be_out_of_sight(
    results: dict[str, dict[str, Any]],
) -> None:
    result = results["gpu_processes"]
    assert result["status"] == "ok", result["error"]
    if any(item["is_expected"] for item in result["data"]["processes"]):
        return
    # In a container without host process ids the driver's pids are not ours.
    assert any("not seen from here" in gap for gap in result["data"]["not_checked"])


def test_copy_to_the_gpu_runs_at_a_speed_of_this_decade(results: dict[str, dict[str, Any]]) -> None:
    result = results["h2d_bandwidth"]
    assert result["status"] == "ok", result["error"]
    assert 1 < result["data"]["pinned_gb_per_s"] < 1000
    assert result["data"]["pageable_gb_per_s"] > 0.1
