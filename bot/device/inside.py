"""What the cgroups of a node's services tell of them: pressure inside, memory against the limit."""

from __future__ import annotations

from collections.abc import Mapping

from bot.device.cgroup import CgroupMemory, CgroupTree
from bot.device.field import Unread, from_failure, is_tolerable
from bot.device.proc import Pressure, ProcRoot
from bot.errors import ProbeError

Members = Mapping[str, tuple[int, ...]]
"""Process ids by service; the first stands for the service's cgroup."""


def service_pressure(
    proc: ProcRoot, cgroups: CgroupTree, members: Members, resource: str
) -> dict[str, Pressure | Unread]:
    """Pressure inside the cgroup of each service's first process, or why there is none."""
    found: dict[str, Pressure | Unread] = {}
    for name, pids in members.items():
        try:
            found[name] = cgroups.pressure(resource, proc.cgroups(pids[0]))
        except ProbeError as failure:
            found[name] = from_failure(failure)
    return found


def service_memory(
    proc: ProcRoot, cgroups: CgroupTree, members: Members
) -> dict[str, CgroupMemory | Unread]:
    """Memory of the same cgroups."""
    found: dict[str, CgroupMemory | Unread] = {}
    for name, pids in members.items():
        try:
            found[name] = cgroups.memory(proc.cgroups(pids[0]))
        except ProbeError as failure:
            found[name] = from_failure(failure)
    return found


def gaps(what: str, values: Mapping[str, object]) -> list[str]:
    """One line for each service whose value could not be read; what the kernel does not have is no gap."""
    return [
        f"{what} of {name}: {value.detail}"
        for name, value in values.items()
        if isinstance(value, Unread) and not is_tolerable(value)
    ]


def told_of(pressure: Pressure | Unread, name: str) -> object:
    """One figure of a pressure file, or why there is none."""
    return pressure if isinstance(pressure, Unread) else getattr(pressure, name)
