"""The unmodified NVML binding over a C library that is told by a file: each way to be unwell has its own outcome."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bot.agent.runner import ChildRunner
from bot.agent.serve import probe_catalogue
from bot.agent.settings import AgentSettings, Limits
from bot.device.service import ServiceTarget
from bot.domain.finding import ProbeResult, ProbeStatus
from tests.device.standin_libraries import StandinLibrary, nvml_library

PROBES = probe_catalogue()


@pytest.fixture
def library(tmp_path: Path) -> StandinLibrary:
    return nvml_library(tmp_path, all={"count": 8})


async def _look(
    library: StandinLibrary, name: str = "gpu_state", seconds: float = 10.0, **settings: Any
) -> ProbeResult:
    runner = ChildRunner(
        AgentSettings(node="n", nvml_library=str(library.path), **settings),
        now=time.time,
        monotonic=time.monotonic,
    )
    try:
        return await runner.run(PROBES[name], {}, seconds)
    finally:
        await runner.close()


def _ids(result: ProbeResult) -> list[str]:
    return [finding.id for finding in result.findings]


def _rows(result: ProbeResult) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result.data["gpus"]
    return rows


async def test_eight_cards_are_read_through_the_library_and_not_through_anything_else(
    library: StandinLibrary,
) -> None:
    result = await _look(library)
    assert _ids(result) == ["gpu.ok"]
    assert [row["name"] for row in _rows(result)] == ["Stand-in H200"] * 8
    assert [row["pci"][9:11] for row in _rows(result)] == [
        "10",
        "11",
        "12",
        "13",
        "14",
        "15",
        "16",
        "17",
    ]
    assert (
        "standin" not in result.data
    )  # a library is no table: what it says is what the driver says


@pytest.mark.parametrize(
    ("gpu", "finding"),
    [
        ({"field_per_s": {"270": 5e8}, "reasons": 0x48}, "gpu.throttle_thermal"),
        ({"field_per_s": {"271": 5e8}, "reasons": 0x88}, "gpu.throttle_power_brake"),
        ({"celsius": 90}, "gpu.temperature_high"),
        ({"memory_used": 150_000_000_000}, "gpu.memory_nearly_full"),
        ({"sm_mhz": 300}, "gpu.clock_below_expected"),
    ],
    ids=["thermal", "power-brake", "hot", "memory-full", "slow-clock"],
)
async def test_one_card_that_is_unwell_is_found_and_named(
    library: StandinLibrary, gpu: dict[str, Any], finding: str
) -> None:
    library.tell(all={"count": 8}, gpus={"5": gpu})
    result = await _look(library)
    assert finding in _ids(result)
    assert "gpu.ok" not in _ids(result)
    assert all("5" in item.summary for item in result.findings)


@pytest.mark.parametrize(
    ("gpu", "finding"),
    [
        ({"ecc_uncorrected": 3}, "gpu.ecc_uncorrected"),
        ({"remap_failed": 1}, "gpu.row_remap_failed"),
        ({"remap_pending": 1}, "gpu.row_remap_pending"),
    ],
    ids=["ecc", "remap-failed", "remap-pending"],
)
async def test_memory_errors_are_found(
    library: StandinLibrary, tmp_path: Path, gpu: dict[str, Any], finding: str
) -> None:
    log = tmp_path / "kmsg"
    log.write_text("[    1.0] hello\n")
    library.tell(all={"count": 8}, gpus={"2": gpu})
    assert finding in _ids(await _look(library, "gpu_errors", kernel_log=log))


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ({"celsius": 644_245_094}, "temperature_celsius"),
        ({"power_mw": 4_294_967_295}, "power_watts"),
        ({"utilization": 4_294_967_295}, "utilization_ratio"),
        ({"memory_used": 18_446_744_073_709_551_615}, "memory_used_bytes"),
        ({"sm_mhz": 4_294_967_295}, "sm_clock_mhz"),
    ],
    ids=["heat", "power", "utilization", "memory", "clock"],
)
async def test_sentinel_of_the_driver_is_insane_and_never_a_number(
    library: StandinLibrary, gpu: dict[str, Any], name: str
) -> None:
    library.tell(all={"count": 8}, gpus={"0": gpu})
    result = await _look(library)
    assert _rows(result)[0][name]["state"] == "insane"
    assert isinstance(_rows(result)[1][name], float)
    assert "gpu.ok" not in _ids(result)


async def test_counter_that_the_driver_leaves_out_is_an_error_and_no_zero(
    library: StandinLibrary,
) -> None:
    library.tell(all={"count": 2}, gpus={"1": {"field": {"270": -1}}})
    result = await _look(library)
    ratios = [row["throttled_ratio"] for row in _rows(result)]
    # The card read before it answered all three: nothing of its answer may stand in the place of the missing one.
    assert isinstance(ratios[0]["hw_thermal"], float)
    assert ratios[1]["hw_thermal"]["state"] == "error"
    assert isinstance(ratios[1]["sw_thermal"], float)
    assert "gpu.ok" not in _ids(result)


async def test_lost_card_is_found_and_the_seven_others_are_read(library: StandinLibrary) -> None:
    library.tell(all={"count": 8}, gpus={"3": {"code": {"nvmlDeviceGetHandleByIndex_v2": 15}}})
    result = await _look(library)
    assert _ids(result) == ["gpu.lost"]
    assert [row["index"] for row in _rows(result) if row["lost"] is None] == [0, 1, 2, 4, 5, 6, 7]


async def test_hanging_card_costs_one_child_and_leaves_the_others(library: StandinLibrary) -> None:
    library.tell(all={"count": 8}, gpus={"5": {"hang_s": {"nvmlDeviceGetMemoryInfo": 600}}})
    result = await _look(library, limits=Limits(grace_seconds=0.2))
    assert result.status is ProbeStatus.OK
    assert [row["index"] for row in _rows(result) if row["skipped"] is None] == [
        0,
        1,
        2,
        3,
        4,
        6,
        7,
    ]
    assert any("GPU 5: NVML call blocked" in gap for gap in result.data["not_checked"])
    # Every field of the one that hangs is one that ran out of time, the counters too.
    hung = _rows(result)[5]
    assert {field["state"] for field in hung["throttled_ratio"].values()} == {"timeout"}
    assert hung["sm_clock_mhz"]["state"] == hung["memory_used_bytes"]["state"] == "timeout"


async def test_driver_that_hangs_as_a_whole_is_answered_at_the_deadline(
    library: StandinLibrary,
) -> None:
    library.tell(all={"hang_s": {"nvmlDeviceGetCount_v2": 600}})
    result = await _look(library, seconds=1.0, limits=Limits(grace_seconds=0.2))
    assert (result.status, result.findings) == (ProbeStatus.TIMEOUT, ())
    assert result.duration_seconds >= 1.0
    assert result.data["child"]["at"] == "init"


async def test_symbol_that_an_old_driver_lacks_is_asked_for_by_its_old_name(tmp_path: Path) -> None:
    old = nvml_library(tmp_path, is_old=True, all={"count": 1, "reasons": 4})
    result = await _look(old)
    assert _rows(result)[0]["throttle_reasons"] == ["sw_power_cap"]


async def test_slices_are_told_one_by_one(library: StandinLibrary) -> None:
    library.tell(all={"count": 2}, gpus={"1": {"mig": 2}})
    rows = _rows(await _look(library))
    assert [item["instance"] for item in rows[1]["mig"]] == [3, 4]
    assert {item["memory_total_bytes"] for item in rows[1]["mig"]} == {17 * 2**30}
    assert "mig" not in rows[0]


async def test_consumer_card_without_ecc_and_remapping_is_no_fault(
    library: StandinLibrary, tmp_path: Path
) -> None:
    log = tmp_path / "kmsg"
    log.write_text("[    1.0] hello\n")
    missing = {"nvmlDeviceGetTotalEccErrors": 3, "nvmlDeviceGetRemappedRows": 3}
    library.tell(all={"count": 1, "code": missing})
    assert _ids(await _look(library, "gpu_errors", kernel_log=log)) == ["gpu.errors_clean"]


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        (18, ProbeStatus.ERROR, "version"),
        (9, ProbeStatus.UNSUPPORTED, "no NVIDIA driver"),
        (4, ProbeStatus.DENIED, "permission"),
        (999, ProbeStatus.ERROR, "Unknown"),
    ],
    ids=["mismatch", "no-driver", "no-permission", "unknown"],
)
async def test_driver_that_does_not_start_says_why(
    library: StandinLibrary, code: int, status: ProbeStatus, words: str
) -> None:
    library.tell(all={"code": {"nvmlInit": code}})
    result = await _look(library)
    assert result.status is status, result.error
    assert words.lower() in str(result.error).lower()
    assert result.findings == ()


async def test_process_on_the_gpu_is_the_services_or_a_stranger(library: StandinLibrary) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        pidfile = library.path.with_name("svc.pid")
        pidfile.write_text(str(process.pid))
        # As on a host: whether this machine's first process is one is not what is asked.
        host = library.path.with_name("proc")
        host.mkdir()
        for name in ("stat", "uptime", str(os.getpid()), str(process.pid)):
            (host / name).symlink_to(f"/proc/{name}")
        services = {"svc": ServiceTarget(name="svc", pidfile=pidfile)}
        library.tell(all={"count": 1, "pid": os.getpid()})
        stranger = await _look(library, "gpu_processes", services=services, proc_root=host)
        library.tell(all={"count": 1, "pid": process.pid})
        expected = await _look(library, "gpu_processes", services=services, proc_root=host)
        process.kill()
    assert _ids(stranger) == ["gpu.foreign_process"]
    assert _ids(expected) == ["gpu.processes_expected"]


async def test_process_that_ended_between_listing_and_reading_is_no_crash(
    library: StandinLibrary,
) -> None:
    library.tell(
        all={"count": 1, "pid": 4_100_000}
    )  # above the highest pid of this kernel's default
    result = await _look(library, "gpu_processes")
    assert result.status is ProbeStatus.OK


async def _look_while(library: StandinLibrary, probe: str, change: dict[str, Any]) -> ProbeResult:
    """A run whose table is replaced while it waits between its samples."""
    runner = ChildRunner(
        AgentSettings(node="n", nvml_library=str(library.path)),
        now=time.time,
        monotonic=time.monotonic,
    )
    run = asyncio.create_task(runner.run(PROBES[probe], {}, 30.0))
    deadline = time.monotonic() + 30
    while not any(child.mark == "window" for child in runner._children):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    library.tell(**change)
    result = await run
    await runner.close()
    return result


async def test_table_is_read_again_while_the_library_is_loaded(library: StandinLibrary) -> None:
    """A card that gets lost between the two samples of one run."""
    gone = {"0": {"code": {"nvmlDeviceGetFieldValues": 15}}}
    result = await _look_while(library, "gpu_state", {"all": {"count": 8}, "gpus": gone})
    assert "gpu.lost" in _ids(result)


async def test_card_that_was_idle_at_one_look_is_not_judged_by_its_generation(
    library: StandinLibrary,
) -> None:
    """It may just be going down to Gen1: only a card that was loaded at every look is judged."""
    low = {"count": 1, "pcie_generation": 1}
    library.tell(all=low)
    assert _ids(await _look(library, "gpu_link")) == ["gpu.pcie_gen_degraded"]
    result = await _look_while(library, "gpu_link", {"all": {**low, "utilization": 0}})
    assert _ids(result) == []
    assert "looks only at Gen1" in result.data["not_checked"][0]
