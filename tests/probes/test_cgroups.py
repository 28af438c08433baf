"""Services inside cgroups: version 2, version 1, and both side by side; nested limits; what each does not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.device.cgroup import CgroupTree
from bot.device.service import ServiceTarget
from bot.errors import ProbeError, Reason
from bot.probe import ProbeContext
from bot.probes.host_cpu import host_cpu
from bot.probes.host_disk import host_disk
from bot.probes.host_memory import host_memory
from tests.probes.stage import PRESSURE, Tree, ids, look

MIB = 2**20
SERVICES = {"svc": ServiceTarget(name="svc", cmdline="server")}
V2 = "sys/fs/cgroup"
V2_PATH = "kubepods.slice/pod1.slice/container"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "proc")
    rest = "1 10 10 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 " + "0 " * 30
    tree.write("10/stat", f"10 (server) S {rest}")
    tree.write("10/cmdline", "server")
    # A disk and a mount table at rest.
    tree.write("self/mounts", "/dev/vda / ext4 rw 0 0\n")
    return tree


def _v2(tree: Tree, root: str = V2) -> None:
    folder = f"{root}/{V2_PATH}"
    tree.write("10/cgroup", f"0::/{V2_PATH}\n")
    tree.write(f"{root}/cgroup.controllers", "cpu io memory pids")
    tree.write(f"{folder}/cpu.max", "150000 100000\n")
    _v2_cpu(tree, 100, 0, root)
    tree.write(f"{folder}/memory.max", f"{1000 * MIB}\n")
    tree.write(f"{folder}/memory.current", f"{100 * MIB}\n")
    tree.write(f"{folder}/memory.events", "low 0\nhigh 0\nmax 4\noom 0\noom_kill 0\n")
    for name in ("cpu", "memory", "io"):
        tree.write(f"{folder}/{name}.pressure", PRESSURE.format(some=0.0, full=0.0, total=0))


def _v2_cpu(tree: Tree, periods: int, throttled: int, root: str = V2) -> None:
    tree.write(
        f"{root}/{V2_PATH}/cpu.stat",
        f"usage_usec 9\nuser_usec 9\nsystem_usec 0\nnr_periods {periods}\nnr_throttled {throttled}\n"
        f"throttled_usec {throttled * 1000}\n",
    )


def _v1(tree: Tree) -> None:
    tree.write("10/cgroup", "5:memory:/docker/c1\n4:cpu,cpuacct:/docker/c1\n1:name=systemd:/\n")
    cpu, memory = f"{V2}/cpu,cpuacct/docker/c1", f"{V2}/memory/docker/c1"
    tree.write(f"{cpu}/cpu.stat", "nr_periods 100\nnr_throttled 0\nthrottled_time 0\n")
    tree.write(f"{cpu}/cpu.cfs_quota_us", "150000\n")
    tree.write(f"{cpu}/cpu.cfs_period_us", "100000\n")
    tree.write(f"{memory}/memory.limit_in_bytes", f"{1000 * MIB}\n")
    tree.write(f"{memory}/memory.usage_in_bytes", f"{100 * MIB}\n")
    tree.write(f"{memory}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")


def _hybrid(tree: Tree) -> None:
    """Controllers on v1, the service's processes in a v2 cgroup beside them, which has its pressure."""
    _v1(tree)
    lines = (tree.root / "10/cgroup").read_text()
    tree.write("10/cgroup", f"{lines}0::/{V2_PATH}\n")
    tree.write(f"{V2}/unified/cgroup.controllers", "\n")
    for name in ("cpu", "memory", "io"):
        tree.write(
            f"{V2}/unified/{V2_PATH}/{name}.pressure", PRESSURE.format(some=0.0, full=0.0, total=0)
        )


def _context(tree: Tree) -> ProbeContext:
    return tree.context(services=SERVICES)


LAYOUTS: dict[str, Callable[[Tree], None]] = {"v2": _v2, "v1": _v1, "hybrid": _hybrid}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_quota_and_limit_are_read_on_every_layout(tree: Tree, layout: str) -> None:
    LAYOUTS[layout](tree)
    cpu = look(host_cpu, _context(tree))
    memory = look(host_memory, _context(tree))
    assert (ids(cpu), ids(memory)) == (["cpu.ok"], ["mem.ok"])
    assert cpu.wire_data()["quotas"]["svc"]["quota_cores"] == 1.5
    assert memory.wire_data()["services"]["svc"] == {
        "used_bytes": 100 * MIB, "limit_bytes": 1000 * MIB, "oom_kills": 0,
    }  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pressure_inside_a_cgroup_is_told_on_v2_and_not_supported_on_v1(
    tree: Tree, layout: str
) -> None:
    LAYOUTS[layout](tree)
    told = [
        look(host_cpu, _context(tree)).wire_data()["service_pressure_ratio"]["svc"],
        look(host_memory, _context(tree)).wire_data()["service_pressure_some_avg10_ratio"]["svc"],
        look(host_disk, _context(tree)).wire_data()["service_pressure_full_avg10_ratio"]["svc"],
    ]
    if layout == "v1":
        assert [value["state"] for value in told] == ["not_supported"] * 3
    else:
        assert told == [0.0, 0.0, 0.0]


def test_throttled_service_is_found_on_v2(tree: Tree) -> None:
    _v2(tree)
    tree.during = lambda: _v2_cpu(tree, 120, 18)
    reading = look(host_cpu, _context(tree))
    assert ids(reading) == ["cpu.cfs_throttled"]
    assert reading.findings[0].value == 0.9


FAULTS: dict[str, tuple[str, str, Any, str]] = {
    "cpu": ("cpu.pressure", PRESSURE.format(some=40.0, full=40.0, total=900_000), host_cpu, "cpu.pressure"),
    "memory": ("memory.pressure", PRESSURE.format(some=40.0, full=70.0, total=1), host_memory, "mem.pressure"),
    "io": ("io.pressure", PRESSURE.format(some=40.0, full=30.0, total=1), host_disk, "disk.pressure"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_pressure_of_one_service_is_found_while_the_machine_is_at_rest(
    tree: Tree, name: str
) -> None:
    file, text, probe, finding = FAULTS[name]
    _v2(tree)
    # The average is already there; the total, which the CPU is judged by, moves in the window.
    before = PRESSURE.format(some=40.0, full=40.0, total=0) if name == "cpu" else text
    tree.write(f"{V2}/{V2_PATH}/{file}", before)
    tree.during = lambda: tree.write(f"{V2}/{V2_PATH}/{file}", text)
    reading = look(probe, _context(tree))
    found = [item for item in reading.findings if item.id == finding]
    assert [item.summary.startswith("svc: ") for item in found] == [True]


def test_out_of_memory_kill_and_a_full_limit_are_found_on_v2(tree: Tree) -> None:
    _v2(tree)
    tree.write(f"{V2}/{V2_PATH}/memory.current", f"{990 * MIB}\n")
    tree.write(f"{V2}/{V2_PATH}/memory.events", "low 0\nhigh 0\nmax 40\noom 3\noom_kill 2\n")
    assert sorted(ids(look(host_memory, _context(tree)))) == ["mem.low", "mem.oom_kill"]


def test_limits_of_an_ancestor_count_where_the_own_cgroup_has_none(tree: Tree) -> None:
    _v2(tree)
    pod = f"{V2}/kubepods.slice/pod1.slice"
    tree.write(f"{V2}/{V2_PATH}/cpu.max", "max 100000\n")
    tree.write(f"{V2}/{V2_PATH}/memory.max", "max\n")
    for name, text in (
        ("cpu.max", "200000 100000\n"),
        ("cpu.stat", "nr_periods 7\nnr_throttled 0\nthrottled_usec 0\n"),
        ("memory.max", f"{500 * MIB}\n"),
        ("memory.current", f"{490 * MIB}\n"),
        ("memory.events", "oom_kill 0\n"),
    ):
        tree.write(f"{pod}/{name}", text)
    assert look(host_cpu, _context(tree)).wire_data()["quotas"]["svc"]["quota_cores"] == 2.0
    reading = look(host_memory, _context(tree))
    assert ids(reading) == ["mem.low"]
    assert "98% of its limit of 500 MiB" in reading.findings[0].summary


def test_service_without_any_limit_is_clean(tree: Tree) -> None:
    _v2(tree)
    tree.write(f"{V2}/{V2_PATH}/cpu.max", "max 100000\n")
    tree.write(f"{V2}/{V2_PATH}/memory.max", "max\n")
    assert ids(look(host_cpu, _context(tree))) == ["cpu.ok"]
    assert look(host_memory, _context(tree)).wire_data()["services"]["svc"]["limit_bytes"] is None


@pytest.mark.parametrize(
    ("file", "probe"),
    [
        ("cpu.max", host_cpu), ("cpu.pressure", host_cpu), ("memory.max", host_memory),
        ("memory.current", host_memory), ("memory.pressure", host_memory), ("io.pressure", host_disk),
    ],
)  # fmt: skip
def test_file_that_is_out_of_shape_is_a_gap_and_no_clean_bill(
    tree: Tree, file: str, probe: Any
) -> None:
    _v2(tree)
    tree.write(f"{V2}/{V2_PATH}/{file}", "what is this\n")
    reading = look(probe, _context(tree))
    assert not any(item.endswith("ok") for item in ids(reading))
    assert any("svc" in gap for gap in reading.not_checked)


def test_process_at_the_root_of_v2_has_no_quota_and_no_pressure_of_its_own(tree: Tree) -> None:
    _v2(tree)
    tree.write("10/cgroup", "0::/\n")
    tree.write(f"{V2}/cpu.stat", "usage_usec 9\n")
    cgroups = CgroupTree(tree.root / "sys")
    for ask in (
        lambda: cgroups.cpu_quota({"": "/"}),
        lambda: cgroups.memory({"": "/"}),
        lambda: cgroups.pressure("cpu", {"": "/"}),
    ):
        with pytest.raises(ProbeError) as caught:
            ask()
        assert caught.value.reason is Reason.UNSUPPORTED
    assert ids(look(host_cpu, _context(tree))) == ["cpu.ok"]
