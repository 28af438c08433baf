"""Reads what a cgroup says about CPU quota, memory and pressure, on both cgroup versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.device.files import list_names, read_text, read_whole
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
    """The cgroup file system under a /sys root: version 2, version 1, or both side by side (hybrid).

    Which version a controller is on is told by the process itself: one on v1 has a line of its own in
    /proc/PID/cgroup, all others are on the v2 hierarchy, whose line has no controller. Source: cgroups(7).
    """

    sys_root: Path

    @property
    def root(self) -> Path:
        """Where cgroups are mounted."""
        return self.sys_root / "fs" / "cgroup"

    @property
    def unified(self) -> Path | None:
        """Root of the v2 hierarchy: the mount itself, a folder beside the v1 controllers on a hybrid, or none."""
        for folder in (self.root, self.root / "unified"):
            if (folder / "cgroup.controllers").exists():
                return folder
        return None

    def cpu_quota(self, paths: Mapping[str, str]) -> CpuQuota:
        """Throttling of the cgroup with these `controller -> path` entries, or of the ancestor that has the quota.

        Raises:
            ProbeError: `unsupported` where the controller or its statistics are absent.
        """
        top, folder, is_v2 = self._place("cpu", paths)
        own: CpuQuota | None = None
        for level in _lineage(top, folder):
            try:
                quota = _cpu_quota(level, is_v2=is_v2)
            except ProbeError:
                # Outside what can be seen from here, or the root, which has no quota.
                if level == folder:
                    raise
                break
            if quota.quota_cores is not None:
                return quota
            own = own or quota
        return own or _cpu_quota(folder, is_v2=is_v2)

    def memory(self, paths: Mapping[str, str]) -> CgroupMemory:
        """Use, limit and OOM kills of the cgroup, or of the ancestor that has the limit.

        Raises:
            ProbeError: `unsupported` where the controller is absent.
        """
        top, folder, is_v2 = self._place("memory", paths)
        own: CgroupMemory | None = None
        for level in _lineage(top, folder):
            try:
                memory = _memory(level, is_v2=is_v2)
            except ProbeError:
                if level == folder:
                    raise
                break
            if memory.limit_bytes is not None:
                return memory
            own = own or memory
        return own or _memory(folder, is_v2=is_v2)

    def pressure(self, resource: str, paths: Mapping[str, str]) -> Pressure:
        """Pressure inside the cgroup; `unsupported` where the process is in no v2 cgroup below the root."""
        unified = self.unified
        path = paths.get("", "/").strip("/")
        if unified is None or not path:
            raise ProbeError(
                "per-cgroup pressure exists only on cgroup v2, below its root",
                reason=Reason.UNSUPPORTED,
            )
        return parse_pressure(read_text(unified / path / f"{resource}.pressure"))

    def _place(self, controller: str, paths: Mapping[str, str]) -> tuple[Path, Path, bool]:
        """Top of the hierarchy that has the controller, the cgroup's folder in it, and whether it is v2."""
        if controller in paths:
            for name in self._mounts():
                if controller in name.split(","):
                    top = self.root / name
                    return top, top / paths[controller].strip("/"), False
            raise ProbeError(
                f"{self.root}: has no folder of controller {controller}", reason=Reason.UNSUPPORTED
            )
        unified = self.unified
        if unified is None or "" not in paths:
            raise ProbeError(
                f"cgroup controller {controller} is not mounted", reason=Reason.UNSUPPORTED
            )
        return unified, unified / paths[""].strip("/"), True

    def _mounts(self) -> list[str]:
        try:
            return list_names(self.root)
        except ProbeError:
            return []


def _lineage(top: Path, folder: Path) -> Iterator[Path]:
    """The folder and its ancestors below `top`, nearest first."""
    level = folder
    yield level
    while level != top and top in level.parents and level.parent != top:
        level = level.parent
        yield level


def _cpu_quota(folder: Path, *, is_v2: bool) -> CpuQuota:
    stat = _pairs(read_text(folder / "cpu.stat"))
    if "nr_periods" not in stat:
        raise ProbeError(
            f"{folder}: has no quota statistics (root cgroup, or no quota controller)",
            reason=Reason.UNSUPPORTED,
        )
    return CpuQuota(
        periods=stat["nr_periods"],
        throttled_periods=stat.get("nr_throttled", 0),
        throttled_seconds=(
            stat["throttled_usec"] / 1e6
            if "throttled_usec" in stat
            else stat.get("throttled_time", 0) / 1e9
        ),
        quota_cores=_cores_v2(folder) if is_v2 else _cores_v1(folder),
    )


def _cores_v2(folder: Path) -> float | None:
    quota, _, period = read_text(folder / "cpu.max").strip().partition(" ")
    if quota == "max":
        return None
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        raise ProbeError(f"{folder}/cpu.max: is not in shape")
    return int(quota) / int(period)


def _cores_v1(folder: Path) -> float | None:
    quota_us = read_whole(folder / "cpu.cfs_quota_us")
    return None if quota_us < 0 else quota_us / max(1, read_whole(folder / "cpu.cfs_period_us"))


def _memory(folder: Path, *, is_v2: bool) -> CgroupMemory:
    limit: int | None
    if is_v2:
        text = read_text(folder / "memory.max").strip()
        limit = None if text == "max" else read_whole(folder / "memory.max")
        used = read_whole(folder / "memory.current")
        events = _pairs(read_text(folder / "memory.events"))
    else:
        limit = read_whole(folder / "memory.limit_in_bytes")
        used = read_whole(folder / "memory.usage_in_bytes")
        events = _pairs(read_text(folder / "memory.oom_control"))
    if limit is not None and limit >= _NO_LIMIT_BYTES:
        limit = None
    return CgroupMemory(used_bytes=used, limit_bytes=limit, oom_kills=events.get("oom_kill", 0))


def _pairs(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
