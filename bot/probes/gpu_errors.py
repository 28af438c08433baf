"""Did a GPU report errors: Xid lines, uncorrected ECC, row remapping."""

from __future__ import annotations

from dataclasses import asdict

from bot.device.field import Unread
from bot.device.gpu_driver import explain
from bot.device.gpu_health import GpuHealth, read_health
from bot.device.kernel_log import read_kernel_log
from bot.device.nvml import open_nvml
from bot.device.nvml_error import NvmlFailure
from bot.device.xid import XidEvent, xid_events
from bot.device.xid_catalog import classify, needs_hands
from bot.domain.finding import Finding, FindingSeverity
from bot.errors import ProbeError
from bot.probe import (
    GPUS,
    Arguments,
    Cost,
    ProbeContext,
    Reading,
    critical,
    describe,
    info,
    warning,
)

ECC_UNCORRECTED = 0
"""Source: facebookresearch/gcm, uncorrected volatile errors above 0."""
_SHOWN = 32


@describe(
    summary="Xid events of the kernel log with what several sources say of them, ECC and row remapping",
    cost=Cost.CHEAP,
    findings=(
        "gpu.xid",
        "gpu.ecc_uncorrected",
        "gpu.row_remap_failed",
        "gpu.row_remap_pending",
        "gpu.errors_clean",
    ),
    arguments=(GPUS,),
    needs=("NVML", "/dev/kmsg"),
    serial_group="nvml",
)
def gpu_errors(context: ProbeContext, arguments: Arguments) -> Reading:
    """Counters from the driver, history from the kernel log: an Xid stays when the device is gone."""
    context.mark("init")
    try:
        with open_nvml(context.nvml_library) as library:
            cards = read_health(
                library, arguments.gpus(), mark=context.mark, skipped=context.skipped
            )
            is_standin = library.is_standin
    except NvmlFailure as failure:
        raise explain(failure, context.proc, context.package_log) from failure
    not_checked = [gap for card in cards for gap in card.gaps]
    events: tuple[XidEvent, ...] = ()
    try:
        events = xid_events(read_kernel_log(context.kernel_log))
    except ProbeError as failure:
        not_checked.append(f"Xid events: {failure}")
    label = "stand-in reading: " if is_standin else ""
    uptime = context.proc.uptime_seconds()
    findings = _xids(events, uptime, label)
    findings += [finding for card in cards for finding in _of_card(card, label)]
    if not cards:
        not_checked.append("the driver has no GPU")
    if not findings and not not_checked:
        findings.append(info("gpu.errors_clean", f"{label}no Xid, ECC or row-remap event"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "gpus": [asdict(card) for card in cards],
            "events": [
                asdict(event)
                | {
                    "classification": (
                        []
                        if event.code is None or event.is_switch
                        else [asdict(item) for item in classify(event.code)]
                    )
                }
                for event in events[-_SHOWN:]
            ],
            "lost_without_xid": any(event.code is None for event in events),
            **({"standin": True} if is_standin else {}),
        },
    )


def _xids(events: tuple[XidEvent, ...], uptime: float, label: str) -> list[Finding]:
    groups: dict[tuple[int | None, str | None, bool], list[XidEvent]] = {}
    for event in events:
        groups.setdefault((event.code, event.pci, event.is_switch), []).append(event)
    findings: list[Finding] = []
    for (code, pci, is_switch), group in groups.items():
        last = group[-1]
        when = ""
        if last.uptime_seconds is not None:
            when = f", last {max(0.0, uptime - last.uptime_seconds):.0f} s ago"
        who = f", pid {last.pid} {last.process or ''}".rstrip() if last.pid else ""
        if is_switch:
            name = f"NVSwitch SXid {code}"
        else:
            name = f"Xid {code}" if code is not None else "fallen off the bus without an Xid"
        is_grave = not is_switch and (code is None or needs_hands(code))
        findings.append(
            Finding(
                id="gpu.xid",
                severity=FindingSeverity.CRITICAL if is_grave else FindingSeverity.WARNING,
                summary=f"{label}{name} on {pci or 'unknown device'}, {len(group)} times{when}{who}",
                value=code,
                unit="code" if code is not None else None,
            )
        )
    return findings


def _of_card(card: GpuHealth, label: str) -> list[Finding]:
    findings: list[Finding] = []
    name = f"{label}GPU {card.index}"
    count = card.ecc_uncorrected
    if not isinstance(count, Unread) and count > ECC_UNCORRECTED:
        findings.append(
            warning(
                "gpu.ecc_uncorrected",
                f"{name}: {count:.0f} uncorrected ECC errors since the driver was loaded",
                value=count,
                unit="errors",
                threshold=ECC_UNCORRECTED,
            )
        )
    if card.is_remap_failed is True:
        text = f"{name}: row remapping failed; the card is to be replaced"
        findings.append(critical("gpu.row_remap_failed", text, value=1, unit="flag", threshold=0))
    if card.is_remap_pending is True:
        text = f"{name}: row remapping waits for a reset; the workload may go on"
        findings.append(warning("gpu.row_remap_pending", text, value=1, unit="flag", threshold=0))
    return findings
