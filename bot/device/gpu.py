"""GPUs one by one, each field a value or a reason why there is none."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

from bot.device.field import FieldState, Unread, sane
from bot.device.nvml import NvmlLibrary
from bot.device.nvml_error import LOST, NvmlFailure

# Source: nvml.h, nvmlClocksEventReasons.
THROTTLE_REASONS = {
    0x1: "gpu_idle",
    0x2: "application_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
    0x100: "display_clock",
}
THROTTLE_COUNTERS = {"sw_thermal": 269, "hw_thermal": 270, "hw_power_brake": 271}
"""Field ids of nanoseconds spent throttled. Source: nvml.h, NVML_FI_DEV_CLOCKS_EVENT_REASON_*."""
VIRTUALIZATION = ("none", "passthrough", "vgpu", "host_vgpu", "host_vsga")
"""By number. Source: nvml.h, nvmlGpuVirtualizationMode_t."""
_MASK_LIMIT = 2**20
"""Well above the highest bit that is defined; a larger mask is no mask."""
_MOST_INSTANCES = 64
"""A bound on the loop; today's cards have at most 7 MIG devices."""
_member = ctypes.Structure.__getattribute__
_NOT_ANSWERED = Unread(FieldState.NOT_SUPPORTED, "not answered")
"""Source: nvml.h, nvmlClockType_t and nvmlTemperatureThresholds_t."""


class Number(NamedTuple):
    """One call that answers with a number, and what that can mean once it is multiplied by `scale`."""

    function: str
    arguments: tuple[int, ...]
    low: float
    high: float
    scale: float = 1.0


@dataclass(slots=True)
class Gpu:
    """One GPU at hand.

    `lost` says why where the device does not answer any more, `skipped` why it was not asked, `refused` why it could
    not be opened though nothing says that it is gone.
    """

    index: int
    nvml: NvmlLibrary
    handle: Any = None
    lost: str | None = None
    skipped: str | None = None
    refused: str | None = None
    slowest_call_seconds: float = 0.0
    identity: dict[str, object] = field(default_factory=dict)

    def read(self, function: str, *arguments: Any) -> Any:
        """Result of one call, or `Unread`; a lost device is remembered."""
        if self.skipped or self.lost or self.refused:
            return self._silence()
        started = monotonic()  # measures the driver, so no clock is handed in
        try:
            value = self.nvml.call(function, self.handle, *arguments)
        except NvmlFailure as failure:
            self._note(failure)
            value = failure.as_field()
        spent = monotonic() - started
        if spent > self.slowest_call_seconds:
            self.slowest_call_seconds = spent
        return value

    def _silence(self) -> Unread:
        if self.skipped is not None:
            return Unread(FieldState.TIMEOUT, self.skipped)
        return Unread(FieldState.ERROR, self.lost or self.refused or "")

    def number(
        self, function: str, *arguments: Any, low: float, high: float, scale: float = 1.0
    ) -> float | Unread:
        """A number between `low` and `high` after `scale`; anything else is `insane`."""
        value = self.read(function, *arguments)
        return value if isinstance(value, Unread) else sane(value, low, high, scale)

    def fields(self, ids: Mapping[str, int]) -> dict[str, int | float | Unread]:
        """Field values by the names that `ids` gives them."""
        if self.skipped or self.lost or self.refused:
            return dict.fromkeys(ids, self._silence())
        started = monotonic()
        try:
            values = self.nvml.fields(self.handle, tuple(ids.values()))
        except NvmlFailure as failure:
            self._note(failure)
            return dict.fromkeys(ids, failure.as_field())
        self.slowest_call_seconds = max(self.slowest_call_seconds, monotonic() - started)
        found: dict[str, int | float | Unread] = {}
        for name, number in ids.items():
            value = values.get(number, _NOT_ANSWERED)
            found[name] = value if isinstance(value, Unread) else sane(value, 0, 2**62)
        return found

    def memory(self) -> tuple[float | Unread, float | Unread]:
        """Used and total bytes."""
        value = self.read("nvmlDeviceGetMemoryInfo")
        if isinstance(value, Unread):
            return value, value
        total = sane(part(value, "total"), 1, 2**50)
        high = 2.0**50 if isinstance(total, Unread) else total
        return sane(part(value, "used"), 0, high), total

    def utilization(self) -> float | Unread:
        """Ratio 0..1 of the time in which some kernel ran; says nothing about progress."""
        value = self.read("nvmlDeviceGetUtilizationRates")
        if isinstance(value, Unread):
            return value
        percent = sane(part(value, "gpu"), 0, 100)
        return percent if isinstance(percent, Unread) else percent / 100

    def throttle_reasons(self) -> int | Unread:
        """The bit mask; older drivers know the call by its older name only."""
        value = self.read("nvmlDeviceGetCurrentClocksEventReasons")
        if isinstance(value, Unread) and value.state is FieldState.NOT_SUPPORTED:
            value = self.read("nvmlDeviceGetCurrentClocksThrottleReasons")
        mask = value if isinstance(value, Unread) else sane(value, 0, _MASK_LIMIT)
        return mask if isinstance(mask, Unread) else int(mask)

    def numbers(self, asked: Mapping[str, Number]) -> dict[str, float | Unread]:
        """Several numbers by the names that `asked` gives them."""
        found: dict[str, float | Unread] = {}
        for name, (function, arguments, low, high, scale) in asked.items():
            value = self.read(function, *arguments)
            found[name] = value if isinstance(value, Unread) else sane(value, low, high, scale)
        return found

    def mig_instances(self) -> list[Gpu] | Unread:
        """MIG devices; empty where the mode is off, `Unread` where it is on and none can be opened."""
        mode = self.read("nvmlDeviceGetMigMode")
        if isinstance(mode, Unread):
            return mode
        is_on = sane(mode[0] if isinstance(mode, (list, tuple)) and mode else None, 0, 1)
        if isinstance(is_on, Unread) or not is_on:
            return is_on if isinstance(is_on, Unread) else []
        count = self.number("nvmlDeviceGetMaxMigDeviceCount", low=0, high=_MOST_INSTANCES)
        if isinstance(count, Unread):
            return count
        instances: list[Gpu] = []
        failure: Unread | None = None
        for number in range(int(count)):
            handle = self.read("nvmlDeviceGetMigDeviceHandleByIndex", number)
            if not isinstance(handle, Unread):
                instances.append(Gpu(number, self.nvml, handle))
            elif not handle.detail.startswith("NotFound"):
                failure = handle
        return instances if instances or failure is None else failure

    def _note(self, failure: NvmlFailure) -> None:
        if failure.name in LOST:
            self.lost = str(failure)


def each_gpu(
    library: NvmlLibrary,
    wanted: tuple[int, ...] | None,
    mark: Callable[[str], None],
    skipped: Mapping[str, str],
) -> Iterator[Gpu]:
    """Every GPU, one at a time, announced before it is touched; one that cannot be opened is yielded as what it is.

    Raises:
        NvmlFailure: the driver does not even tell how many there are.
    """
    count = int(library.call("nvmlDeviceGetCount"))
    for index in range(count) if wanted is None else wanted:
        name = f"gpu {index}"
        gpu = Gpu(index, library)
        if name in skipped:
            gpu.skipped = skipped[name]
        elif index >= count:
            gpu.refused = f"there is no GPU {index}; the driver has {count}"
        else:
            mark(name)
            try:
                gpu.handle = library.call("nvmlDeviceGetHandleByIndex", index)
                gpu.identity = _identity(gpu)
            except NvmlFailure as failure:
                # No permission, or an unknown error, is no device that is gone.
                if failure.name in LOST:
                    gpu.lost = str(failure)
                else:
                    gpu.refused = _refusal(failure)
        yield gpu


def decode_reasons(mask: int) -> list[str]:
    """Names of the bits that are set; an unknown bit keeps its number.

    >>> decode_reasons(0x5)
    ['gpu_idle', 'sw_power_cap']
    """
    return [
        THROTTLE_REASONS.get(1 << bit, f"unknown_bit_{bit}")
        for bit in range(64)
        if mask & (1 << bit)
    ]


def part(value: Any, name: str) -> Any:
    """A member of a struct, a ctypes object in the library and a table in the stand-in; None where it has none."""
    if isinstance(value, ctypes.Structure):
        # The library's own way to a member looks at each for text; `text` does that where it is called for.
        try:
            return _member(value, name)
        except AttributeError:
            return None
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def text(value: Any) -> Any:
    """Text of a name, which some versions of the library give as bytes."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def _identity(gpu: Gpu) -> dict[str, object]:
    pci = gpu.read("nvmlDeviceGetPciInfo")
    mode = gpu.number("nvmlDeviceGetVirtualizationMode", low=0, high=len(VIRTUALIZATION) - 1)
    return {
        "name": text(gpu.read("nvmlDeviceGetName")),
        "uuid": text(gpu.read("nvmlDeviceGetUUID")),
        "pci": pci if isinstance(pci, Unread) else str(text(part(pci, "busId"))).lower(),
        "virtualization": mode if isinstance(mode, Unread) else VIRTUALIZATION[int(mode)],
    }


def _refusal(failure: NvmlFailure) -> str:
    match failure.name:
        case "NoPermission":
            return f"{failure}: the agent may not open this GPU's device"
        case "Unknown":
            return (
                f"{failure}: typical of a container that lost its GPU devices; check /dev/nvidia* and the device "
                "cgroup, the GPU itself may be well"
            )
        case _:
            return f"{failure} while it was opened"
