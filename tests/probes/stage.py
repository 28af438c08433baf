"""A probe's context over a recorded tree, with a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.device.proc import ProcRoot
from bot.domain.finding import FindingSeverity
from bot.probe import Probe, ProbeContext, Reading
from bot.probes.host_cpu import SETTLE_SECONDS

STAT = "cpu  {user} 0 100 {idle} 0 0 0 {steal} 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\ncpu1 1 0 1 1 0 0 0 0 0 0\nbtime 1700000000\n"
MEMINFO = "MemTotal: 16000000 kB\nMemAvailable: {available} kB\nShmem: 1 kB\n"
PRESSURE = (
    "some avg10={some} avg60={some} avg300=0.00 total={total}\n"
    "full avg10={full} avg60={full} avg300=0.00 total={total}\n"
)
SNMP = "Tcp: OutSegs RetransSegs\nTcp: {sent} {again}\n"
DEV = "a\nb\n  eth0: 1 {packets} 0 {drops} 0 0 0 0 1 1 0 0 0 0 0 0\n"
DISK = "259 0 nvme0n1 {reads} 0 0 {read_ms} {writes} 0 {sectors} {write_ms} 0 {busy_ms} {weighted_ms}\n"


class Tree:
    """A /proc tree of its own; `during` runs while the probe waits between its samples, not while it settles."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seconds = 0.0
        self.during: Callable[[], None] = lambda: None
        self.write("stat", STAT.format(user=1000, idle=10000, steal=0))
        self.write("meminfo", MEMINFO.format(available=8000000))
        self.write("vmstat", "oom_kill 0\n")
        self.write("uptime", "100000.00 1.0\n")
        self.write("diskstats", DISK.format(**_ZERO))
        self.write("net/snmp", SNMP.format(sent=0, again=0))
        self.write("net/dev", DEV.format(packets=0, drops=0))
        self.write("self/mounts", "")
        for resource in ("cpu", "memory", "io"):
            self.write(f"pressure/{resource}", PRESSURE.format(some=0.0, full=0.0, total=0))

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def context(self, **changes: Any) -> ProbeContext:
        def wait(seconds: float) -> None:
            self.seconds += seconds
            if seconds != SETTLE_SECONDS:
                self.during()

        context = ProbeContext(
            proc=ProcRoot(self.root),
            sys_root=self.root / "sys",
            wait=wait,
            monotonic=lambda: self.seconds,
            now=lambda: 1.8e9,
        )
        return replace(context, **changes)


_ZERO = {
    "reads": 0, "read_ms": 0, "writes": 0, "sectors": 0, "write_ms": 0, "busy_ms": 0, "weighted_ms": 0,
}  # fmt: skip


def disk(**counters: int) -> str:
    return DISK.format(**(_ZERO | counters))


def look(probe: Probe, context: ProbeContext, **args: Any) -> Reading:
    return probe.look(context, probe.accept(args))


def ids(reading: Reading) -> list[str]:
    return [finding.id for finding in reading.findings]


def severity(reading: Reading, finding_id: str) -> FindingSeverity:
    return next(finding.severity for finding in reading.findings if finding.id == finding_id)
