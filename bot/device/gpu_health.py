"""ECC counters and row remapping of every GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.device.field import Unread, is_tolerable
from bot.device.gpu import each_gpu
from bot.device.nvml import NvmlLibrary

_UNCORRECTED, _CORRECTED, _VOLATILE = 1, 0, 0
"""Source: nvml.h, nvmlMemoryErrorType_t and nvmlEccCounterType_t."""

Field = float | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """One GPU; ECC counts since the driver was loaded. Flags are None where the card has no row remapping."""

    index: int
    identity: Mapping[str, object]
    lost: str | None
    skipped: str | None
    ecc_uncorrected: Field
    ecc_corrected: Field
    remapped_rows: Field
    is_remap_pending: bool | Unread
    is_remap_failed: bool | Unread

    @property
    def gaps(self) -> list[str]:
        """What failed to be read; a card without the feature is no gap."""
        if self.lost or self.skipped:
            return [f"GPU {self.index}: {self.lost or self.skipped}"]
        fields = {"ECC": self.ecc_uncorrected, "row remapping": self.is_remap_failed}
        return [
            f"GPU {self.index} {name}: {value.state.value} {value.detail}".strip()
            for name, value in fields.items()
            if isinstance(value, Unread) and not is_tolerable(value)
        ]


def read_health(
    library: NvmlLibrary,
    wanted: tuple[int, ...] | None,
    *,
    mark: Callable[[str], None],
    skipped: Mapping[str, str],
) -> tuple[GpuHealth, ...]:
    """One look at each GPU.

    Raises:
        NvmlFailure: the driver does not even tell how many GPUs there are.
    """
    found: list[GpuHealth] = []
    for gpu in each_gpu(library, wanted, mark, skipped):
        rows = gpu.read("nvmlDeviceGetRemappedRows")
        is_told = not isinstance(rows, Unread)
        found.append(
            GpuHealth(
                index=gpu.index,
                identity=gpu.identity,
                ecc_uncorrected=gpu.number(
                    "nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _VOLATILE, low=0, high=2**62
                ),
                ecc_corrected=gpu.number(
                    "nvmlDeviceGetTotalEccErrors", _CORRECTED, _VOLATILE, low=0, high=2**62
                ),
                remapped_rows=float(rows[0] + rows[1]) if is_told else rows,
                is_remap_pending=bool(rows[2]) if is_told else rows,
                is_remap_failed=bool(rows[3]) if is_told else rows,
                lost=gpu.lost,
                skipped=gpu.skipped,
            )
        )
    mark("judging")
    return tuple(found)
