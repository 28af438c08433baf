"""GPU probes through the stand-in: each fault and each way of not being told has its own outcome."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from bot.domain.finding import FindingSeverity
from bot.errors import ProbeError, Reason
from bot.probe import ProbeContext, Reading
from bot.probes.gpu_link import gpu_link
from bot.probes.gpu_state import gpu_state
from tests.probes.stage import Tree, ids, look, severity

GIB = 2**30
NOT_SUPPORTED = {"raise": "NotSupported"}


def card(index: int = 0, **calls: Any) -> dict[str, Any]:
    """A loaded card that is well; `calls` replace answers, a plain value is what the call returns."""
    answers: dict[str, Any] = {
        "nvmlDeviceGetMemoryInfo": {"total": 80 * GIB, "used": 8 * GIB, "free": 72 * GIB},
        "nvmlDeviceGetUtilizationRates": {"gpu": 90, "memory": 40},
        "nvmlDeviceGetTemperature": 60,
        "nvmlDeviceGetTemperatureThreshold:1": 90,
        "nvmlDeviceGetPowerUsage": 612000,
        "nvmlDeviceGetEnforcedPowerLimit": 700000,
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetMaxClockInfo": 1980,
        "nvmlDeviceGetCurrentClocksEventReasons": 0,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetPcieReplayCounter": 7,
    } | calls
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "pci": f"00000000:{16 + index:02X}:00.0",
        "name": "Test Card",
        "calls": {
            name: value
            if isinstance(value, dict) and value.keys() & {"raise", "return", "block_s", "per_s"}
            else {"return": value}
            for name, value in answers.items()
        },
    }


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "proc")


def _context(tree: Tree, *cards: dict[str, Any], **more: Any) -> ProbeContext:
    path = tree.root / "gpus.json"
    path.write_text(json.dumps({"driver": "580.00", "devices": list(cards)} | more))
    return tree.context(nvml_library=f"standin:{path}", package_log=tree.root / "history.log")


def _state(tree: Tree, *cards: dict[str, Any], **more: Any) -> Reading:
    return look(gpu_state, _context(tree, *cards, **more))


def test_card_that_is_well_is_clean_and_labelled(tree: Tree) -> None:
    reading = _state(tree, card())
    assert ids(reading) == ["gpu.ok"]
    row = reading.wire_data()["gpus"][0]
    assert (row["name"], row["power_watts"], row["utilization_ratio"]) == ("Test Card", 612.0, 0.9)
    assert reading.wire_data()["standin"] is True
    assert reading.findings[0].summary.startswith("stand-in")


# What the bit mask says, with the clock, and what it must be called.
MASKS = {
    "idle-and-power-cap": (0x5, 1980, [("gpu.power_cap", "info"), ("gpu.ok", "info")]),
    "power-cap-near-usual-clock": (0x4, 1930, [("gpu.power_cap", "info"), ("gpu.ok", "info")]),
    "power-cap-far-below": (0x4, 1200, [("gpu.power_cap", "warning")]),
    "software-thermal": (0x20, 1400, [("gpu.throttle_thermal", "warning")]),
    "hardware-thermal": (0x48, 990, [("gpu.throttle_thermal", "critical")]),
    "power-brake": (0x88, 660, [("gpu.throttle_power_brake", "critical")]),
    "slowdown-without-reason": (0x8, 660, [("gpu.clock_below_expected", "critical")]),
    "low-clock-without-reason": (0x0, 660, [("gpu.clock_below_expected", "critical")]),
    "application-clocks": (0x2, 1980, [("gpu.ok", "info")]),
}


@pytest.mark.parametrize("name", MASKS)
def test_throttle_bits_are_read_one_by_one(tree: Tree, name: str) -> None:
    mask, clock, expected = MASKS[name]
    reading = _state(
        tree,
        card(nvmlDeviceGetCurrentClocksEventReasons=mask, nvmlDeviceGetClockInfo=clock),
    )
    assert [(item.id, item.severity.value) for item in reading.findings] == expected
    assert reading.wire_data()["gpus"][0]["throttle_reasons_raw"] == mask


def test_low_clock_of_an_idle_card_is_no_fault(tree: Tree) -> None:
    idle = card(
        nvmlDeviceGetClockInfo=345,
        nvmlDeviceGetUtilizationRates={"gpu": 0, "memory": 0},
        nvmlDeviceGetCurrentClocksEventReasons=1,
    )
    assert ids(_state(tree, idle)) == ["gpu.ok"]


def test_throttling_between_two_bit_masks_shows_in_the_counters(tree: Tree) -> None:
    # The stand-in's counter runs on the wall clock: two seconds of throttling in each.
    counters = {"269": 0, "270": {"return": 0, "per_s": 2 * 10**9}, "271": 0}
    tree.during = lambda: time.sleep(0.1)
    reading = _state(tree, card(nvmlDeviceGetFieldValues={"return": counters}))
    assert ids(reading) == ["gpu.throttle_thermal"]
    ratios = reading.wire_data()["gpus"][0]["throttled_ratio"]
    assert ratios["hw_thermal"] > 0.19
    assert (ratios["hw_power_brake"], ratios["sw_thermal"]) == (0, 0)


def test_driver_that_knows_only_the_older_name_still_tells_its_reasons(tree: Tree) -> None:
    old = card(
        nvmlDeviceGetCurrentClocksEventReasons={"raise": "FunctionNotFound"},
        nvmlDeviceGetCurrentClocksThrottleReasons=0x80,
        nvmlDeviceGetClockInfo=600,
    )
    assert ids(_state(tree, old)) == ["gpu.throttle_power_brake"]


def test_card_that_does_not_tell_its_reasons_is_not_called_well(tree: Tree) -> None:
    reading = _state(tree, card(nvmlDeviceGetCurrentClocksEventReasons=NOT_SUPPORTED))
    assert ids(reading) == []
    assert "throttle reasons" in reading.not_checked[0]


def test_heat_is_judged_by_the_cards_own_thresholds(tree: Tree) -> None:
    hot = _state(tree, card(nvmlDeviceGetTemperature=86))
    assert ids(hot) == ["gpu.temperature_high"]
    assert "slowdown at 90 C" in hot.findings[0].summary
    unknown = card(nvmlDeviceGetTemperature=86)
    del unknown["calls"]["nvmlDeviceGetTemperatureThreshold:1"]
    reading = _state(tree, unknown)
    assert ids(reading) == ["gpu.ok"]  # no threshold means not judged, never zero
    assert "temperature" not in reading.findings[0].summary


def test_card_that_tells_only_its_margin_is_judged_by_that(tree: Tree) -> None:
    def state(margin: int) -> Reading:
        told = card(nvmlDeviceGetMarginTemperature=margin)
        del told["calls"]["nvmlDeviceGetTemperatureThreshold:1"]
        return _state(tree, told)

    assert "temperature" in state(12).findings[0].summary
    assert ids(state(12)) == ["gpu.ok"]
    hot = state(0)
    assert ids(hot) == ["gpu.temperature_high"]
    assert (hot.findings[0].value, hot.findings[0].threshold) == (0, 0)
    assert hot.wire_data()["gpus"][0]["margin_celsius"] == 0


def test_memory_of_the_card_has_a_temperature_of_its_own(tree: Tree) -> None:
    def state(celsius: int) -> Reading:
        return _state(
            tree,
            card(
                nvmlDeviceGetFieldValues={"return": {"82": celsius}},
                **{"nvmlDeviceGetTemperatureThreshold:2": 95},
            ),
        )

    assert ids(state(90)) == ["gpu.ok"]
    hot = state(97)
    assert ids(hot) == ["gpu.temperature_high"]
    assert "memory at 97 C" in hot.findings[0].summary
    insane = state(644_000_000)
    assert ids(insane) == []
    assert "memory temperature: insane" in insane.not_checked[0]


@pytest.mark.parametrize(
    ("mask", "words"), [(0x2, "application_clocks"), (0x10, "sync_boost"), (0x12, "sync_boost")]
)
def test_low_clock_that_a_setting_explains_names_it(tree: Tree, mask: int, words: str) -> None:
    reading = _state(
        tree, card(nvmlDeviceGetCurrentClocksEventReasons=mask, nvmlDeviceGetClockInfo=660)
    )
    assert ids(reading) == ["gpu.clock_below_expected"]
    assert words in reading.findings[0].summary
    assert "no throttle reason" not in reading.findings[0].summary


SENTINELS = {
    "temperature-of-millions": ("nvmlDeviceGetTemperature", 644_000_000),
    "blank-utilization": ("nvmlDeviceGetUtilizationRates", {"gpu": 4294967295, "memory": 0}),
    "blank-clock": ("nvmlDeviceGetClockInfo", 9223372036854775794),
    "used-above-total": (
        "nvmlDeviceGetMemoryInfo",
        {"total": 80 * GIB, "used": 9223372036854775794, "free": 0},
    ),
}


@pytest.mark.parametrize("name", SENTINELS)
def test_garbage_number_is_insane_and_never_judged(tree: Tree, name: str) -> None:
    call, value = SENTINELS[name]
    reading = _state(tree, card(**{call: value}))
    assert ids(reading) == []
    assert any("insane" in gap for gap in reading.not_checked)
    assert "insane" in json.dumps(reading.wire_data())


def test_one_lost_card_leaves_the_others_and_is_the_first_finding(tree: Tree) -> None:
    lost = card(2) | {"handle": {"raise": "GpuIsLost"}}
    named = card(0, nvmlDeviceGetPowerUsage=NOT_SUPPORTED) | {"name": {"bytes": "Test Card"}}
    unknown = card(
        3,
        nvmlDeviceGetUtilizationRates={"raise": "Unknown"},
        nvmlDeviceGetMemoryInfo={"total": 80 * GIB, "used": 79 * GIB, "free": GIB},
    )
    reading = _state(tree, named, card(1), lost, unknown)
    data = json.loads(json.dumps(reading.wire_data()))
    assert ids(reading)[0] == "gpu.lost"
    assert severity(reading, "gpu.lost") is FindingSeverity.CRITICAL
    assert "gpu.ok" not in ids(reading)
    assert data["partial"] is True
    assert [row["name"] for row in data["gpus"] if row["lost"] is None] == ["Test Card"] * 3
    assert data["gpus"][0]["power_watts"] == {"state": "not_supported", "detail": "NotSupported"}
    assert data["gpus"][3]["utilization_ratio"]["state"] == "error"
    assert data["gpus"][1]["power_watts"] == 612.0


def test_card_lost_in_the_middle_of_the_reading_is_lost(tree: Tree) -> None:
    assert "gpu.lost" in ids(_state(tree, card(nvmlDeviceGetMemoryInfo={"raise": "GpuIsLost"})))


def test_fewer_cards_in_the_driver_than_on_the_bus_is_a_finding_of_its_own(tree: Tree) -> None:
    reading = _state(tree, card(0), pci_count=2)
    assert ids(reading) == ["gpu.count_mismatch"]
    assert (reading.findings[0].value, reading.findings[0].threshold) == (1, 2)


def test_mig_memory_is_told_by_instance_and_idle_is_never_concluded(tree: Tree) -> None:
    parent = card(
        nvmlDeviceGetMigMode=[1, 1],
        nvmlDeviceGetUtilizationRates=NOT_SUPPORTED,
        nvmlDeviceGetMemoryInfo={"raise": "NoPermission"},
    )
    parent["mig"] = [
        {
            "gi": number,
            "uuid": f"MIG-{number}",
            "calls": {
                "nvmlDeviceGetMemoryInfo": {"return": {"total": 40 * GIB, "used": used, "free": 0}}
            },
        }
        for number, used in ((1, 39 * GIB), (2, GIB))
    ]
    reading = _state(tree, parent)
    assert ids(reading) == ["gpu.memory_nearly_full"]
    assert "MIG instance 1" in reading.findings[0].summary
    row = reading.wire_data()["gpus"][0]
    assert row["utilization_ratio"]["state"] == "not_supported"
    assert [item["memory_used_bytes"] for item in row["mig"]] == [39 * GIB, GIB]


def test_version_mismatch_says_which_versions_since_when_and_what_to_do(tree: Tree) -> None:
    tree.write(
        "driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30 17:44:08 UTC 2024\n",
    )
    tree.write(
        "history.log",
        "\nStart-Date: 2026-03-10  06:50:54\nCommandline: /usr/bin/unattended-upgrade\n"
        "Upgrade: libnvidia-compute-550:amd64 (550.144.03-0ubuntu1, 550.163.01-0ubuntu1)\n"
        "End-Date: 2026-03-10  06:51:40\n",
    )
    with pytest.raises(ProbeError) as caught:
        _state(tree, init={"raise": "LibRmVersionMismatch"})
    text = str(caught.value)
    for words in (
        "550.163.01", "550.144.03", "unattended upgrade", "2026-03-10T06:50:54", "reboot", "go on",
    ):  # fmt: skip
        assert words in text


INIT_FAILURES = {
    "DriverNotLoaded": (Reason.UNSUPPORTED, "no NVIDIA driver"),
    "LibraryNotFound": (Reason.UNSUPPORTED, "no NVIDIA driver"),
    "NoPermission": (Reason.UNAUTHORISED, "permission"),
    "Unknown": (Reason.CONFLICT, "container that lost its GPU devices"),
}


@pytest.mark.parametrize("name", INIT_FAILURES)
def test_driver_that_does_not_start_says_what_it_is(tree: Tree, name: str) -> None:
    reason, words = INIT_FAILURES[name]
    with pytest.raises(ProbeError, match=words) as caught:
        _state(tree, init={"raise": name})
    assert caught.value.reason is reason


def test_stand_in_that_cannot_be_read_falls_back_to_nothing(tree: Tree) -> None:
    path = tree.root / "broken.json"
    path.write_text("{")
    with pytest.raises(ProbeError, match="cannot be read"):
        look(gpu_state, tree.context(nvml_library=f"standin:{path}"))


def test_only_the_gpus_that_were_asked_for_are_touched(tree: Tree) -> None:
    broken = card(1) | {"handle": {"raise": "GpuIsLost"}}
    context = _context(tree, card(0), broken)
    assert ids(look(gpu_state, context, gpus=[0])) == ["gpu.ok"]
    absent = look(gpu_state, context, gpus=[7])
    assert "there is no GPU 7" in absent.not_checked[0]


def _link(tree: Tree, *cards: dict[str, Any]) -> Reading:
    return look(gpu_link, _context(tree, *cards))


def test_link_at_full_speed_is_clean(tree: Tree) -> None:
    assert ids(_link(tree, card())) == ["gpu.link_ok"]


def test_narrow_link_is_degraded_even_when_idle(tree: Tree) -> None:
    idle = card(
        nvmlDeviceGetCurrPcieLinkWidth=8, nvmlDeviceGetUtilizationRates={"gpu": 0, "memory": 0}
    )
    reading = _link(tree, idle)
    assert ids(reading) == ["gpu.pcie_width_degraded"]
    assert (reading.findings[0].value, reading.findings[0].threshold) == (8, 16)


def test_low_generation_is_degraded_under_load_only(tree: Tree) -> None:
    loaded = card(nvmlDeviceGetCurrPcieLinkGeneration=2)
    assert ids(_link(tree, loaded)) == ["gpu.pcie_gen_degraded"]
    idle = card(
        nvmlDeviceGetCurrPcieLinkGeneration=1,
        nvmlDeviceGetUtilizationRates={"gpu": 0, "memory": 0},
    )
    reading = _link(tree, idle)
    assert ids(reading) == []
    assert "idle at Gen1" in reading.not_checked[0]


def test_card_without_nvlink_reports_no_link_down(tree: Tree) -> None:
    reading = _link(tree, card(nvmlDeviceGetNvLinkState=NOT_SUPPORTED))
    assert ids(reading) == ["gpu.link_ok"]
    assert reading.wire_data()["gpus"][0]["nvlink_active"]["state"] == "not_supported"
