"""NVIDIA's management library, or a labelled stand-in; the only importer of `pynvml`."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Question:
    """Field ids written once, as the driver's function takes them."""

    function: Callable[..., int]
    kind: type[ctypes.Array[Any]]
    bytes: bytes


class _RealLibrary:
    """`pynvml` unchanged, its errors turned into `NvmlFailure`."""

    is_standin = False

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._questions: dict[tuple[int, ...], _Question] = {}

    def call(self, function: str, *arguments: Any) -> Any:
        try:
            return (self._functions.get(function) or self._find(function))(*arguments)
        except pynvml.NVMLError as error:
            raise NvmlFailure(
                _CODES.get(error.value, f"Error{error.value}"), error.value
            ) from error

    def fields(self, handle: Any, ids: Sequence[int]) -> Mapping[int, int | float | Unread]:
        asked = tuple(ids)
        question = self._questions.get(asked) or self._question(asked)
        # The library's own call takes twice as long to write the ids as the driver to answer: so it is made here.
        values = question.kind.from_buffer_copy(question.bytes)
        code = question.function(handle, len(asked), values)
        if code != pynvml.NVML_SUCCESS:
            raise NvmlFailure(_CODES.get(code, f"Error{code}"), code)
        return {
            field: raw if status == 0 and kind in _UNSIGNED else _field_value(status, kind, raw)
            # The library answers in the order asked.
            for field, (_, _, _, _, kind, status, raw) in zip(
                asked, _FIELD_VALUE.iter_unpack(values), strict=True
            )
        }

    def pci_count(self) -> int | None:
        return None

    def _find(self, function: str) -> Callable[..., Any]:
        found: Callable[..., Any] | None = getattr(pynvml, function, None)
        if found is None:
            raise NvmlFailure("FunctionNotFound", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        self._functions[function] = found
        return found

    def _question(self, ids: tuple[int, ...]) -> _Question:
        function = getattr(pynvml.nvmlLib, "nvmlDeviceGetFieldValues", None)
        if function is None:
            raise NvmlFailure("FunctionNotFound", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        kind = pynvml.c_nvmlFieldValue_t * len(ids)
        values = kind()
        for value, field in zip(values, ids, strict=True):
            value.fieldId = field
            # What the driver leaves as it is was not answered, and is no zero.
            value.nvmlReturn = pynvml.NVML_ERROR_UNKNOWN
        question = _Question(function, kind, bytes(values))
        self._questions[ids] = question
        return question


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


# A field's value is a union of eight bytes, read here as an unsigned number of as many. The library's own structures
# look at every member of every value for byte strings, of which it has none.
# Source: nvml.h, nvmlFieldValue_t: id, scope, timestamp, latency, type, status, value.
_FIELD_VALUE = struct.Struct("@IIqqIIQ")
_UNSIGNED = frozenset(
    (pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG, pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
)
_FORMATS = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "d",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "I",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "L",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "Q",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "q",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "i",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "H",
}


def _field_value(code: int, kind: int, raw: int) -> int | float | Unread:
    if code != pynvml.NVML_SUCCESS:
        return NvmlFailure(_CODES.get(code, f"Error{code}"), code).as_field()
    layout = _FORMATS.get(kind)
    if layout is None:
        return Unread(FieldState.ERROR, f"value type {kind} is not known")
    found: int | float = struct.unpack_from(layout, struct.pack("Q", raw))[0]
    return found
