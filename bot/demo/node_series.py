"""Host series of this machine under the names of node_exporter, read from /proc.

A few dozen lines stand in for the exporter's package, so that the demo asks for one package less; the numbers are
real. Source of names and units: node_exporter's collectors of the same names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SECTOR_BYTES = 512
_MEMORY = ("MemTotal", "MemAvailable", "MemFree", "Dirty", "Writeback", "Cached", "SwapFree")
_VMSTAT = ("oom_kill", "pgmajfault", "pswpin", "pswpout")
_TCP = ("OutSegs", "RetransSegs", "InErrs", "CurrEstab")
_TCP_EXT = ("TCPTimeouts", "TCPSynRetrans", "ListenOverflows", "ListenDrops")
_PRESSURE = (
    ("cpu", "some"),
    ("io", "some"),
    ("io", "full"),
    ("memory", "some"),
    ("memory", "full"),
)
_VIRTUAL_DEVICES = ("loop", "ram", "zram", "dm-")


class NodeSeries:
    """The body of `GET /metrics` of the node."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_ProcCollector(proc))

    def exposition(self) -> bytes:
        """Prometheus text format. A file that this machine lacks leaves its series out."""
        return generate_latest(self._registry)


class _ProcCollector(Collector):
    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._ticks = os.sysconf("SC_CLK_TCK")

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._stat()
        yield from self._load()
        yield from self._pressure()
        yield from self._memory()
        yield from self._flat("vmstat", "node_vmstat_", _VMSTAT)
        yield from self._netstat("net/snmp", "Tcp", _TCP)
        yield from self._netstat("net/netstat", "TcpExt", _TCP_EXT)
        yield from self._interfaces()
        yield from self._disks()
        yield from self._filesystems()

    def _lines(self, name: str) -> list[str]:
        try:
            return (self._proc / name).read_text(encoding="utf-8").splitlines()
        except OSError:
            return []

    def _stat(self) -> Iterator[Metric]:
        cpu = CounterMetricFamily("node_cpu_seconds", "CPU time by mode.", labels=["cpu", "mode"])
        plain = {
            "ctxt": ("node_context_switches", CounterMetricFamily),
            "procs_running": ("node_procs_running", GaugeMetricFamily),
            "procs_blocked": ("node_procs_blocked", GaugeMetricFamily),
            "btime": ("node_boot_time_seconds", GaugeMetricFamily),
        }
        for line in self._lines("stat"):
            key, *values = line.split()
            if key.startswith("cpu") and key != "cpu":
                for mode, ticks in zip(_CPU_MODES, values, strict=False):
                    cpu.add_metric([key.removeprefix("cpu"), mode], int(ticks) / self._ticks)
            elif key in plain:
                name, family = plain[key]
                yield family(name, name, value=float(values[0]))
        yield cpu

    def _load(self) -> Iterator[Metric]:
        for line in self._lines("loadavg"):
            for name, value in zip(("load1", "load5", "load15"), line.split(), strict=False):
                yield GaugeMetricFamily(f"node_{name}", "Load average.", value=float(value))

    def _pressure(self) -> Iterator[Metric]:
        for resource, kind in _PRESSURE:
            for line in self._lines(f"pressure/{resource}"):
                if line.startswith(f"{kind} "):
                    word = "waiting" if kind == "some" else "stalled"
                    total = int(line.rsplit("total=", 1)[1]) / 1e6
                    name = f"node_pressure_{resource}_{word}_seconds"
                    yield CounterMetricFamily(name, "Pressure stall time.", value=total)

    def _memory(self) -> Iterator[Metric]:
        for line in self._lines("meminfo"):
            key, value, *_ = line.replace(":", " ").split()
            if key in _MEMORY:
                name = f"node_memory_{key}_bytes"
                yield GaugeMetricFamily(name, name, value=int(value) * 1024.0)

    def _flat(self, file: str, prefix: str, wanted: tuple[str, ...]) -> Iterator[Metric]:
        for line in self._lines(file):
            key, value = line.split()
            if key in wanted:
                yield _untyped(prefix + key, float(value))

    def _netstat(self, file: str, table: str, wanted: tuple[str, ...]) -> Iterator[Metric]:
        rows = [line.split() for line in self._lines(file) if line.startswith(f"{table}:")]
        for names, values in zip(rows[::2], rows[1::2], strict=False):
            for name, value in zip(names[1:], values[1:], strict=False):
                if name in wanted:
                    yield _untyped(f"node_netstat_{table}_{name}", float(value))

    def _interfaces(self) -> Iterator[Metric]:
        columns = {
            0: "receive_bytes", 1: "receive_packets", 2: "receive_errs", 3: "receive_drop",
            8: "transmit_bytes", 9: "transmit_packets", 10: "transmit_errs", 11: "transmit_drop",
        }  # fmt: skip
        families = {
            column: CounterMetricFamily(f"node_network_{name}", name, labels=["device"])
            for column, name in columns.items()
        }
        for line in self._lines("net/dev")[2:]:
            device, _, values = line.partition(":")
            for column, value in enumerate(values.split()):
                if column in families:
                    families[column].add_metric([device.strip()], float(value))
        yield from families.values()

    def _disks(self) -> Iterator[Metric]:
        columns = {
            3: ("reads_completed", 1.0), 5: ("read_bytes", _SECTOR_BYTES), 6: ("read_time_seconds", 1e-3),
            7: ("writes_completed", 1.0), 9: ("written_bytes", _SECTOR_BYTES),
            10: ("write_time_seconds", 1e-3), 12: ("io_time_seconds", 1e-3),
            13: ("io_time_weighted_seconds", 1e-3),
        }  # fmt: skip
        families = {
            column: CounterMetricFamily(f"node_disk_{name}", name, labels=["device"])
            for column, (name, _) in columns.items()
        }
        for line in self._lines("diskstats"):
            fields = line.split()
            if fields[2].startswith(_VIRTUAL_DEVICES):
                continue
            for column, (_, factor) in columns.items():
                families[column].add_metric([fields[2]], int(fields[column]) * factor)
        yield from families.values()

    def _filesystems(self) -> Iterator[Metric]:
        labels = ["device", "mountpoint"]
        free = GaugeMetricFamily("node_filesystem_avail_bytes", "Space left.", labels=labels)
        size = GaugeMetricFamily("node_filesystem_size_bytes", "Size.", labels=labels)
        for mountpoint in ("/", "/dev/shm"):  # noqa: S108 - measured, never written to
            try:
                stat = os.statvfs(mountpoint)
            except OSError:
                continue
            device = "tmpfs" if mountpoint == "/dev/shm" else "root"  # noqa: S108
            free.add_metric([device, mountpoint], float(stat.f_bavail * stat.f_frsize))
            size.add_metric([device, mountpoint], float(stat.f_blocks * stat.f_frsize))
        yield from (free, size)


def _untyped(name: str, value: float) -> Metric:
    metric = Metric(name, name, "untyped")
    metric.add_sample(name, {}, value)
    return metric
