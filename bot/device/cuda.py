"""Copies from host to device through CUDA's driver library, bounded in bytes; the only user of `libcuda`."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.device.field import FieldState, Unread
from bot.device.files import read_text, read_whole
from bot.errors import ProbeError, Reason

DRIVER_LIBRARY = "libcuda.so.1"
_COPIES = 5
_ROOM = 4
"""A GPU must have this many times the buffer free: the test must never take the room of a service."""
_GB = 1e9
# Source: cuda.h, CUresult.
_NAMES = {
    1: "invalid value",
    2: "out of memory",
    3: "not initialised",
    34: "stub library",
    46: "device unavailable",
    100: "no device",
    101: "no such device",
    304: "operating system call failed",
    719: "launch failed",
    800: "not permitted",
    801: "not supported",
    803: "driver and library do not match",
    804: "not supported on this device",
    999: "unknown error",
}
_UNSUPPORTED = {34, 100, 101, 801, 804}
_OUT_OF_MEMORY, _NOT_PERMITTED = 2, 800
"""Source: cuda.h, CUresult."""
# Source: PCI Express base specification, GB/s a lane after encoding, by the speed that /sys prints.
_LANE_GB_PER_S = {
    "2.5": 0.25,
    "5.0": 0.5,
    "8.0": 0.985,
    "16.0": 1.969,
    "32.0": 3.938,
    "64.0": 7.563,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySpeeds:
    """Medians over several copies in GB/s. `pinned` is unread where no pinned memory was to be had."""

    name: str
    pci: str
    pinned: float | Unread
    pageable: float
    pinned_alloc_seconds: float
    copied_bytes: int


class _Driver:
    """The library with its errors raised by name."""

    def __init__(self, library: str) -> None:
        try:
            self._library = ctypes.CDLL(library or DRIVER_LIBRARY)
        except OSError as error:
            raise ProbeError(
                f"no CUDA driver on this machine ({library or DRIVER_LIBRARY} cannot be loaded)",
                reason=Reason.UNSUPPORTED,
            ) from error

    def call(self, name: str, *arguments: Any) -> None:
        """Calls; raises `ProbeError` for anything but success."""
        code = self.code(name, *arguments)
        if code == 0:
            return
        if code in _UNSUPPORTED:
            reason = Reason.UNSUPPORTED
        else:
            reason = Reason.UNAUTHORISED if code == _NOT_PERMITTED else Reason.MALFORMED
        raise ProbeError(f"CUDA {name}: {_NAMES.get(code, 'error')} ({code})", reason=reason)

    def code(self, name: str, *arguments: Any) -> int:
        """CUDA's own answer."""
        function = getattr(self._library, name, None)
        if function is None:
            raise ProbeError(f"the CUDA driver has no {name}", reason=Reason.UNSUPPORTED)
        return int(function(*arguments))


def copy_speeds(library: str, gpu: int, size_bytes: int) -> CopySpeeds:
    """Copies a buffer of `size_bytes` a few times from pageable and from pinned memory to the GPU's.

    Raises:
        ProbeError: `unsupported` without driver or GPU, `unauthorised`, `refused` where the GPU has too little room.
    """
    # NVML counts GPUs in the order of the bus; CUDA does only when told, before it starts.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    driver = _Driver(library)
    driver.call("cuInit", 0)
    device = ctypes.c_int()
    driver.call("cuDeviceGet", ctypes.byref(device), gpu)
    with _context(driver, device), _device_buffer(driver, size_bytes) as target:
        pageable = mmap.mmap(-1, size_bytes)
        try:
            # Touched, or every page would be the kernel's one page of zeros.
            for at in range(0, size_bytes, mmap.PAGESIZE):
                pageable[at] = 1
            view = (ctypes.c_char * size_bytes).from_buffer(pageable)
            slow = _speed(driver, target, ctypes.addressof(view), size_bytes)
            del view
        finally:
            pageable.close()
        fast, seconds = _pinned(driver, target, size_bytes)
        is_pinned = not isinstance(fast, Unread)
        return CopySpeeds(
            name=_text(driver, "cuDeviceGetName", device),
            pci=_text(driver, "cuDeviceGetPCIBusId", device).lower(),
            pinned=fast,
            pageable=slow,
            pinned_alloc_seconds=seconds,
            copied_bytes=size_bytes * (_COPIES + 1) * (2 if is_pinned else 1),
        )


def link_limit(sys_root: Path, pci: str) -> float | Unread:
    """What the link of a GPU could carry in GB/s, from its highest speed and width."""
    # CUDA writes four digits of the domain, NVML eight; /sys has four.
    folder = sys_root / "bus" / "pci" / "devices" / pci[-12:]
    try:
        speed = read_text(folder / "max_link_speed", limit_bytes=64).split()
        width = read_whole(folder / "max_link_width")
    except ProbeError as failure:
        return Unread(FieldState.NOT_SUPPORTED, str(failure))
    lane = _LANE_GB_PER_S.get(speed[0] if speed else "")
    if lane is None or not 1 <= width <= 32:
        return Unread(FieldState.INSANE, f"link speed {' '.join(speed)!r} width {width}")
    return lane * width


@contextlib.contextmanager
def _context(driver: _Driver, device: ctypes.c_int) -> Iterator[None]:
    context = ctypes.c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        driver.call("cuCtxSetCurrent", context)
        yield
    finally:
        driver.code("cuDevicePrimaryCtxRelease_v2", device)


@contextlib.contextmanager
def _device_buffer(driver: _Driver, size_bytes: int) -> Iterator[ctypes.c_uint64]:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    if free.value < _ROOM * size_bytes:
        raise ProbeError(
            f"the GPU has {free.value / 2**20:.0f} MiB free, too little for the test; give fewer bytes",
            reason=Reason.REFUSED,
        )
    target = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(size_bytes))
    try:
        yield target
    finally:
        driver.code("cuMemFree_v2", target)


def _pinned(
    driver: _Driver, target: ctypes.c_uint64, size_bytes: int
) -> tuple[float | Unread, float]:
    source = ctypes.c_void_p()
    started = time.monotonic()  # measures the driver, so no clock is handed in
    code = driver.code("cuMemHostAlloc", ctypes.byref(source), ctypes.c_size_t(size_bytes), 0)
    seconds = time.monotonic() - started
    if code != 0:
        name = _NAMES.get(code, "error")
        detail = f"pinned memory cannot be had: {name} ({code})"
        return Unread(FieldState.ERROR, detail), seconds
    try:
        return _speed(driver, target, source.value or 0, size_bytes), seconds
    finally:
        driver.code("cuMemFreeHost", source)


def _speed(driver: _Driver, target: ctypes.c_uint64, source: int, size_bytes: int) -> float:
    taken: list[float] = []
    for number in range(_COPIES + 1):
        started = time.monotonic()
        driver.call("cuMemcpyHtoD_v2", target, ctypes.c_void_p(source), ctypes.c_size_t(size_bytes))
        # A copy may return while its last part is still under way.
        driver.call("cuCtxSynchronize")
        if number:  # the first copy warms the path
            taken.append(time.monotonic() - started)
    return size_bytes / max(1e-9, statistics.median(taken)) / _GB


def _text(driver: _Driver, name: str, device: ctypes.c_int) -> str:
    buffer = ctypes.create_string_buffer(96)
    driver.call(name, buffer, 96, device)
    return buffer.value.decode("utf-8", errors="replace")
