"""Host probes over recorded trees: each finds its fault, a clean tree has none, an unknown is never clean."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bot.device.service import ServiceTarget
from bot.domain.finding import FindingSeverity
from bot.probes.host_cpu import host_cpu
from bot.probes.host_disk import host_disk
from bot.probes.host_memory import host_memory
from bot.probes.host_network import host_network
from bot.probes.kernel_log import kernel_log
from tests.probes.stage import DEV, MEMINFO, PRESSURE, SNMP, STAT, Tree, disk, ids, look, severity


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "proc")


def test_machine_at_rest_is_clean_everywhere(tree: Tree) -> None:
    tree.during = lambda: tree.write("stat", STAT.format(user=1010, idle=10390, steal=0))
    assert ids(look(host_cpu, tree.context())) == ["cpu.ok"]
    assert ids(look(host_memory, tree.context())) == ["mem.ok"]
    assert ids(look(host_disk, tree.context())) == ["disk.ok"]
    assert ids(look(host_network, tree.context())) == ["net.ok"]


def test_cpu_pressure_of_the_window_is_found_before_the_average_shows_it(tree: Tree) -> None:
    tree.during = lambda: tree.write(
        "pressure/cpu", PRESSURE.format(some=2.0, full=0.0, total=600_000)
    )
    reading = look(host_cpu, tree.context(), window_s=2.0)
    assert ids(reading) == ["cpu.pressure"]
    assert reading.findings[0].value == 0.3
    assert reading.wire_data()["pressure_ratio"] == 0.3


def test_stolen_time_is_found(tree: Tree) -> None:
    tree.during = lambda: tree.write("stat", STAT.format(user=1100, idle=10200, steal=100))
    reading = look(host_cpu, tree.context())
    assert ids(reading) == ["cpu.steal"]
    assert reading.findings[0].value == 0.25


def test_kernel_without_pressure_leaves_the_cpu_unjudged(tree: Tree) -> None:
    (tree.root / "pressure" / "cpu").unlink()
    reading = look(host_cpu, tree.context())
    assert ids(reading) == []
    assert "cpu pressure" in reading.not_checked[0]
    assert reading.wire_data()["pressure_some_avg10_ratio"]["state"] == "not_supported"


def _process(tree: Tree, pid: int, comm: str, ticks: int, cgroup: str = "/") -> None:
    rest = f"1 {pid} {pid} 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 500 " + "0 " * 30
    tree.write(f"{pid}/stat", f"{pid} ({comm}) S {rest}")
    tree.write(f"{pid}/cgroup", f"0::{cgroup}\n")
    tree.write(f"{pid}/cmdline", comm)


def test_quota_and_neighbour_of_a_service_are_found(tree: Tree) -> None:
    folder = "sys/fs/cgroup/translate"
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu memory io")
    tree.write(f"{folder}/cpu.max", "50000 100000\n")
    stat = "usage_usec 1\nnr_periods {}\nnr_throttled {}\nthrottled_usec {}\n"
    tree.write(f"{folder}/cpu.stat", stat.format(100, 10, 1000))
    _process(tree, 10, "server", 100, "/translate")
    _process(tree, 20, "etl-nightly", 100)

    def during() -> None:
        tree.write(f"{folder}/cpu.stat", stat.format(120, 20, 501_000))
        _process(tree, 20, "etl-nightly", 100 + 300)

    tree.during = during
    services = {"translate": ServiceTarget(name="translate", cgroup="*translate*")}
    reading = look(host_cpu, tree.context(services=services), window_s=2.0)
    found = {finding.id: finding for finding in reading.findings}
    assert set(found) == {"cpu.cfs_throttled", "cpu.neighbour"}
    assert found["cpu.cfs_throttled"].value == 0.5
    assert found["cpu.neighbour"].value == 1.5
    assert "etl-nightly" in found["cpu.neighbour"].summary
    quota = reading.wire_data()["quotas"]["translate"]
    assert (quota["quota_cores"], quota["throttled_seconds"]) == (0.5, 0.5)


def test_v1_quota_is_read_from_its_own_folder(tree: Tree) -> None:
    folder = "sys/fs/cgroup/cpu,cpuacct/svc"
    tree.write(f"{folder}/cpu.stat", "nr_periods 10\nnr_throttled 0\nthrottled_time 0\n")
    tree.write(f"{folder}/cpu.cfs_quota_us", "-1\n")
    tree.write(f"{folder}/cpu.cfs_period_us", "100000\n")
    _process(tree, 10, "server", 0)
    tree.write("10/cgroup", "4:cpu,cpuacct:/svc\n0::/\n")
    tree.during = lambda: tree.write(
        f"{folder}/cpu.stat", "nr_periods 20\nnr_throttled 8\nthrottled_time 400000000\n"
    )
    services = {"svc": ServiceTarget(name="svc", cmdline="server")}
    reading = look(host_cpu, tree.context(services=services))
    assert ids(reading) == ["cpu.cfs_throttled"]
    assert reading.wire_data()["quotas"]["svc"]["quota_cores"] is None


def test_memory_faults_are_found(tree: Tree) -> None:
    tree.write("meminfo", MEMINFO.format(available=50_000))
    tree.write("pressure/memory", PRESSURE.format(some=80.0, full=70.0, total=1))
    tree.write("vmstat", "oom_kill 3\n")
    reading = look(host_memory, tree.context())
    assert set(ids(reading)) == {"mem.low", "mem.pressure", "mem.oom_kill"}
    assert severity(reading, "mem.low") is FindingSeverity.CRITICAL
    assert severity(reading, "mem.pressure") is FindingSeverity.CRITICAL


def test_little_memory_in_bytes_is_told_in_bytes(tree: Tree) -> None:
    """90 MiB of a small machine are more than a twentieth of it, and too little all the same."""
    tree.write("meminfo", "MemTotal: 1048576 kB\nMemAvailable: 92160 kB\nShmem: 1 kB\n")
    reading = look(host_memory, tree.context())
    assert ids(reading) == ["mem.low"]
    finding = reading.findings[0]
    assert (finding.value, finding.unit, finding.threshold) == (90, "MiB", 100)


def test_slow_disk_is_convicted_by_latency_and_not_by_utilisation(tree: Tree) -> None:
    busy = disk(reads=10000, read_ms=1000, busy_ms=2000, weighted_ms=1000)
    tree.during = lambda: tree.write("diskstats", busy)
    assert ids(look(host_disk, tree.context(), window_s=2.0)) == ["disk.ok"]
    slow = disk(reads=10000, read_ms=1000, writes=50, write_ms=8850, busy_ms=2000, weighted_ms=9000)
    tree.during = lambda: tree.write("diskstats", slow)
    reading = look(host_disk, tree.context(), window_s=2.0)
    assert ids(reading) == ["disk.latency_high"]
    assert reading.findings[0].value == 0.177
    assert reading.wire_data()["latency_high_seconds"] == 0.177


def test_writer_and_pressure_are_found(tree: Tree) -> None:
    _process(tree, 30, "log-shipper", 0)
    tree.write("30/io", "write_bytes: 1000\n")

    def during() -> None:
        tree.write("30/io", f"write_bytes: {1000 + 220_000_000}\n")
        tree.write("pressure/io", PRESSURE.format(some=30.0, full=20.0, total=600_000))

    tree.during = during
    reading = look(host_disk, tree.context(), window_s=2.0)
    found = {finding.id: finding for finding in reading.findings}
    assert set(found) == {"disk.top_writer", "disk.pressure"}
    assert found["disk.top_writer"].value == 110
    assert "log-shipper (pid 30)" in found["disk.top_writer"].summary


def test_retransmissions_count_only_where_there_is_traffic(tree: Tree) -> None:
    tree.during = lambda: tree.write("net/snmp", SNMP.format(sent=100, again=50))
    assert ids(look(host_network, tree.context(), window_s=2.0)) == ["net.ok"]
    tree.write("net/snmp", SNMP.format(sent=0, again=0))
    tree.during = lambda: tree.write("net/snmp", SNMP.format(sent=10_000, again=1_080))
    reading = look(host_network, tree.context(), window_s=2.0)
    assert ids(reading) == ["net.retransmit"]
    assert (reading.findings[0].value, reading.findings[0].threshold) == (0.108, 0.03)
    assert severity(reading, "net.retransmit") is FindingSeverity.CRITICAL


def test_drops_and_a_full_connection_table_are_found(tree: Tree) -> None:
    tree.write("sys/net/netfilter/nf_conntrack_count", "900\n")
    tree.write("sys/net/netfilter/nf_conntrack_max", "1000\n")
    tree.during = lambda: tree.write("net/dev", DEV.format(packets=1000, drops=154))
    reading = look(host_network, tree.context(), window_s=2.0)
    found = {finding.id: finding for finding in reading.findings}
    assert set(found) == {"net.drops", "net.conntrack_full"}
    assert found["net.drops"].value == 77
    assert found["net.conntrack_full"].value == 0.9


def test_interface_that_breaks_packets_is_found_by_their_share(tree: Tree) -> None:
    line = "a\nb\n  eth0: 1 {packets} {errors} 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
    tree.during = lambda: tree.write("net/dev", line.format(packets=100_000, errors=500))
    assert ids(look(host_network, tree.context(), window_s=2.0)) == ["net.ok"]
    tree.write("net/dev", DEV.format(packets=0, drops=0))
    tree.during = lambda: tree.write("net/dev", line.format(packets=10_000, errors=500))
    reading = look(host_network, tree.context(), window_s=2.0)
    assert ids(reading) == ["net.drops"]
    assert reading.findings[0].threshold == 0.01
    assert "eth0 has errors in 4.8% of its packets, 250/s" in reading.findings[0].summary


def test_service_that_ends_between_two_looks_takes_only_its_own_network_with_it(
    tree: Tree,
) -> None:
    _process(tree, 1, "init", 0)
    _process(tree, 30, "server", 0)
    for pid in (1, 30):
        tree.write(f"{pid}/cmdline", f"run{pid}\0")
        tree.write(f"{pid}/net/snmp", SNMP.format(sent=0, again=0))
        tree.write(f"{pid}/net/dev", DEV.format(packets=0, drops=0))
        (tree.root / str(pid) / "ns").mkdir()
        (tree.root / str(pid) / "ns" / "net").symlink_to(f"net:[{pid}]")
    services = {"svc": ServiceTarget(name="svc", cmdline="run30")}
    whole = look(host_network, tree.context(services=services))
    assert ids(whole) == ["net.ok"]
    assert set(whole.wire_data()["namespaces"]) == {"host", "svc"}
    tree.during = lambda: shutil.rmtree(tree.root / "30")
    reading = look(host_network, tree.context(services=services))
    assert ids(reading) == []
    assert reading.not_checked == ("network of svc: its process ended meanwhile",)
    assert set(reading.wire_data()["namespaces"]) == {"host"}


KERNEL_LINES = {
    "kernel.oom": "[99990.0] Out of memory: Killed process 4100 (python3) total-vm:1kB",
    "kernel.hung_task": "[99990.0] INFO: task jbd2/vda-8:210 blocked for more than 120 seconds.",
    "kernel.io_error": "[99990.0] I/O error, dev sda, sector 1024 op 0x0:(READ)",
}


@pytest.mark.parametrize("finding_id", KERNEL_LINES)
def test_kernel_complaint_is_found_while_it_is_recent(tree: Tree, finding_id: str) -> None:
    log = tree.root / "kmsg"
    log.write_text(f"[    0.0] Linux version 6\n{KERNEL_LINES[finding_id]}\n")
    reading = look(kernel_log, tree.context(kernel_log=log))
    assert ids(reading) == [finding_id]
    assert "10 s ago" in reading.findings[0].summary
    assert ids(look(kernel_log, tree.context(kernel_log=log), since_s=5)) == ["kernel.clean"]


def test_ring_that_forgot_the_window_is_not_clean(tree: Tree) -> None:
    log = tree.root / "kmsg"
    log.write_text("[99000.0] usb 1-1: new device\n")
    reading = look(kernel_log, tree.context(kernel_log=log), since_s=3600)
    assert ids(reading) == []
    assert reading.not_checked == ("the ring buffer reaches back 1000 s only",)


def test_connection_table_that_is_out_of_shape_is_a_gap(tree: Tree) -> None:
    tree.write("sys/net/netfilter/nf_conntrack_count", "many\n")
    tree.write("sys/net/netfilter/nf_conntrack_max", "262144\n")
    reading = look(host_network, tree.context())
    assert ids(reading) == []
    assert "connection table" in reading.not_checked[0]
