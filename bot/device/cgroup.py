"""Reads what a cgroup says about CPU quota, memory and pressure, on both cgroup versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.device.files import read_text, read_whole
from bot.device.proc import Pressure, parse_pressure
from bot.errors import ProbeError, Reason

_NO_LIMIT_BYTES = 1 << 60
"""Cgroup v1 writes "no limit" as the highest page-aligned number; anything this large is no limit."""


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """CFS bandwidth counters since the cgroup's creation. `quota_cores` is None without a quota."""

    periods: int
    throttled_periods: int
    throttled_seconds: float
    quota_cores: float | None


@dataclass(frozen=True, slots=True)
class CgroupMemory:
    """`limit_bytes` is None without a limit."""

    used_bytes: int
    limit_bytes: int | None
    oom_kills: int


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """The cgroup file system under a /sys root."""

    sys_root: Path

    @property
    def root(self) -> Path:
        """Where cgroups are mounted."""
        return self.sys_root / "fs" / "cgroup"

    @property
    def is_unified(self) -> bool:
        """True on cgroup v2; a hybrid tree, whose controllers sit on v1, is v1."""
        return (self.root / "cgroup.controllers").exists()

    def cpu_quota(self, paths: Mapping[str, str]) -> CpuQuota:
        """Throttling of the cgroup with these `controller -> path` entries.

        Raises:
            ProbeError: `unsupported` where the controller or its statistics are absent.
        """
        folder = self._folder("cpu", paths)
        stat = _pairs(read_text(folder / "cpu.stat"))
        if "nr_periods" not in stat:
            raise ProbeError(
                f"{folder}: has no quota statistics (root cgroup, or no quota controller)",
                reason=Reason.UNSUPPORTED,
            )
        return CpuQuota(
            periods=stat["nr_periods"],
            throttled_periods=stat["nr_throttled"],
            throttled_seconds=(
                stat["throttled_usec"] / 1e6
                if "throttled_usec" in stat
                else stat.get("throttled_time", 0) / 1e9
            ),
            quota_cores=self._quota_cores(folder),
        )

    def memory(self, paths: Mapping[str, str]) -> CgroupMemory:
        """Use, limit and OOM kills of the cgroup.

        Raises:
            ProbeError: `unsupported` where the controller is absent.
        """
        folder = self._folder("memory", paths)
        if self.is_unified:
            limit_text = read_text(folder / "memory.max").strip()
            limit = None if limit_text == "max" else int(limit_text)
            used = read_whole(folder / "memory.current")
            events = _pairs(read_text(folder / "memory.events"))
        else:
            limit = read_whole(folder / "memory.limit_in_bytes")
            limit = None if limit >= _NO_LIMIT_BYTES else limit
            used = read_whole(folder / "memory.usage_in_bytes")
            events = _pairs(read_text(folder / "memory.oom_control"))
        return CgroupMemory(used_bytes=used, limit_bytes=limit, oom_kills=events.get("oom_kill", 0))

    def pressure(self, resource: str, paths: Mapping[str, str]) -> Pressure:
        """Pressure inside the cgroup; `unsupported` on cgroup v1, which has none."""
        if not self.is_unified:
            raise ProbeError(
                "per-cgroup pressure exists only on cgroup v2", reason=Reason.UNSUPPORTED
            )
        return parse_pressure(read_text(self._folder("", paths) / f"{resource}.pressure"))

    def _folder(self, controller: str, paths: Mapping[str, str]) -> Path:
        if self.is_unified:
            return self.root / paths.get("", "/").lstrip("/")
        if controller not in paths:
            raise ProbeError(
                f"cgroup controller {controller} is not mounted", reason=Reason.UNSUPPORTED
            )
        for name in (
            controller,
            f"{controller},{controller}acct",
            f"{controller}acct,{controller}",
        ):
            folder = self.root / name
            if folder.exists():
                return folder / paths[controller].lstrip("/")
        raise ProbeError(
            f"{self.root}: has no folder of controller {controller}", reason=Reason.UNSUPPORTED
        )

    def _quota_cores(self, folder: Path) -> float | None:
        if self.is_unified:
            quota, _, period = read_text(folder / "cpu.max").strip().partition(" ")
            return None if quota == "max" else int(quota) / int(period)
        quota_us = read_whole(folder / "cpu.cfs_quota_us")
        return None if quota_us < 0 else quota_us / read_whole(folder / "cpu.cfs_period_us")


def _pairs(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
