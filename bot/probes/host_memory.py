"""Is memory short: little available, tasks waiting for it, processes killed for it."""

from __future__ import annotations

from bot.argument import Arguments
from bot.device.cgroup import CgroupMemory
from bot.device.cpu import read_pressure
from bot.device.field import Unread
from bot.device.inside import gaps, service_memory, service_pressure, told_of
from bot.device.proc import Pressure
from bot.domain.finding import Finding
from bot.errors import ProbeError
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

LOW_BYTES = 100 * 1024 * 1024
"""Source: leptonai/gpud, memory available below 100 MiB."""
LOW_RATIO = 0.05
"""Our judgement: a twentieth of the machine left."""
PRESSURE_RATIO = 0.10
"""Our judgement, as for the CPU."""
STALLED_RATIO = 0.60
"""Source: systemd-oomd's default, memory full 60 %."""
CGROUP_RATIO = 0.95
"""Our judgement: a cgroup this close to its limit reclaims all the time."""


@describe(
    summary="Available memory, memory pressure and out-of-memory kills, of the machine and of the services' cgroups",
    cost=Cost.CHEAP,
    findings=("mem.pressure", "mem.oom_kill", "mem.low", "mem.ok"),
    needs=("/proc/meminfo", "/proc/pressure/memory", "/proc/vmstat"),
)
def host_memory(context: ProbeContext, _arguments: Arguments) -> Reading:
    """One look; pressure carries its own window."""
    memory = context.proc.memory()
    if "MemTotal" not in memory or "MemAvailable" not in memory:
        raise ProbeError("/proc/meminfo: tells neither total nor available memory")
    total, available = memory["MemTotal"], memory["MemAvailable"]
    pressure = read_pressure(context.proc, "memory")
    kills = context.proc.vm_counters().get("oom_kill")
    members = context.members()
    cgroups = service_memory(context.proc, context.cgroups, members)
    inside = service_pressure(context.proc, context.cgroups, members, "memory")
    findings: list[Finding] = _low(available, total)
    not_checked: list[str] = []
    if isinstance(pressure, Unread):
        not_checked.append(f"memory pressure: {pressure.detail}")
    else:
        findings += _pressure("", pressure)
    for name, told in inside.items():
        findings += [] if isinstance(told, Unread) else _pressure(f"{name}: ", told)
    for name, cgroup in cgroups.items():
        if isinstance(cgroup, CgroupMemory):
            findings += _of_cgroup(name, cgroup)
    not_checked += gaps("memory pressure", inside) + gaps("cgroup memory", cgroups)
    if kills is None:
        not_checked.append("OOM kills: the kernel does not count them")
    if kills:
        text = (
            f"{kills} processes were killed for memory since boot; kernel_log tells when and which"
        )
        findings.append(warning("mem.oom_kill", text, value=kills, unit="kills", threshold=0))
    if not findings and not not_checked:
        findings.append(info("mem.ok", "memory available, no OOM kill"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "total_bytes": total,
            "available_bytes": available,
            "available_ratio": available / max(1, total),
            "dirty_bytes": memory.get("Dirty"),
            "writeback_bytes": memory.get("Writeback"),
            "shared_bytes": memory.get("Shmem"),
            "swap_free_bytes": memory.get("SwapFree"),
            "pressure_some_avg10_ratio": told_of(pressure, "some_avg10"),
            "pressure_full_avg10_ratio": told_of(pressure, "full_avg10"),
            "oom_kills_since_boot": kills,
            "services": {
                name: cgroup
                if isinstance(cgroup, Unread)
                else {
                    "used_bytes": cgroup.used_bytes,
                    "limit_bytes": cgroup.limit_bytes,
                    "oom_kills": cgroup.oom_kills,
                }
                for name, cgroup in cgroups.items()
            },
            "service_pressure_some_avg10_ratio": {
                name: told_of(told, "some_avg10") for name, told in inside.items()
            },
        },
    )


def _low(available: int, total: int) -> list[Finding]:
    ratio = available / max(1, total)
    if available >= LOW_BYTES and ratio >= LOW_RATIO:
        return []
    text = f"{available / 2**20:.0f} MiB of {total / 2**20:.0f} MiB available"
    if available < LOW_BYTES:
        size, limit = available / 2**20, LOW_BYTES / 2**20
        return [critical("mem.low", text, value=size, unit="MiB", threshold=limit)]
    return [warning("mem.low", text, value=ratio, unit="ratio", threshold=LOW_RATIO)]


def _pressure(where: str, pressure: Pressure) -> list[Finding]:
    some, full = pressure.some_avg10, pressure.full_avg10
    if some <= PRESSURE_RATIO:
        return []
    text = f"{where}memory pressure some avg10 {some:.1%}, full {full:.1%}"
    make = critical if full >= STALLED_RATIO else warning
    return [make("mem.pressure", text, value=some, unit="ratio", threshold=PRESSURE_RATIO)]


def _of_cgroup(name: str, cgroup: CgroupMemory) -> list[Finding]:
    findings: list[Finding] = []
    if cgroup.oom_kills:
        text = f"{name}: {cgroup.oom_kills} OOM kills in its cgroup since it was made"
        findings.append(
            critical("mem.oom_kill", text, value=cgroup.oom_kills, unit="kills", threshold=0)
        )
    if cgroup.limit_bytes and cgroup.used_bytes / cgroup.limit_bytes > CGROUP_RATIO:
        ratio = cgroup.used_bytes / cgroup.limit_bytes
        text = f"{name}: {ratio:.0%} of its limit of {cgroup.limit_bytes / 2**20:.0f} MiB used"
        findings.append(warning("mem.low", text, value=ratio, unit="ratio", threshold=CGROUP_RATIO))
    return findings
