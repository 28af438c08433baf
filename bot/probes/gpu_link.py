"""Are the GPUs' links at full width and speed, and free of errors."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import GPUS, Arguments
from bot.device.field import Unread, is_tolerable
from bot.device.gpu_driver import explain
from bot.device.gpu_links import GpuLink, read_links
from bot.device.nvml import open_nvml
from bot.device.nvml_error import NvmlFailure
from bot.domain.finding import Finding
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

WINDOW_SECONDS = 2.0
"""Our judgement: at least five samples over two seconds before a generation is judged."""
CRC_PER_SECOND = 100
"""Source: NVIDIA DCGM, NVLink CRC errors at 100 a second; other NVLink errors at the first."""


@describe(
    summary="PCIe width, generation and replays, NVLink errors; the generation is judged under load only",
    cost=Cost.CHEAP,
    findings=(
        "gpu.pcie_width_degraded",
        "gpu.pcie_gen_degraded",
        "gpu.pcie_replay",
        "gpu.nvlink_error",
        "gpu.link_ok",
    ),
    arguments=(GPUS,),
    needs=("NVML",),
    serial_group="nvml",
    deadline_seconds=8.0,
)
def gpu_link(context: ProbeContext, arguments: Arguments) -> Reading:
    """Samples each link five times."""
    context.mark("init")
    try:
        with open_nvml(context.nvml_library) as library:
            links = read_links(
                library,
                arguments.gpus(),
                WINDOW_SECONDS,
                mark=context.mark,
                skipped=context.skipped,
                wait=context.wait,
                monotonic=context.monotonic,
            )
            is_standin = library.is_standin
    except NvmlFailure as failure:
        raise explain(failure, context.proc, context.package_log) from failure
    label = "stand-in reading: " if is_standin else ""
    findings = [finding for link in links for finding in _findings(link, label)]
    not_checked = [gap for link in links for gap in _gaps(link)]
    if not links:
        not_checked.append("the driver has no GPU")
    if not findings and not not_checked:
        findings.append(info("gpu.link_ok", f"{label}link at full width and generation"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "window_s": WINDOW_SECONDS,
            "gpus": [asdict(link) for link in links],
            **({"standin": True} if is_standin else {}),
        },
    )


def _findings(link: GpuLink, label: str) -> list[Finding]:
    findings: list[Finding] = []
    name = f"{label}GPU {link.index}"
    width, most = link.width, link.max_width
    if not isinstance(width, Unread) and not isinstance(most, Unread) and width < most:
        text = f"{name}: PCIe x{width:.0f} of x{most:.0f}"
        findings.append(
            critical("gpu.pcie_width_degraded", text, value=width, unit="lanes", threshold=most)
        )
    best, highest = link.best_loaded_generation, link.max_generation
    if best is not None and not isinstance(highest, Unread) and best < highest:
        text = f"{name}: PCIe Gen{best:.0f} of Gen{highest:.0f} in {link.loaded_samples} loaded samples"
        findings.append(
            warning("gpu.pcie_gen_degraded", text, value=best, unit="gen", threshold=highest)
        )
    limit = link.replay_limit_per_minute
    if not isinstance(link.replays, Unread) and limit is not None and link.replays >= 2:
        # Two at least: one replay in two seconds would already be thirty a minute.
        rate = link.replays * 60 / link.seconds
        if rate > limit:
            text = f"{name}: {link.replays:.0f} PCIe replays in {link.seconds:.1f} s"
            findings.append(
                warning("gpu.pcie_replay", text, value=rate, unit="1/min", threshold=limit)
            )
    return findings + _nvlink(link, name)


def _nvlink(link: GpuLink, name: str) -> list[Finding]:
    if isinstance(link.nvlink_errors, Unread):
        return []
    bad = {
        kind: count
        for kind, count in link.nvlink_errors.items()
        if (count / link.seconds >= CRC_PER_SECOND if kind.startswith("crc") else count >= 1)
    }
    if not bad:
        return []
    total = sum(bad.values())
    text = f"{name}: NVLink errors in {link.seconds:.1f} s: {bad}"
    return [warning("gpu.nvlink_error", text, value=total, unit="errors", threshold=0)]


def _gaps(link: GpuLink) -> list[str]:
    name = f"GPU {link.index}"
    silent = link.lost or link.skipped or link.refused
    if silent is not None:
        return [f"{name}: {silent}"]
    gaps: list[str] = []
    if isinstance(link.width, Unread) or isinstance(link.max_width, Unread):
        gaps.append(f"{name}: PCIe width cannot be read")
    if isinstance(link.generation, Unread) or isinstance(link.max_generation, Unread):
        gaps.append(f"{name}: PCIe generation cannot be read")
    elif link.best_loaded_generation is None and link.generation < link.max_generation:
        when = f"loaded at {link.loaded_samples} looks only" if link.loaded_samples else "idle"
        gaps.append(
            f"{name}: {when} at Gen{link.generation:.0f}, which is by design; judge it under load"
        )
    if not is_tolerable(link.replays):
        gaps.append(f"{name}: PCIe replays cannot be read")
    if not is_tolerable(link.nvlink_errors):
        gaps.append(f"{name}: NVLink error counters cannot be read")
    return gaps
