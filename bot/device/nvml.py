"""NVIDIA's management library, or a labelled stand-in; the only importer of `pynvml`."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pynvml

from bot.device.field import FieldState, Unread
from bot.device.gpu_standin import StandinLibrary
from bot.device.nvml_error import NvmlFailure
from bot.errors import ProbeError, Reason

STANDIN_PREFIX = "standin:"

_CODES = {
    value: "".join(part.capitalize() for part in name.removeprefix("NVML_ERROR_").split("_"))
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_") and isinstance(value, int)
}


class NvmlLibrary(Protocol):
    """The calls that probes make, under NVML's own names."""

    @property
    def is_standin(self) -> bool:
        """True where readings come from a table and not from a device."""
        ...

    def call(self, function: str, *arguments: Any) -> Any:
        """Result of one call.

        Raises:
            NvmlFailure: NVML's own error, by name.
        """
        ...

    def fields(self, handle: Any, ids: Sequence[int]) -> Mapping[int, int | float | Unread]:
        """Field values by id; each has a status of its own.

        Raises:
            NvmlFailure: the call as a whole failed.
        """
        ...

    def pci_count(self) -> int | None:
        """How many GPUs the stand-in says are on the bus; None for the real library, whose bus is in /sys."""
        ...


class _RealLibrary:
    """`pynvml` unchanged, its errors turned into `NvmlFailure`."""

    is_standin = False

    def call(self, function: str, *arguments: Any) -> Any:
        found = getattr(pynvml, function, None)
        if found is None:
            raise NvmlFailure("FunctionNotFound", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        try:
            return found(*arguments)
        except pynvml.NVMLError as error:
            raise NvmlFailure(
                _CODES.get(error.value, f"Error{error.value}"), error.value
            ) from error

    def fields(self, handle: Any, ids: Sequence[int]) -> Mapping[int, int | float | Unread]:
        values = self.call("nvmlDeviceGetFieldValues", handle, list(ids))
        # The library answers in the order asked.
        return {field: _field_value(value) for field, value in zip(ids, values, strict=True)}

    def pci_count(self) -> int | None:
        return None


@contextlib.contextmanager
def open_nvml(library: str) -> Iterator[NvmlLibrary]:
    """Loads and initialises the library; `library` is "", a path, or `standin:FILE`.

    Raises:
        NvmlFailure: initialising failed in a way that needs explaining (a version mismatch, lost devices).
        ProbeError: `unsupported` where this machine has no driver or library.
    """
    opened = _load(library)
    try:
        opened.call("nvmlInit")
    except NvmlFailure as failure:
        if failure.name in {"LibraryNotFound", "DriverNotLoaded"}:
            raise ProbeError(
                f"no NVIDIA driver on this machine ({failure.name})", reason=Reason.UNSUPPORTED
            ) from failure
        raise
    try:
        yield opened
    finally:
        with contextlib.suppress(NvmlFailure):
            opened.call("nvmlShutdown")


def _load(library: str) -> NvmlLibrary:
    if library.startswith(STANDIN_PREFIX):
        return StandinLibrary.load(Path(library.removeprefix(STANDIN_PREFIX)))
    if library:
        try:
            # Set before the first call: pynvml loads its default only while this is empty.
            pynvml.nvmlLib = ctypes.CDLL(library)
        except OSError as error:
            raise ProbeError(
                f"NVML library {library} cannot be loaded; correct [paths] nvml_library",
                reason=Reason.UNSUPPORTED,
            ) from error
    return _RealLibrary()


# Which member of the union holds a value of this type.
_MEMBERS = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
}


# The library's structures look at every attribute for byte strings, of which a field value has none.
_attribute = ctypes.Structure.__getattribute__


def _field_value(value: Any) -> int | float | Unread:
    code = _attribute(value, "nvmlReturn")
    if code != pynvml.NVML_SUCCESS:
        return NvmlFailure(_CODES.get(code, f"Error{code}"), code).as_field()
    kind = _attribute(value, "valueType")
    member = _MEMBERS.get(kind)
    if member is None:
        return Unread(FieldState.ERROR, f"value type {kind} is not known")
    found: int | float = getattr(_attribute(value, "value"), member)
    return found
