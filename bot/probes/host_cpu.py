"""Is the CPU short: pressure, quota, stolen time, a greedy neighbour."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import Arguments, window_argument
from bot.device.cpu import CpuChange, QuotaChange, cpu_change, cpu_moment
from bot.device.field import Unread
from bot.device.inside import gaps
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

SETTLE_SECONDS = 0.8
"""Our measurement: the probes of one bundle start within this time on two cores, and their start is not the node's load."""
PRESSURE_RATIO = 0.10
"""Our judgement: no public line exists for latency-sensitive inference; 10 % of time waiting is suspicious."""
THROTTLED_RATIO = 0.25
"""Source: kubernetes-mixin, CPUThrottlingHigh: more than 25 % of periods."""
STEAL_RATIO = 0.10
"""Source: awesome-prometheus-alerts, host CPU steal above 10 %."""
NEIGHBOUR_RATIO = 0.10
"""Our judgement: a tenth of the machine, and at least one core, is worth naming; it is no fault by itself."""


@describe(
    summary="CPU pressure, cgroup quota, stolen time and the largest CPU users outside the services",
    cost=Cost.CHEAP,
    findings=("cpu.pressure", "cpu.cfs_throttled", "cpu.steal", "cpu.neighbour", "cpu.ok"),
    arguments=(window_argument(2.0),),
    needs=("/proc/stat", "/proc/pressure/cpu", "cgroup cpu.stat"),
)
def host_cpu(context: ProbeContext, arguments: Arguments) -> Reading:
    """Two samples of every counter, `window_s` apart."""
    members = context.members()
    context.wait(SETTLE_SECONDS)
    sampled = context.sample_twice(
        lambda: cpu_moment(context.proc, context.cgroups, members), arguments.number("window_s")
    )
    pids = frozenset(pid for group in members.values() for pid in group)
    change = cpu_change(sampled.before, sampled.after, sampled.seconds, pids)
    cpus, pressure = sampled.after.times.cpus, sampled.after.pressure
    findings = _steal(change) + _quotas(change) + _service_pressure(change)
    if members:
        findings += _neighbour(change, cpus)
    not_checked = gaps("quota", change.quotas)
    not_checked += gaps("cpu pressure", change.service_pressure_ratio)
    if isinstance(pressure, Unread) or isinstance(change.pressure_ratio, Unread):
        detail = pressure.detail if isinstance(pressure, Unread) else "no second sample"
        not_checked.append(f"cpu pressure: {detail}")
    else:
        findings += _pressure(pressure.some_avg10, change.pressure_ratio, sampled.seconds)
    if not findings and not not_checked:
        findings.append(info("cpu.ok", "CPU pressure, quota and steal at rest"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": sampled.seconds,
            "cpus": cpus,
            "busy_ratio": change.busy_ratio,
            "iowait_ratio": change.iowait_ratio,
            "steal_ratio": change.steal_ratio,
            "pressure_some_avg10_ratio": (
                pressure if isinstance(pressure, Unread) else pressure.some_avg10
            ),
            "pressure_some_window_ratio": change.pressure_ratio,
            "service_pressure_ratio": change.service_pressure_ratio,
            "quotas": {
                name: quota if isinstance(quota, Unread) else asdict(quota)
                for name, quota in change.quotas.items()
            },
            "top_users": [asdict(user) for user in change.users[:8]],
        },
    )


def _pressure(avg10: float, share: float, seconds: float) -> list[Finding]:
    # The window alone judges: the average still holds the agent's own start.
    if share <= PRESSURE_RATIO:
        return []
    text = f"cpu pressure some avg10 {avg10:.1%}, {share:.1%} of the last {seconds:.1f} s"
    return [warning("cpu.pressure", text, value=share, unit="ratio", threshold=PRESSURE_RATIO)]


def _service_pressure(change: CpuChange) -> list[Finding]:
    return [
        warning(
            "cpu.pressure",
            f"{name}: its cgroup waited for a CPU {share:.1%} of the time",
            value=share,
            unit="ratio",
            threshold=PRESSURE_RATIO,
        )
        for name, share in change.service_pressure_ratio.items()
        if not isinstance(share, Unread) and share > PRESSURE_RATIO
    ]


def _steal(change: CpuChange) -> list[Finding]:
    if change.steal_ratio <= STEAL_RATIO:
        return []
    text = f"the hypervisor took {change.steal_ratio:.1%} of CPU time"
    return [
        warning("cpu.steal", text, value=change.steal_ratio, unit="ratio", threshold=STEAL_RATIO)
    ]


def _quotas(change: CpuChange) -> list[Finding]:
    return [
        critical(
            "cpu.cfs_throttled",
            f"{name}: throttled in {quota.throttled_ratio:.0%} of {quota.periods} quota periods",
            value=quota.throttled_ratio,
            unit="ratio",
            threshold=THROTTLED_RATIO,
        )
        for name, quota in change.quotas.items()
        if isinstance(quota, QuotaChange) and quota.throttled_ratio > THROTTLED_RATIO
    ]


def _neighbour(change: CpuChange, cpus: int) -> list[Finding]:
    limit = max(1.0, NEIGHBOUR_RATIO * cpus)
    if not change.users or change.users[0].cores < limit:
        return []
    user = change.users[0]
    text = (
        f"{user.name} (pid {user.pid}) uses {user.cores:.1f} of {cpus} cores; "
        f"{change.idle_cores:.1f} cores idle"
    )
    return [warning("cpu.neighbour", text, value=user.cores, unit="cores", threshold=limit)]
