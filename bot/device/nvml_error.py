"""NVML's errors by name, and the field state that each stands for."""

from __future__ import annotations

from bot.device.field import FieldState, Unread

_NOT_SUPPORTED = {"NotSupported", "FunctionNotFound", "FreqNotSupported", "VgpuEccNotSupported"}
LOST = {"GpuIsLost", "ResetRequired", "GpuNotFound"}
"""The device itself is gone or must be reset; every later call fails alike."""


class NvmlFailure(Exception):  # noqa: N818 - NVML's own word for it; always turned into a field or a ProbeError
    """One failed call. `name` is NVML's error in camel case, for example `GpuIsLost`."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} ({code})")
        self.name = name
        self.code = code

    def as_field(self) -> Unread:
        """What stands in the field's place."""
        if self.name in _NOT_SUPPORTED:
            return Unread(FieldState.NOT_SUPPORTED, self.name)
        if self.name == "Timeout":
            return Unread(FieldState.TIMEOUT, str(self))
        # nvidia-ml-py raises an error whose value is 0 ("success") where there are no samples.
        if self.code == 0:
            return Unread(FieldState.NOT_SUPPORTED, "no samples")
        return Unread(FieldState.ERROR, str(self))
