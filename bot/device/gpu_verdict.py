"""Judges one GPU's condition: throttling, clock, heat, memory."""

from __future__ import annotations

from bot.device.field import Unread
from bot.device.gpu import decode_reasons
from bot.device.gpu_condition import GpuCondition
from bot.domain.finding import Finding, FindingSeverity

CLOCK_RATIO = 0.9
"""Our judgement: a loaded GPU within 10 % of its highest clock is at its usual clock."""
LOADED_RATIO = 0.5
"""Our judgement: below half utilization the clock may fall because there is nothing to do."""
HEAT_MARGIN_CELSIUS = 5.0
"""Our judgement, used only where the card tells its slowdown temperature but no operating maximum."""
MARGIN_CELSIUS = 0.0
"""Source: NVIDIA/NVSentinel, a margin (T.Limit) of 0 or less is past the highest operating temperature."""
MEMORY_RATIO = 0.95
"""Our judgement; an engine that reserves its pool at start is near it by design, so it is a bystander there."""
THROTTLED_RATIO = 0.01
"""Our judgement: 1 % of the window; any increase within a minute is a warning in DCGM."""
_SW_POWER_CAP, _HW_SLOWDOWN = 0x4, 0x8
_SW_THERMAL, _HW_THERMAL, _HW_BRAKE, _IDLE = 0x20, 0x40, 0x80, 0x1
"""Source: nvml.h, nvmlClocksEventReason*."""


def clock_findings(gpu: GpuCondition, label: str) -> list[Finding]:
    """Throttling by its reason; a low clock without one is a finding of its own.

    Bits are tested one by one: a mask of 0x5, idle and power cap, equals neither.
    """
    mask = 0 if isinstance(gpu.reasons, Unread) else gpu.reasons
    clock = None if isinstance(gpu.sm_clock_mhz, Unread) else gpu.sm_clock_mhz
    limit = None if isinstance(gpu.max_sm_clock_mhz, Unread) else gpu.max_sm_clock_mhz
    at = f", SM clock {clock:.0f} MHz" if clock is not None else ""
    findings: list[Finding] = []
    thermal = mask & (_SW_THERMAL | _HW_THERMAL) or _went(gpu, "sw_thermal", "hw_thermal")
    brake = mask & _HW_BRAKE or _went(gpu, "hw_power_brake")
    if thermal:
        is_hardware = bool(mask & _HW_THERMAL or _went(gpu, "hw_thermal"))
        kind = "hardware" if is_hardware else "software"
        findings.append(
            _of_clock(
                "gpu.throttle_thermal",
                f"{label}GPU {gpu.index}: {kind} thermal slowdown{at}",
                clock,
                limit,
                is_critical=is_hardware,
            )
        )
    if brake:
        text = f"{label}GPU {gpu.index}: HW power brake asserted from outside{at}"
        findings.append(_of_clock("gpu.throttle_power_brake", text, clock, limit, is_critical=True))
    is_low = _is_low(gpu, clock, limit)
    if mask & _SW_POWER_CAP:
        share = f", {clock / limit:.0%} of its highest" if clock is not None and limit else ""
        text = f"{label}GPU {gpu.index}: SW power cap{at}{share}"
        found = _of_clock("gpu.power_cap", text, clock, limit, is_critical=False)
        findings.append(found if is_low else _as_info(found))
    elif is_low and not thermal and not brake and clock is not None and limit is not None:
        # A limit that somebody set, or the slowest member of a boost group, is a reason too.
        others = decode_reasons(mask & ~(_IDLE | _HW_SLOWDOWN))
        unsaid = (
            "HW slowdown, reason not told" if mask & _HW_SLOWDOWN else "no throttle reason told"
        )
        why = f"limited by {', '.join(others)}" if others else unsaid
        text = f"{label}GPU {gpu.index} loaded at {clock:.0f} of {limit:.0f} MHz ({why})"
        findings.append(
            _of_clock(
                "gpu.clock_below_expected", text, clock, CLOCK_RATIO * limit, is_critical=True
            )
        )
    return findings


def heat_findings(gpu: GpuCondition, label: str) -> list[Finding]:
    """A missing threshold means not judged, never zero."""
    return _core_heat(gpu, label) + _memory_heat(gpu, label)


def is_heat_judged(gpu: GpuCondition) -> bool:
    """True where the card tells a temperature and a limit for it."""
    return _heat_limit(gpu) is not None or not isinstance(gpu.margin_celsius, Unread)


def _heat_limit(gpu: GpuCondition) -> float | None:
    slowdown, highest = gpu.slowdown_celsius, gpu.max_temperature_celsius
    if isinstance(gpu.temperature_celsius, Unread):
        return None
    if not isinstance(highest, Unread):
        return highest
    return None if isinstance(slowdown, Unread) else slowdown - HEAT_MARGIN_CELSIUS


def _core_heat(gpu: GpuCondition, label: str) -> list[Finding]:
    now, slowdown, margin = gpu.temperature_celsius, gpu.slowdown_celsius, gpu.margin_celsius
    limit = _heat_limit(gpu)
    if not isinstance(margin, Unread) and margin <= MARGIN_CELSIUS:
        return [
            Finding(
                id="gpu.temperature_high",
                severity=FindingSeverity.WARNING,
                summary=f"{label}GPU {gpu.index} past its highest operating temperature, margin {margin:.0f} C",
                value=margin,
                unit="C",
                threshold=MARGIN_CELSIUS,
            )
        ]
    if isinstance(now, Unread) or limit is None or now < limit:
        return []
    is_past = not isinstance(slowdown, Unread) and now >= slowdown
    at = "" if isinstance(slowdown, Unread) else f" (slowdown at {slowdown:.0f} C)"
    return [
        Finding(
            id="gpu.temperature_high",
            severity=FindingSeverity.CRITICAL if is_past else FindingSeverity.WARNING,
            summary=f"{label}GPU {gpu.index} at {now:.0f} C{at}",
            value=now,
            unit="C",
            threshold=limit,
        )
    ]


def _memory_heat(gpu: GpuCondition, label: str) -> list[Finding]:
    """Source: leptonai/gpud, degraded with the memory above its highest temperature."""
    now, highest = gpu.memory_temperature_celsius, gpu.max_memory_temperature_celsius
    if isinstance(now, Unread) or isinstance(highest, Unread) or now <= highest:
        return []
    return [
        Finding(
            id="gpu.temperature_high",
            severity=FindingSeverity.WARNING,
            summary=f"{label}GPU {gpu.index} memory at {now:.0f} C, highest {highest:.0f} C",
            value=now,
            unit="C",
            threshold=highest,
        )
    ]


def memory_findings(gpu: GpuCondition, label: str) -> list[Finding]:
    """By MIG instance where there are any, else for the whole card."""
    parts = [(f"GPU {gpu.index}", gpu.memory_used_bytes, gpu.memory_total_bytes)]
    if not isinstance(gpu.mig, Unread) and gpu.mig:
        parts = [
            (f"GPU {gpu.index} MIG instance {item.instance}", item.used_bytes, item.total_bytes)
            for item in gpu.mig
        ]
    findings: list[Finding] = []
    for name, used, total in parts:
        if isinstance(used, Unread) or isinstance(total, Unread) or used / total <= MEMORY_RATIO:
            continue
        findings.append(
            Finding(
                id="gpu.memory_nearly_full",
                severity=FindingSeverity.WARNING,
                summary=f"{label}{name} framebuffer {used / total:.1%} used",
                value=round(used / total, 4),
                unit="ratio",
                threshold=MEMORY_RATIO,
            )
        )
    return findings


def _went(gpu: GpuCondition, *names: str) -> bool:
    shares = [gpu.throttled_ratio.get(name) for name in names]
    return any(isinstance(share, (int, float)) and share > THROTTLED_RATIO for share in shares)


def _is_low(gpu: GpuCondition, clock: float | None, limit: float | None) -> bool:
    if clock is None or limit is None or isinstance(gpu.utilization_ratio, Unread):
        return False
    is_idle = not isinstance(gpu.reasons, Unread) and bool(gpu.reasons & _IDLE)
    return not is_idle and gpu.utilization_ratio >= LOADED_RATIO and clock < CLOCK_RATIO * limit


def _of_clock(
    finding_id: str, text: str, clock: float | None, limit: float | None, *, is_critical: bool
) -> Finding:
    return Finding(
        id=finding_id,
        severity=FindingSeverity.CRITICAL if is_critical else FindingSeverity.WARNING,
        summary=text,
        value=clock,
        unit="MHz" if clock is not None else None,
        threshold=limit,
    )


def _as_info(found: Finding) -> Finding:
    return Finding(id=found.id, severity=FindingSeverity.INFO, summary=found.summary)
