"""Who holds GPU memory besides the services of this node."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import GPUS, Arguments
from bot.device.field import Unread
from bot.device.gpu_driver import explain
from bot.device.gpu_users import GpuUser, read_users
from bot.device.nvml import open_nvml
from bot.device.nvml_error import NvmlFailure
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

FOREIGN_BYTES = 256 * 2**20
"""Our judgement: monitoring and profiling tools hold a few hundred MiB; less is a bare context."""
FOREIGN_BAD_BYTES = 512 * 2**20
"""Our judgement: more than a tool needs, so that it is a workload."""


@describe(
    summary="Processes that hold GPU memory and belong to none of the node's services",
    cost=Cost.CHEAP,
    findings=("gpu.foreign_process", "gpu.processes_expected"),
    arguments=(GPUS,),
    needs=("NVML", "host process ids", "[services.*] to know what is expected"),
    serial_group="nvml",
)
def gpu_processes(context: ProbeContext, arguments: Arguments) -> Reading:
    """Sums of processes differ from used memory by design; only processes that can be seen here are judged."""
    context.mark("init")
    try:
        with open_nvml(context.nvml_library) as library:
            found = read_users(
                library,
                context.proc,
                arguments.gpus(),
                mark=context.mark,
                skipped=context.skipped,
            )
            is_standin = library.is_standin
    except NvmlFailure as failure:
        raise explain(failure, context.proc, context.package_log) from failure
    label = "stand-in reading: " if is_standin else ""
    expected = {pid for pids in context.members().values() for pid in pids}
    foreign = [user for user in found.users if user.pid not in expected]
    not_checked = list(found.gaps)
    findings: list[Finding] = []
    if context.services:
        findings = [finding for user in foreign if (finding := _foreign(user, label))]
        not_checked += [
            f"pid {user.pid} ({user.name}) on GPU {user.gpu} is of no service and its memory is not told"
            for user in foreign
            if isinstance(user.memory_bytes, Unread)
        ]
    elif found.users:
        not_checked.append("what is expected: this node's configuration names no service")
    if found.gone:
        not_checked.append(f"{found.gone} process ids of the driver that are not seen from here")
    if not findings and not not_checked:
        findings.append(
            info("gpu.processes_expected", f"{label}only expected processes hold GPU memory")
        )
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "processes": [
                asdict(user) | {"is_expected": user.pid in expected} for user in found.users
            ],
            **({"standin": True} if is_standin else {}),
        },
    )


def _foreign(user: GpuUser, label: str) -> Finding | None:
    if isinstance(user.memory_bytes, Unread) or user.memory_bytes < FOREIGN_BYTES:
        return None
    size = user.memory_bytes / 2**20
    since = "" if user.uptime_seconds is None else f" since {user.uptime_seconds / 3600:.1f} h"
    text = (
        f"{label}pid {user.pid} ({user.name}, uid {user.user_id}) holds {size:.0f} MiB "
        f"on GPU {user.gpu}{since}"
    )
    is_bad = user.memory_bytes >= FOREIGN_BAD_BYTES
    limit = (FOREIGN_BAD_BYTES if is_bad else FOREIGN_BYTES) / 2**20
    make = critical if is_bad else warning
    return make("gpu.foreign_process", text, value=size, unit="MiB", threshold=limit)
