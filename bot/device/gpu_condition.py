"""Clocks, power, heat and memory of every GPU, throttle time as a delta over a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bot.device.field import FieldState, Unread, in_range, is_tolerable
from bot.device.gpu import THROTTLE_COUNTERS, Gpu, Number, decode_reasons, each_gpu
from bot.device.nvml import NvmlLibrary

Field = float | Unread

# Source of the arguments: nvml.h, NVML_CLOCK_SM, NVML_TEMPERATURE_GPU, nvmlTemperatureThresholds_t.
_SM_CLOCK, _GPU_SENSOR = 1, 0
_THRESHOLD_SLOWDOWN, _THRESHOLD_MEMORY_MAX, _THRESHOLD_GPU_MAX = 1, 2, 3
_AFTER = {**THROTTLE_COUNTERS, "memory_temperature": 82}
"""Source: nvml.h, NVML_FI_DEV_MEMORY_TEMP; cards without a sensor in their memory do not have it."""
_NUMBERS = {
    "sm_clock_mhz": Number("nvmlDeviceGetClockInfo", (_SM_CLOCK,), 0, 10_000),
    "max_sm_clock_mhz": Number("nvmlDeviceGetMaxClockInfo", (_SM_CLOCK,), 1, 10_000),
    "performance_state": Number("nvmlDeviceGetPerformanceState", (), 0, 15),
    "temperature_celsius": Number("nvmlDeviceGetTemperature", (_GPU_SENSOR,), -40, 200),
    "max_temperature_celsius": Number(
        "nvmlDeviceGetTemperatureThreshold", (_THRESHOLD_GPU_MAX,), 1, 200
    ),
    "slowdown_celsius": Number("nvmlDeviceGetTemperatureThreshold", (_THRESHOLD_SLOWDOWN,), 1, 200),
    "power_watts": Number("nvmlDeviceGetPowerUsage", (), 0, 5000, 0.001),
    "power_limit_watts": Number("nvmlDeviceGetEnforcedPowerLimit", (), 1, 5000, 0.001),
}
_NOT_ASKED: Field = Unread(FieldState.NOT_SUPPORTED, "not asked for on this card")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """One MIG device; utilization is not told at this level."""

    instance: object
    uuid: object
    used_bytes: Field
    total_bytes: Field


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCondition:
    """One GPU. `throttled_ratio` is the share of the window by kind, from the driver's nanosecond counters.

    `margin_celsius` is how far it may still warm up, asked only of cards that tell no highest temperature.
    """

    index: int
    identity: Mapping[str, object]
    lost: str | None
    skipped: str | None
    refused: str | None
    reasons: int | Unread
    sm_clock_mhz: Field
    max_sm_clock_mhz: Field
    performance_state: Field
    temperature_celsius: Field
    max_temperature_celsius: Field
    slowdown_celsius: Field
    memory_temperature_celsius: Field
    max_memory_temperature_celsius: Field
    margin_celsius: Field
    power_watts: Field
    power_limit_watts: Field
    utilization_ratio: Field
    memory_used_bytes: Field
    memory_total_bytes: Field
    throttled_ratio: Mapping[str, Field]
    mig: tuple[MigInstance, ...] | Unread
    slowest_call_seconds: float

    @property
    def unreadable(self) -> list[str]:
        """Fields that must be known for a clean verdict and are not."""
        named = {
            "throttle reasons": self.reasons,
            "SM clock": self.sm_clock_mhz,
            "highest SM clock": self.max_sm_clock_mhz,
            "temperature": self.temperature_celsius,
            "highest temperature": self.max_temperature_celsius,
            "slowdown temperature": self.slowdown_celsius,
            "memory temperature": self.memory_temperature_celsius,
            "power": self.power_watts,
            "utilization": self.utilization_ratio,
            # Under MIG the parent's memory may be withheld; the instances tell it.
            "memory": None
            if self.mig and not isinstance(self.mig, Unread)
            else self.memory_used_bytes,
            "MIG devices": self.mig,
            **{f"time in {name}": share for name, share in self.throttled_ratio.items()},
        }
        # Without these nothing is known of throttling, which no card in question lacks by design.
        essential = {"throttle reasons", "SM clock"}
        return [
            f"{name}: {value.state.value} {value.detail}".strip()
            for name, value in named.items()
            if isinstance(value, Unread) and (name in essential or not is_tolerable(value))
        ]

    def to_row(self) -> dict[str, object]:
        """The GPU as it stands in a result's data."""
        row: dict[str, object] = {
            "index": self.index,
            **self.identity,
            "lost": self.lost,
            "skipped": self.skipped,
            "refused": self.refused,
            "throttle_reasons_raw": self.reasons,
            "throttle_reasons": (
                self.reasons if isinstance(self.reasons, Unread) else decode_reasons(self.reasons)
            ),
            "throttled_ratio": self.throttled_ratio,
            "slowest_call_seconds": self.slowest_call_seconds,
        }
        for name in (
            "sm_clock_mhz",
            "max_sm_clock_mhz",
            "performance_state",
            "temperature_celsius",
            "max_temperature_celsius",
            "slowdown_celsius",
            "memory_temperature_celsius",
            "max_memory_temperature_celsius",
            "margin_celsius",
            "power_watts",
            "power_limit_watts",
            "utilization_ratio",
            "memory_used_bytes",
            "memory_total_bytes",
        ):
            row[name] = getattr(self, name)
        if isinstance(self.mig, Unread) or self.mig:
            row["mig"] = (
                self.mig
                if isinstance(self.mig, Unread)
                else [
                    {
                        "instance": item.instance,
                        "uuid": item.uuid,
                        "memory_used_bytes": item.used_bytes,
                        "memory_total_bytes": item.total_bytes,
                    }
                    for item in self.mig
                ]
            )
        return row


@dataclass(slots=True)
class _Pass:
    gpu: Gpu
    counters: dict[str, int | float | Unread] = field(default_factory=dict)


def read_conditions(
    library: NvmlLibrary,
    wanted: tuple[int, ...] | None,
    window_seconds: float,
    *,
    mark: Callable[[str], None],
    skipped: Mapping[str, str],
    wait: Callable[[float], None],
    monotonic: Callable[[], float],
) -> tuple[GpuCondition, ...]:
    """Counters first, then the window, then everything.

    Raises:
        NvmlFailure: the driver does not even tell how many GPUs there are.
    """
    started = monotonic()
    passes = [
        _Pass(gpu, gpu.fields(THROTTLE_COUNTERS))
        for gpu in each_gpu(library, wanted, mark, skipped)
    ]
    mark("window")
    wait(window_seconds)
    conditions: list[GpuCondition] = []
    for item in passes:
        mark(f"gpu {item.gpu.index}" if item.gpu.skipped is None else "skipped")
        after = item.gpu.fields(_AFTER)
        seconds = max(1e-6, monotonic() - started)
        throttled = {
            name: _share(item.counters[name], after[name], seconds) for name in THROTTLE_COUNTERS
        }
        conditions.append(_condition(item.gpu, throttled, after["memory_temperature"]))
    mark("judging")
    return tuple(conditions)


def _condition(gpu: Gpu, throttled: Mapping[str, Field], memory_heat: Field) -> GpuCondition:
    used, total = gpu.memory()
    numbers = gpu.numbers(_NUMBERS)
    if not isinstance(memory_heat, Unread):
        memory_heat = in_range(memory_heat, 1, 200)
    memory_max = margin = _NOT_ASKED
    if not isinstance(memory_heat, Unread):
        memory_max = gpu.number(
            "nvmlDeviceGetTemperatureThreshold", _THRESHOLD_MEMORY_MAX, low=1, high=200
        )
    if isinstance(numbers["max_temperature_celsius"], Unread):
        margin = gpu.number("nvmlDeviceGetMarginTemperature", low=-100, high=200)
    return GpuCondition(
        index=gpu.index,
        identity=gpu.identity,
        reasons=gpu.throttle_reasons(),
        **numbers,
        memory_temperature_celsius=memory_heat,
        max_memory_temperature_celsius=memory_max,
        margin_celsius=margin,
        utilization_ratio=gpu.utilization(),
        memory_used_bytes=used,
        memory_total_bytes=total,
        throttled_ratio=throttled,
        mig=_mig(gpu),
        slowest_call_seconds=gpu.slowest_call_seconds,
        # Last, because a device may be lost in the middle of being read.
        lost=gpu.lost,
        skipped=gpu.skipped,
        refused=gpu.refused,
    )


def _mig(gpu: Gpu) -> tuple[MigInstance, ...] | Unread:
    instances = gpu.mig_instances()
    if isinstance(instances, Unread):
        return instances
    found: list[MigInstance] = []
    for item in instances:
        used, total = item.memory()
        found.append(
            MigInstance(
                instance=item.read("nvmlDeviceGetGpuInstanceId"),
                uuid=item.read("nvmlDeviceGetUUID"),
                used_bytes=used,
                total_bytes=total,
            )
        )
    return tuple(found)


def _share(before: float | Unread, after: float | Unread, seconds: float) -> Field:
    if isinstance(before, Unread):
        return before
    if isinstance(after, Unread):
        return after
    share = (after - before) / 1e9 / seconds
    return share if 0.0 <= share <= 1.0 else float(share > 0.0)
