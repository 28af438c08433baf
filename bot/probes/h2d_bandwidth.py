"""Does data reach the GPU at the link's speed, from pinned and from ordinary memory."""

from __future__ import annotations

from dataclasses import asdict

from bot.argument import MAX_GPUS, Argument, ArgumentKind, Arguments
from bot.device.cuda import CopySpeeds, copy_speeds, link_limit
from bot.device.field import Unread
from bot.device.nvml import STANDIN_PREFIX
from bot.domain.finding import Finding
from bot.errors import ProbeError, Reason
from bot.probe import Cost, ProbeContext, Reading, critical, describe, info

REFERENCE_GB_PER_S = {"A100": 21.0, "H100": 48.0, "H200": 55.0}
"""Source: Azure/azurehpc-health-checks, lowest accepted host-to-device figure by model."""
LINK_RATIO = 0.6
"""Our judgement, for other models: the references above are 0.67 to 0.87 of their link's figure; less is a fault."""
PINNED_GAIN_RATIO = 0.5
"""Our judgement: pageable copies run through a staging buffer and are often half as fast; less is worth naming."""
DEFAULT_BYTES = 64 * 2**20
"""Our judgement: large enough that the start of a copy does not count, small enough to last milliseconds."""
MAX_BYTES = 2**30
"""A bound: six copies of a GiB take a second at PCIe generation 3."""

_GPU = Argument(
    name="gpu",
    kind=ArgumentKind.WHOLE,
    summary="index of the GPU, in the order of the bus",
    is_required=True,
    high=MAX_GPUS - 1,
)
_BYTES = Argument(
    name="bytes",
    kind=ArgumentKind.WHOLE,
    summary="size of the buffer that is copied",
    default=DEFAULT_BYTES,
    low=2**20,
    high=MAX_BYTES,
)


@describe(
    summary="Copies a bounded buffer to a GPU, from pinned and from pageable memory",
    cost=Cost.HEAVY,
    findings=("gpu.h2d_slow", "gpu.h2d_pageable_only", "gpu.h2d_ok"),
    arguments=(_GPU, _BYTES),
    needs=("libcuda", "free memory on the GPU, four times the buffer"),
    serial_group="nvml",
    deadline_seconds=30.0,
)
def h2d_bandwidth(context: ProbeContext, arguments: Arguments) -> Reading:
    """Takes turns with the probes that read NVML: one client of the driver at a time."""
    if context.nvml_library.startswith(STANDIN_PREFIX) and not context.cuda_library:
        raise ProbeError(
            "the GPU of this node is a stand-in; there is nothing to copy to",
            reason=Reason.UNSUPPORTED,
        )
    gpu, size = arguments.whole("gpu"), arguments.whole("bytes")
    context.mark("copying")
    speeds = copy_speeds(context.cuda_library, gpu, size)
    limit = link_limit(context.sys_root, speeds.pci)
    reference = _reference(speeds.name, limit)
    findings: list[Finding] = []
    not_checked: list[str] = []
    if isinstance(speeds.pinned, Unread):
        findings.append(_pageable_only(gpu, speeds, speeds.pinned, reference))
    elif reference is None:
        not_checked.append(
            f"speed: there is no reference for {speeds.name} and its link is not told"
        )
    elif speeds.pinned < reference:
        text = (
            f"GPU {gpu} ({speeds.name}): pinned copy {speeds.pinned:.1f} GB/s, "
            f"at least {reference:.1f} is usual"
        )
        findings.append(
            critical("gpu.h2d_slow", text, value=speeds.pinned, unit="GB/s", threshold=reference)
        )
    if not findings and not not_checked:
        findings.append(info("gpu.h2d_ok", f"GPU {gpu}: host-to-device copy at reference speed"))
    return Reading(
        findings=tuple(findings),
        not_checked=tuple(not_checked),
        data={
            "gpu": gpu,
            "buffer_bytes": size,
            "link_limit_gb_per_s": limit,
            "reference_gb_per_s": reference,
            "is_pageable_slow": _is_pageable_slow(speeds),
            **{_UNITS.get(name, name): value for name, value in asdict(speeds).items()},
        },
    )


_UNITS = {"pinned": "pinned_gb_per_s", "pageable": "pageable_gb_per_s"}


def _reference(name: str, limit: float | Unread) -> float | None:
    for model, figure in REFERENCE_GB_PER_S.items():
        if model in name:
            return figure
    return None if isinstance(limit, Unread) else LINK_RATIO * limit


def _is_pageable_slow(speeds: CopySpeeds) -> bool | None:
    if isinstance(speeds.pinned, Unread):
        return None
    return speeds.pageable < PINNED_GAIN_RATIO * speeds.pinned


def _pageable_only(
    gpu: int, speeds: CopySpeeds, pinned: Unread, reference: float | None
) -> Finding:
    text = (
        f"GPU {gpu}: {pinned.detail}; copies run at the pageable figure, {speeds.pageable:.1f} GB/s"
    )
    return critical(
        "gpu.h2d_pageable_only", text, value=speeds.pageable, unit="GB/s", threshold=reference
    )
