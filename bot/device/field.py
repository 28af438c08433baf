"""A measured field: its value, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeGuard, TypeVar

from bot.errors import ProbeError, Reason

T = TypeVar("T")


class FieldState(StrEnum):
    """Why a field has no value; only `NOT_SUPPORTED` and `NOT_CONFIGURED` may be passed over in silence."""

    NOT_SUPPORTED = "not_supported"
    ERROR = "error"
    TIMEOUT = "timeout"
    NOT_CONFIGURED = "not_configured"
    INSANE = "insane"


@dataclass(frozen=True, slots=True)
class Unread:
    """Stands where a number would, so that a missing number can never read as zero."""

    state: FieldState
    detail: str = ""

    def to_json(self) -> dict[str, str]:
        """`{"state": …, "detail": …}`."""
        return {"state": self.state.value, "detail": self.detail}


def is_read(value: T | Unread) -> TypeGuard[T]:
    """True where the field holds a value."""
    return not isinstance(value, Unread)


def is_tolerable(value: object) -> bool:
    """True for a value, and for a field that this machine simply does not have."""
    return not isinstance(value, Unread) or value.state in {
        FieldState.NOT_SUPPORTED,
        FieldState.NOT_CONFIGURED,
    }


_BLANKS = frozenset(
    (*range(0x7FFFFFF0, 0x7FFFFFF4), *range(2**47, 2**47 + 4), 2**31 - 1, 2**32 - 1)
)
"""Source: DCGM's dcgm_structs.h, blank marks of 32-bit and floating-point fields; and all bits set, as drivers give it."""
_BLANK_FROM = 2**63 - 1024
"""The 64-bit marks begin at 2**63 - 16, and a round trip through a float moves them by up to this."""


def is_blank(value: float) -> bool:
    """True for a number that stands for "not told" in NVIDIA's tools.

    >>> [is_blank(value) for value in (9223372036854775794, 9.223372036854776e18, 4294967295, 0)]
    [True, True, True, False]
    """
    return value in _BLANKS or value >= _BLANK_FROM


def is_wide_blank(value: float) -> bool:
    """True for the 64-bit mark alone: the shorter ones are also limits that other programs tell.

    >>> [is_wide_blank(value) for value in (9.223372036854776e18, 9223372036854771712, 4294967295)]
    [True, False, False]
    """
    return _BLANK_FROM <= value <= 2**63


def sane(value: object, low: float, high: float, scale: float = 1.0) -> float | Unread:
    """`value * scale` where it is a number and in range; else `insane` with what was told.

    >>> sane(612000, 0, 5000, 0.001), sane(b"612000", 0, 5000).state.value
    (612.0, 'insane')
    """
    if type(value) is not int and type(value) is not float:  # a bool is no number either
        return Unread(FieldState.INSANE, f"raw value {str(value)[:40]!r} is no number")
    if value in _BLANKS or value >= _BLANK_FROM:
        return Unread(FieldState.INSANE, f"raw value {value!r} is a mark for 'not told'")
    scaled = float(value) * scale
    return scaled if low <= scaled <= high else in_range(scaled, low, high)


def in_range(value: float, low: float, high: float) -> float | Unread:
    """`value`, or `insane` with the raw number when it lies outside what the device can mean.

    Source: blank markers near 2**63 and 2**32-1 and temperatures of 345 to 644 million are reported by users of
    GPU exporters (NVIDIA/dcgm-exporter#312, #418; NVIDIA/DCGM#199).

    >>> in_range(9223372036854775794, 0, 100).state.value
    'insane'
    """
    if not math.isfinite(value) or not low <= value <= high:
        return Unread(FieldState.INSANE, f"raw value {value!r} outside {low:g}..{high:g}")
    return value


def from_failure(failure: ProbeError) -> Unread:
    """The field's state for a reader that failed."""
    match failure.reason:
        case Reason.UNSUPPORTED | Reason.NOT_FOUND:
            return Unread(FieldState.NOT_SUPPORTED, str(failure))
        case Reason.TIMEOUT:
            return Unread(FieldState.TIMEOUT, str(failure))
        case _:
            return Unread(FieldState.ERROR, str(failure))


def plain(value: object) -> object:
    """JSON's own types: `Unread` as its object, mappings and sequences walked, numbers rounded to 6 digits."""
    if isinstance(value, Unread):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    return str(value)
