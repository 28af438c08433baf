"""Did a GPU report errors: Xid lines, uncorrected ECC, row remapping."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import GPUS, Arguments
from bot.device.field import Unread
from bot.device.gpu_driver import explain
from bot.device.gpu_health import GpuHealth, read_health
from bot.device.kernel_log import read_kernel_log
from bot.device.nvml import open_nvml
from bot.device.nvml_error import NvmlFailure
from bot.device.xid import XidEvent, normal_address, xid_events
from bot.device.xid_catalog import classify
from bot.device.xid_verdict import losses, repeats, xid_findings
from bot.domain.finding import Finding
from bot.errors import ProbeError
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info, warning

ECC_UNCORRECTED = 0
"""Source: facebookresearch/gcm, uncorrected volatile errors above 0."""
RETIRED_PAGES = 63
"""Source: NVIDIA DCGM, 63 and more retired pages fail the card; Azure fails a V100 at 62."""
_SHOWN = 32


@describe(
    summary="Xid events of the kernel log with what several sources say of them, ECC and row remapping",
    cost=Cost.CHEAP,
    findings=(
        "gpu.xid",
        "gpu.ecc_uncorrected",
        "gpu.row_remap_failed",
        "gpu.row_remap_pending",
        "gpu.lost",
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
    lost = losses(
        events,
        [card.index for card in cards if card.lost is not None],
        {normal_address(str(card.identity["pci"])) for card in cards if card.is_told},
    )
    findings = xid_findings(events, uptime, label)
    findings += [
        critical("gpu.lost", f"{label}{text}", value=1, unit="gpus", threshold=0) for text in lost
    ]
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
            "repeats": repeats(events),
            "lost_without_xid": bool(lost),
            **({"standin": True} if is_standin else {}),
        },
    )


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
    pages = card.retired_pages
    if not isinstance(pages, Unread) and pages >= RETIRED_PAGES:
        text = f"{name}: {pages:.0f} pages are retired; the card is to be replaced"
        findings.append(
            critical(
                "gpu.row_remap_failed", text, value=pages, unit="pages", threshold=RETIRED_PAGES
            )
        )
    if card.is_retirement_pending is True:
        text = f"{name}: page retirement waits for a reset; the workload may go on"
        findings.append(warning("gpu.row_remap_pending", text, value=1, unit="flag", threshold=0))
    if card.is_remap_pending is True:
        text = f"{name}: row remapping waits for a reset; the workload may go on"
        findings.append(warning("gpu.row_remap_pending", text, value=1, unit="flag", threshold=0))
    return findings
