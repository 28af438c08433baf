"""What operators reported of GPU nodes, each as a whole: the node's state in, the right words and values out."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from bot.agent.runner import ChildRunner
from bot.agent.serve import probe_catalogue
from bot.agent.settings import AgentSettings, Limits
from bot.device.service import ServiceTarget
from bot.domain.finding import ProbeResult, ProbeStatus
from bot.probes.gpu_errors import gpu_errors
from bot.probes.gpu_processes import gpu_processes
from tests.device.standin_libraries import nvml_library
from tests.probes.stage import Tree, ids, look
from tests.probes.test_gpu_probes import card

PROBES = probe_catalogue()
GIB = 2**30
NODE = "gpu-1"


def _table(path: Path, *cards: dict[str, Any], **more: Any) -> str:
    table = {"driver": "560.35.03", "device_count": len(cards), "devices": list(cards)} | more
    path.write_text(json.dumps(table))
    return f"standin:{path}"


async def _ask(names: list[str], seconds: float = 10.0, **settings: Any) -> dict[str, ProbeResult]:
    """Several probes of one agent at the same time, each in its own process, as the bot asks for them."""
    runner = ChildRunner(
        AgentSettings(node=NODE, **settings), now=time.time, monotonic=time.monotonic
    )
    try:
        results = await asyncio.gather(*(runner.run(PROBES[name], {}, seconds) for name in names))
        return {result.probe: result for result in results}
    finally:
        await runner.close()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "proc")


async def test_one_of_four_lost_and_fields_that_fail_leave_everything_else(tmp_path: Path) -> None:
    fan = {"nvmlDeviceGetFanSpeed": {"raise": "NotSupported"}}
    hidden = {
        "nvmlDeviceGetUtilizationRates": {"raise": "Unknown"},
        "nvmlDeviceGetComputeRunningProcesses": {"raise": "NoPermission"},
        "nvmlDeviceGetPowerUsage": 71000,
    }
    nobody: dict[str, Any] = {"nvmlDeviceGetComputeRunningProcesses": []}
    library = _table(
        tmp_path / "gpus.json",
        card(0, **fan, **nobody, nvmlDeviceGetPowerUsage={"raise": "NotSupported"})
        | {"name": {"bytes": "NVIDIA H100 80GB HBM3"}},
        card(1, **fan, **nobody),
        {"index": 2, "handle": {"raise": "GpuIsLost"}},
        card(3, **fan, **hidden),
    )
    found = await _ask(["gpu_state", "gpu_processes"], nvml_library=library)
    state, users = found["gpu_state"], found["gpu_processes"]
    assert {state.status, users.status} == {ProbeStatus.OK}
    rows = json.loads(json.dumps(state.to_json()))["data"]["gpus"]
    assert [row["index"] for row in rows] == [0, 1, 2, 3]
    assert [row["index"] for row in rows if row["lost"]] == [2]
    assert state.findings[0].id == "gpu.lost"
    assert state.data["partial"] is True
    assert rows[0]["name"] == "NVIDIA H100 80GB HBM3"
    assert all(isinstance(row["name"], str) for row in rows if not row["lost"])
    assert rows[0]["power_watts"] == {"state": "not_supported", "detail": "NotSupported"}
    assert (rows[1]["power_watts"], rows[3]["power_watts"]) == (612.0, 71.0)
    assert rows[3]["utilization_ratio"]["state"] == "error"
    assert rows[2]["power_watts"]["state"] == "error"
    assert any("GPU 3" in gap and "NoPermission" in gap for gap in users.data["not_checked"])
    assert users.data["partial"] is True


async def test_native_library_that_crashes_takes_only_its_own_process_with_it(
    tmp_path: Path,
) -> None:
    library = nvml_library(tmp_path, all={"count": 2, "crash": {"nvmlDeviceGetMemoryInfo": 1}})
    found = await _ask(["gpu_state", "host_memory"], nvml_library=str(library.path))
    assert found["gpu_state"].status is ProbeStatus.ERROR
    assert "SIGSEGV" in str(found["gpu_state"].error)
    assert found["gpu_state"].findings == ()
    assert found["host_memory"].status is ProbeStatus.OK


async def test_slices_of_a_card_tell_memory_and_nothing_is_called_idle(tmp_path: Path) -> None:
    parent = card(
        nvmlDeviceGetMigMode=[1, 1],
        nvmlDeviceGetUtilizationRates={"raise": "NotSupported"},
        nvmlDeviceGetMemoryInfo={"raise": "NoPermission"},
        nvmlDeviceGetComputeRunningProcesses={"raise": "NotSupported"},
    )
    parent["mig"] = [
        {
            "gi": number,
            "uuid": f"MIG-{number}",
            "calls": {
                "nvmlDeviceGetMemoryInfo": {"return": {"total": 40 * GIB, "used": used, "free": 0}},
                "nvmlDeviceGetUtilizationRates": {"raise": "NotSupported"},
            },
        }
        for number, used in ((1, 30 * GIB), (2, GIB))
    ]
    library = _table(tmp_path / "gpus.json", parent)
    found = await _ask(["gpu_state", "gpu_processes"], nvml_library=library)
    text = json.dumps([result.to_json() for result in found.values()])
    assert "idle" not in text.lower()
    [row] = found["gpu_state"].data["gpus"]
    assert [(item["instance"], item["memory_used_bytes"]) for item in row["mig"]] == [
        (1, 30 * GIB),
        (2, GIB),
    ]
    assert row["utilization_ratio"]["state"] == "not_supported"
    # Who uses which slice is not known, and said so.
    assert found["gpu_processes"].findings == ()
    assert "not_supported" in found["gpu_processes"].data["not_checked"][0]


async def test_virtual_gpu_is_named_and_what_its_host_keeps_is_a_gap(tmp_path: Path) -> None:
    withheld = (
        "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetRemappedRows", "nvmlDeviceGetPcieReplayCounter",
    )  # fmt: skip
    guest = card(
        nvmlDeviceGetVirtualizationMode=2,
        **dict[str, Any]({name: {"raise": "NotSupported"} for name in withheld}),
    )
    library = _table(tmp_path / "gpus.json", guest)
    (tmp_path / "kmsg").write_text("[    1.0] hello\n")
    found = await _ask(
        ["gpu_state", "gpu_errors", "gpu_link"],
        nvml_library=library,
        kernel_log=tmp_path / "kmsg",
    )
    assert {result.status for result in found.values()} == {ProbeStatus.OK}
    state = found["gpu_state"]
    assert state.findings == ()
    assert state.data["gpus"][0]["virtualization"] == "vgpu"
    assert state.data["gpus"][0]["utilization_ratio"] == 0.9
    [gap] = state.data["not_checked"]
    assert "throttle reasons: not_supported" in gap
    assert "its host can tell" in gap
    assert [item.id for item in found["gpu_errors"].findings] == ["gpu.errors_clean"]
    assert found["gpu_link"].findings == ()


async def test_library_newer_than_the_module_says_so_and_the_host_probes_still_answer(
    tmp_path: Path,
) -> None:
    proc = Tree(tmp_path / "proc")
    proc.write(
        "driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30 17:44:08 UTC 2024\n"
        "GCC version:  gcc version 12.3.0\n",
    )
    history = tmp_path / "history.log"
    history.write_text(
        "\nStart-Date: 2026-03-10  06:50:54\nCommandline: /usr/bin/unattended-upgrade\n"
        "Upgrade: libnvidia-compute-550:amd64 (550.144.03-0ubuntu1, 550.163.01-0ubuntu1)\n"
        "End-Date: 2026-03-10  06:51:40\n"
    )
    (tmp_path / "kmsg").write_text("[    1.0] hello\n")
    library = _table(tmp_path / "gpus.json", init={"raise": "LibRmVersionMismatch"})
    gpu = [name for name in PROBES if name.startswith("gpu_") and name != "gpu_allocator"]
    host = ["host_memory", "kernel_log"]
    found = await _ask(
        [*gpu, *host],
        nvml_library=library,
        proc_root=proc.root,
        package_log=history,
        kernel_log=tmp_path / "kmsg",
    )
    for name in gpu:
        assert found[name].status is ProbeStatus.ERROR
        assert found[name].findings == ()
        for words in (
            "user-space library 550.163.01", "loaded kernel module 550.144.03",
            "unattended upgrade at 2026-03-10T06:50:54", "running processes go on",
            "new GPU processes fail", "drain and reboot", "reload the module",
        ):  # fmt: skip
            assert words in str(found[name].error), (name, words)
        assert "down" not in str(found[name].error)
    assert {found[name].status for name in host} == {ProbeStatus.OK}


async def test_call_that_hangs_on_one_of_eight_costs_that_one_and_never_piles_up(
    tmp_path: Path,
) -> None:
    slow = {"nvmlDeviceGetMemoryInfo": {"block_s": 720, "return": None}}
    library = _table(
        tmp_path / "gpus.json", *(card(index, **(slow if index == 5 else {})) for index in range(8))
    )
    runner = ChildRunner(
        AgentSettings(node=NODE, nvml_library=library, limits=Limits(grace_seconds=0.2)),
        now=time.time,
        monotonic=time.monotonic,
    )
    try:
        for _ in range(2):
            state = asyncio.create_task(runner.run(PROBES["gpu_state"], {}, 10.0))
            memory = await runner.run(PROBES["host_memory"], {}, 5.0)
            assert (memory.status, state.done()) == (ProbeStatus.OK, False)
            result = await state
            assert result.status is ProbeStatus.OK
            rows = result.data["gpus"]
            assert [row["index"] for row in rows if row["skipped"] is None] == [0, 1, 2, 3, 4, 6, 7]
            [gap] = [text for text in result.data["not_checked"] if text.startswith("GPU 5")]
            assert "NVML call blocked over" in gap
            assert "the driver's lock is taken" in gap
            assert "large pinned host allocations" in gap
            assert len(runner.hung) <= 1
    finally:
        await runner.close()


LOG = """
[99700.0] NVRM: Xid (PCI:0000:10:00): 31, pid=41001, name=python3, Ch 00000016, intr 1. MMU Fault
[99700.2] NVRM: Xid (PCI:0000:10:00): 31, pid=41001, name=python3, Ch 00000017, intr 1. MMU Fault
[99800.0] NVRM: Xid (PCI:0000:10:00): 31, pid=41001, name=python3, Ch 00000018, intr 1. MMU Fault
[50000.0] NVRM: Xid (PCI:0000:11:00): 63, pid='<unknown>', name=<unknown>, Row Remapper
[99900.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 41
[99950.0] myapp: retrying after Xid-like text: 79, not from the driver
""".strip()


def _errors(tree: Tree, log: str, *cards: dict[str, Any]) -> Any:
    tree.write("kmsg", log + "\n")
    library = _table(tree.root / "gpus.json", *cards)
    context = tree.context(nvml_library=library, kernel_log=tree.root / "kmsg")
    return look(gpu_errors, context)


def _healthy(index: int) -> dict[str, Any]:
    return card(index, nvmlDeviceGetTotalEccErrors=0, nvmlDeviceGetRemappedRows=[0, 0, 0, 0])


def test_codes_of_the_log_are_counted_dated_and_classified_by_every_source(tree: Tree) -> None:
    reading = _errors(tree, LOG, _healthy(0), _healthy(1))
    assert [(item.id, item.value) for item in reading.findings] == [
        ("gpu.xid", 31), ("gpu.xid", 63), ("gpu.xid", 12028),
    ]  # fmt: skip
    mmu, remap, switch = (item.summary for item in reading.findings)
    for words in ("Xid 31 on 0000:10:00", "2 times", "200 s old", "pid 41001 python3"):
        assert words in mmu
    assert "13.9 h ago" in remap
    assert "NVSwitch SXid 12028" in switch
    data = reading.wire_data()
    assert [(item["code"], item["count"]) for item in data["repeats"]] == [
        (31, 2), (63, 1), (12028, 1),
    ]  # fmt: skip
    event = next(item for item in data["events"] if item["code"] == 63)
    assert {item["source"] for item in event["classification"]} == {
        "nvidia-catalog", "gpud", "azurehpc", "k8s-device-plugin",
    }  # fmt: skip
    assert all(item["catalog_version"] for item in event["classification"])
    assert data["lost_without_xid"] is False


LOSSES = {
    "line-without-code": (
        "[9.0] NVRM: GPU at PCI:0000:11:00 has fallen off the bus.",
        "0000:11:00",
    ),
    "nothing-in-the-log": ("[9.0] hello", "GPU 1 lost without an Xid"),
    "only-another-card-tells": (
        "[9.0] NVRM: Xid (PCI:0000:10:00): 31, pid=1, name=a",
        "GPU 1 lost",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_card_that_is_gone_without_a_code_is_a_finding_of_its_own(tree: Tree, name: str) -> None:
    log, words = LOSSES[name]
    gone = {"index": 1, "handle": {"raise": "GpuIsLost"}}
    reading = _errors(tree, log, _healthy(0), gone)
    found = [item for item in reading.findings if item.id == "gpu.lost"]
    assert any(words in item.summary for item in found)
    assert all("without an Xid" in item.summary for item in found)
    assert reading.wire_data()["lost_without_xid"] is True


def test_card_whose_loss_the_log_explains_is_told_by_its_code_alone(tree: Tree) -> None:
    log = "[9.0] NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen"
    reading = _errors(tree, log, _healthy(0), {"index": 1, "handle": {"raise": "GpuIsLost"}})
    assert [(item.id, item.value) for item in reading.findings] == [("gpu.xid", 79)]
    assert reading.wire_data()["lost_without_xid"] is False


def test_process_that_holds_a_lost_card_leaves_the_users_of_the_others(tree: Tree) -> None:
    tree.write("41001/stat", "41001 (python3) S 1 " + "0 " * 45)
    tree.write("41001/cmdline", "python3\0serve\0")
    entry = {"pid": 41001, "usedGpuMemory": 8 * GIB}
    library = _table(
        tree.root / "gpus.json",
        card(0, nvmlDeviceGetComputeRunningProcesses=[entry]),
        {"index": 1, "handle": {"raise": "GpuIsLost"}},
    )
    services = {"svc": ServiceTarget(name="svc", cmdline="*serve*")}
    reading = look(gpu_processes, tree.context(nvml_library=library, services=services))
    assert ids(reading) == []
    assert reading.wire_data()["processes"][0]["is_expected"] is True
    assert "GPU 1" in reading.not_checked[0]
