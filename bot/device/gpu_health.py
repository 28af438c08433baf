"""ECC counters and row remapping of every GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.device.field import FieldState, Unread, in_range, is_tolerable, sane
from bot.device.gpu import Gpu, each_gpu
from bot.device.nvml import NvmlLibrary

_UNCORRECTED, _CORRECTED, _VOLATILE = 1, 0, 0
"""Source: nvml.h, nvmlMemoryErrorType_t and nvmlEccCounterType_t."""
_MOST_ROWS = 1_000_000
"""Far above the 512 remaps at which a card is to be replaced."""

_FIELDS = {
    "retired_single": 29,
    "retired_double": 30,
    "retirement_pending": 31,
    "recovery_action": 230,
}
"""Source: nvml.h, NVML_FI_DEV_RETIRED_* and NVML_FI_DEV_GET_GPU_RECOVERY_ACTION."""
_ACTIONS = (
    "nothing",
    "a reset of the GPU",
    "a reboot of the node",
    "draining peer-to-peer work",
    "draining and a reset",
    "recovery of the IMEX domain",
    "a reset of the bus",
    "a reboot of the system",
)
"""By number. Source: nvml.h, nvmlDeviceGpuRecoveryAction_t."""

Field = float | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """One GPU; ECC counts since the driver was loaded.

    Cards before Ampere retire pages where later ones remap rows. `recovery_action` is what the driver itself asks for.
    """

    index: int
    identity: Mapping[str, object]
    lost: str | None
    skipped: str | None
    refused: str | None
    ecc_uncorrected: Field
    ecc_corrected: Field
    remapped_rows: Field
    is_remap_pending: bool | Unread
    is_remap_failed: bool | Unread
    retired_pages: Field
    is_retirement_pending: bool | Unread
    recovery_action: Field

    @property
    def is_told(self) -> bool:
        """True where the driver tells which card on the bus it is, and that it is there."""
        return self.lost is None and isinstance(self.identity.get("pci"), str)

    @property
    def gaps(self) -> list[str]:
        """What failed to be read; a card without the feature is no gap."""
        silent = self.lost or self.skipped or self.refused
        if silent:
            return [f"GPU {self.index}: {silent}"]
        fields = {
            "ECC": self.ecc_uncorrected,
            "row remapping": self.is_remap_failed,
            "pending row remapping": self.is_remap_pending,
            "retired pages": self.retired_pages,
            "pending page retirement": self.is_retirement_pending,
            "recovery action": self.recovery_action,
        }
        gaps = [
            f"GPU {self.index} {name}: {value.state.value} {value.detail}".strip()
            for name, value in fields.items()
            if isinstance(value, Unread) and not is_tolerable(value)
        ]
        action = self.recovery_action
        if not isinstance(action, Unread) and action != 0:
            # Why it asks stands elsewhere, or was overwritten; a card that asks is not called clean.
            gaps.append(f"GPU {self.index}: the driver asks for {action_name(int(action))}")
        return gaps


def action_name(number: int) -> str:
    """What the driver asks for; a number that is not known yet is no "nothing".

    >>> action_name(1), action_name(9)
    ('a reset of the GPU', 'unknown action 9')
    """
    return _ACTIONS[number] if 0 <= number < len(_ACTIONS) else f"unknown action {number}"


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
        rows, told = _rows(gpu), gpu.fields(_FIELDS)
        single, double = told["retired_single"], told["retired_double"]
        waits = told["retirement_pending"]
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
                remapped_rows=rows[0]
                if isinstance(rows[0], Unread)
                else rows[0] + _or_zero(rows[1]),
                is_remap_pending=rows[2] if isinstance(rows[2], Unread) else bool(rows[2]),
                is_remap_failed=rows[3] if isinstance(rows[3], Unread) else bool(rows[3]),
                retired_pages=_sum(single, double),
                is_retirement_pending=waits if isinstance(waits, Unread) else waits > 0,
                recovery_action=told["recovery_action"],
                lost=gpu.lost,
                skipped=gpu.skipped,
                refused=gpu.refused,
            )
        )
    mark("judging")
    return tuple(found)


def _rows(gpu: Gpu) -> list[Field]:
    """Corrected and uncorrected remapped rows, then the flags for pending and failed."""
    told = gpu.read("nvmlDeviceGetRemappedRows")
    if isinstance(told, Unread):
        return [told] * 4
    if not isinstance(told, (list, tuple)) or len(told) != 4:
        return [Unread(FieldState.INSANE, "not four numbers")] * 4
    limits = (_MOST_ROWS, _MOST_ROWS, 1, 1)
    return [sane(value, 0, limit) for value, limit in zip(told, limits, strict=True)]


def _sum(one: Field, other: Field) -> Field:
    if isinstance(one, Unread):
        return one
    return other if isinstance(other, Unread) else in_range(one + other, 0, _MOST_ROWS)


def _or_zero(value: Field) -> float:
    return 0.0 if isinstance(value, Unread) else value
