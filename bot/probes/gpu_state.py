"""Do the GPUs run as they should: throttling, clocks, heat, memory, and are they all there."""

from __future__ import annotations

from bot.argument import GPUS, Arguments
from bot.device.field import Unread
from bot.device.gpu_condition import GpuCondition, read_conditions
from bot.device.gpu_driver import explain, pci_gpus
from bot.device.gpu_verdict import clock_findings, heat_findings, is_heat_judged, memory_findings
from bot.device.nvml import NvmlLibrary, open_nvml
from bot.device.nvml_error import NvmlFailure
from bot.domain.finding import Finding, FindingSeverity
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info

WINDOW_SECONDS = 1.0
"""Throttle counters are nanoseconds, so that a second shows even short events; the bit mask alone would miss them."""


@describe(
    summary="Throttling, clocks, temperature, power and memory of the GPUs, and whether any is lost",
    cost=Cost.CHEAP,
    findings=(
        "gpu.throttle_thermal",
        "gpu.throttle_power_brake",
        "gpu.power_cap",
        "gpu.clock_below_expected",
        "gpu.temperature_high",
        "gpu.memory_nearly_full",
        "gpu.lost",
        "gpu.count_mismatch",
        "gpu.ok",
    ),
    arguments=(GPUS,),
    needs=("NVML",),
    serial_group="nvml",
    deadline_seconds=8.0,
)
def gpu_state(context: ProbeContext, arguments: Arguments) -> Reading:
    """Every GPU by itself: one that is lost or hangs leaves the readings of the others."""
    wanted = arguments.gpus()
    context.mark("init")
    try:
        with open_nvml(context.nvml_library) as library:
            conditions = read_conditions(
                library,
                wanted,
                WINDOW_SECONDS,
                mark=context.mark,
                skipped=context.skipped,
                wait=context.wait,
                monotonic=context.monotonic,
            )
            driver = library.call("nvmlSystemGetDriverVersion")
            mismatch = _count_mismatch(context, library)
            is_standin = library.is_standin
    except NvmlFailure as failure:
        raise explain(failure, context.proc, context.package_log) from failure
    label = "stand-in reading: " if is_standin else ""
    findings = [_lost(item, label) for item in conditions if item.lost is not None]
    findings += [mismatch] if mismatch is not None else []
    not_checked: list[str] = []
    for item in conditions:
        if item.lost is not None:
            not_checked.append(f"GPU {item.index}: lost, {item.lost}")
        elif item.refused is not None:
            not_checked.append(f"GPU {item.index}: {item.refused}")
        elif item.skipped is not None:
            not_checked.append(
                f"GPU {item.index}: {item.skipped}; the driver's lock is taken, look for large pinned host "
                "allocations or a failing GPU on this node"
            )
        else:
            is_guest = item.identity.get("virtualization") == "vgpu"
            where = " (a virtual GPU: its host can tell)" if is_guest else ""
            not_checked += [f"GPU {item.index} {text}{where}" for text in item.unreadable]
            findings += clock_findings(item, label) + heat_findings(item, label)
            findings += memory_findings(item, label)
    if not conditions:
        not_checked.append("the driver has no GPU")
    is_clean = all(finding.severity is FindingSeverity.INFO for finding in findings)
    if is_clean and not not_checked:
        heat = "temperature" if all(map(is_heat_judged, conditions)) else "throttling"
        findings.append(info("gpu.ok", f"{label}clocks, power and {heat} within limits"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": WINDOW_SECONDS,
            "driver_version": driver,
            "gpu_count": len(conditions),
            "gpus": [item.to_row() for item in conditions],
            **({"standin": True} if is_standin else {}),
        },
    )


def _lost(item: GpuCondition, label: str) -> Finding:
    return Finding(
        id="gpu.lost",
        severity=FindingSeverity.CRITICAL,
        summary=f"{label}GPU {item.index} does not answer: {item.lost}",
    )


def _count_mismatch(context: ProbeContext, library: NvmlLibrary) -> Finding | None:
    """More GPUs on the bus than in the driver: one fell off, with or without an Xid."""
    if library.is_standin:
        on_bus = library.pci_count()
    else:
        addresses = pci_gpus(context.sys_root)
        on_bus = None if addresses is None else len(addresses)
    count = library.call("nvmlDeviceGetCount")
    if isinstance(count, Unread) or on_bus is None or on_bus <= count:
        return None
    text = f"{on_bus} GPUs on the PCI bus, {count} in the driver"
    return critical("gpu.count_mismatch", text, value=count, unit="gpus", threshold=on_bus)
