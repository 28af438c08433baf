"""What a driver can answer that is no answer: marks for "not told", another type, another shape, another error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.device.service import ServiceTarget
from bot.domain.finding import FindingSeverity
from bot.errors import ProbeError
from bot.probe import Probe, ProbeContext, Reading
from bot.probes.gpu_errors import gpu_errors
from bot.probes.gpu_link import gpu_link
from bot.probes.gpu_processes import gpu_processes
from bot.probes.gpu_state import gpu_state
from tests.probes.stage import Tree, ids, look
from tests.probes.test_gpu_probes import GIB, _context, card

GARBAGE = [
    None, True, "612000", "", [], {}, [1, 2], -7, 1e300, 0x7FFFFFF2, 4294967295,
    9223372036854775794, 9223372036854776000, 18446744073709551615, {"bytes": "612000"},
    {"bytes_hex": "ff00"},
]  # fmt: skip
# What each probe needs for its clean verdict.
NEEDED: dict[str, tuple[Probe, tuple[str, ...]]] = {
    "gpu_state": (
        gpu_state,
        (
            "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature",
            "nvmlDeviceGetTemperatureThreshold", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetClockInfo",
            "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetMigMode",
        ),
    ),
    "gpu_errors": (gpu_errors, ("nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetRemappedRows")),
    "gpu_link": (
        gpu_link,
        (
            "nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkWidth",
            "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkGeneration",
            "nvmlDeviceGetPcieReplayCounter", "nvmlDeviceGetNvLinkErrorCounter",
        ),
    ),
    "gpu_processes": (gpu_processes, ("nvmlDeviceGetComputeRunningProcesses",)),
}  # fmt: skip
CALLS = [(name, call) for name, (_, calls) in NEEDED.items() for call in calls]
# Nobody uses the card; a cold one; a mode that is on.
MEANS_SOMETHING = {
    ("nvmlDeviceGetComputeRunningProcesses", "[]"),
    ("nvmlDeviceGetTemperature", "-7"),
    ("nvmlDeviceGetMigMode", "[1, 2]"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "proc")
    tree.write("kmsg", "[    1.0] hello\n")
    return tree


def _look(tree: Tree, probe: Probe, call: str, answer: Any) -> Reading | None:
    well: dict[str, Any] = {
        "nvmlDeviceGetTotalEccErrors": 0,
        "nvmlDeviceGetRemappedRows": [0, 0, 0, 0],
        "nvmlDeviceGetNvLinkErrorCounter": 0,
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetComputeRunningProcesses": [],
    }
    device = card(**(well | {call: answer}))
    if call == "nvmlDeviceGetTemperatureThreshold":
        del device["calls"]["nvmlDeviceGetTemperatureThreshold:1"]
    context = _context(tree, device)
    try:
        return look(probe, _with_log(tree, context))
    except ProbeError:
        return None


def _with_log(tree: Tree, context: ProbeContext) -> ProbeContext:
    return tree.context(
        nvml_library=context.nvml_library,
        package_log=context.package_log,
        kernel_log=tree.root / "kmsg",
    )


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[f"{a}-{b[10:]}" for a, b in CALLS])
def test_answer_that_is_none_is_neither_a_fault_nor_a_clean_bill(
    tree: Tree, name: str, call: str
) -> None:
    probe = NEEDED[name][0]
    assert _look(tree, probe, "nvmlDeviceGetFanSpeed", {"raise": "NotSupported"}) is not None
    for value in GARBAGE:
        if (call, json.dumps(value)) in MEANS_SOMETHING:
            continue
        reading = _look(tree, probe, call, {"return": value})
        assert reading is not None, (value, "the other fields are lost with it")
        assert ids(reading) == [], (value, ids(reading))
        assert reading.not_checked, value
        json.dumps(reading.wire_data())


@pytest.mark.parametrize(
    "error", ["NoPermission", "Unknown", "Timeout", "NoData", "InUse", "NotReady"]
)
@pytest.mark.parametrize(("name", "call"), CALLS, ids=[f"{a}-{b[10:]}" for a, b in CALLS])
def test_call_that_fails_is_a_gap_with_its_reason(
    tree: Tree, name: str, call: str, error: str
) -> None:
    reading = _look(tree, NEEDED[name][0], call, {"raise": error})
    assert reading is not None
    assert ids(reading) == []
    assert reading.not_checked


@pytest.mark.parametrize("name", sorted(NEEDED))
@pytest.mark.parametrize("error", ["NoPermission", "Unknown", "InvalidArgument"])
def test_card_that_cannot_be_opened_is_not_called_lost(tree: Tree, name: str, error: str) -> None:
    closed = card(1) | {"handle": {"raise": error}}
    context = _with_log(tree, _context(tree, card(0), closed))
    reading = look(NEEDED[name][0], context)
    assert not [item for item in reading.findings if item.severity is not FindingSeverity.INFO]
    assert not any(item.id.endswith(("ok", "_clean", "_expected")) for item in reading.findings)
    assert any("GPU 1" in gap and error in gap for gap in reading.not_checked)


def test_names_in_bytes_or_missing_are_text_in_the_result(tree: Tree) -> None:
    raw = {"bytes": "GPU-1f0c2a77"}
    odd = card(0) | {
        "name": {"bytes_hex": "4e56ff"},
        "uuid": raw,
        "pci": {"bytes": "00000000:3B:00.0"},
    }
    bare = card(1)
    del bare["name"], bare["uuid"], bare["pci"]
    rows = json.loads(json.dumps(look(gpu_state, _context(tree, odd, bare)).wire_data()))["gpus"]
    assert rows[0]["name"].startswith("NV")
    assert (rows[0]["uuid"], rows[0]["pci"]) == ("GPU-1f0c2a77", "00000000:3b:00.0")
    assert rows[1]["name"]["state"] == "not_supported"


def test_mig_devices_that_cannot_be_opened_are_a_gap(tree: Tree) -> None:
    closed = {"gi": 1, "uuid": "MIG-1", "calls": {}, "handle": {"raise": "NoPermission"}}
    parent = card(nvmlDeviceGetMigMode=[1, 1]) | {"mig": [closed]}
    reading = look(gpu_state, _context(tree, parent))
    assert ids(reading) == []
    assert any("MIG devices" in gap and "NoPermission" in gap for gap in reading.not_checked)
    missing = parent | {"mig": [closed | {"handle": {"raise": "NotFound"}}]}
    assert ids(look(gpu_state, _context(tree, missing))) == ["gpu.ok"]


def test_stranger_whose_memory_is_not_told_is_not_called_expected(tree: Tree) -> None:
    tree.write("41001/stat", "41001 (python3) S 1 " + "0 " * 45)
    for used in (None, 18446744073709551615):
        entry = {"pid": 41001, "usedGpuMemory": used}
        context = _context(tree, card(nvmlDeviceGetComputeRunningProcesses=[entry]))
        services = {"svc": ServiceTarget(name="svc", cmdline="nothing")}
        context = tree.context(nvml_library=context.nvml_library, services=services)
        reading = look(gpu_processes, context)
        assert ids(reading) == []
        assert "41001" in reading.not_checked[0]


def test_memory_in_use_without_any_process_is_not_called_expected(tree: Tree) -> None:
    for used, found in ((GIB // 2, ["gpu.processes_expected"]), (60 * GIB, [])):
        memory = {"total": 80 * GIB, "used": used, "free": 80 * GIB - used}
        quiet = card(nvmlDeviceGetComputeRunningProcesses=[], nvmlDeviceGetMemoryInfo=memory)
        reading = look(gpu_processes, _context(tree, quiet))
        assert ids(reading) == found
    assert "60.0 GiB are used and no process is listed" in reading.not_checked[0]
