"""How far this node's clock may be off: the kernel's own account, chrony's, and who keeps the clock."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bot.device.field import FieldState, Unread
from bot.device.files import read_text
from bot.device.proc import ProcRoot
from bot.errors import ProbeError, Reason

# Source: include/uapi/linux/timex.h.
_STA_UNSYNC, _STA_NANO, _TIME_ERROR = 0x0040, 0x2000, 5
_DAEMONS = {
    "chronyd": "chrony",
    "ntpd": "ntpd",
    "systemd-timesyn": "systemd-timesyncd",
    "ptp4l": "ptp4l",
    "phc2sys": "phc2sys",
    "openntpd": "openntpd",
}
"""Process names (the kernel keeps 15 characters of them) and the daemon that each is."""
_CLOCK_SOURCE = Path("devices/system/clocksource/clocksource0/current_clocksource")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_CHRONY_SECONDS = 2.0
"""A deadline: chronyc answers over a local socket at once or not at all. Our judgement."""


class _Timex(ctypes.Structure):
    """Source: adjtimex(2), struct timex; the tail is the kernel's own padding."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time", ctypes.c_long * 2),
        ("tick", ctypes.c_long),
        ("tail", ctypes.c_byte * 160),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelClock:
    """The kernel's account of its clock. `offset_seconds` is what is still to be slewed away."""

    is_synchronised: bool
    offset_seconds: float
    estimated_error_seconds: float
    max_error_seconds: float
    frequency_ppm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChronyTracking:
    """What chronyd says: the clock's offset from its own estimate of true time, and whether it has a source."""

    offset_seconds: float
    stratum: int
    is_synchronised: bool


def kernel_clock() -> KernelClock:
    """Asks the kernel; nothing is set, so no capability is needed.

    Raises:
        ProbeError: `unauthorised` where a sandbox forbids the call, `unsupported` where it is not there.
    """
    timex = _Timex()
    library = ctypes.CDLL(None, use_errno=True)
    state = library.adjtimex(ctypes.byref(timex))
    if state < 0:
        number = ctypes.get_errno()
        is_forbidden = number in {1, 13}  # EPERM, EACCES
        raise ProbeError(
            f"adjtimex: {os.strerror(number)}; the clock's state is not known",
            reason=Reason.UNAUTHORISED if is_forbidden else Reason.UNSUPPORTED,
        )
    scale = 1e-9 if timex.status & _STA_NANO else 1e-6
    return KernelClock(
        is_synchronised=state != _TIME_ERROR and not timex.status & _STA_UNSYNC,
        offset_seconds=timex.offset * scale,
        estimated_error_seconds=timex.esterror / 1e6,
        max_error_seconds=timex.maxerror / 1e6,
        frequency_ppm=timex.freq / 65536,
    )


def clock_source(sys_root: Path) -> str:
    """Name of the hardware counter that the kernel's clock runs on.

    Raises:
        ProbeError: it cannot be read, or is no name.
    """
    path = sys_root / _CLOCK_SOURCE
    text = read_text(path, limit_bytes=64).strip()
    if not _NAME.fullmatch(text):
        raise ProbeError(f"{path}: holds no name of a clock source")
    return text


def clock_daemons(proc: ProcRoot) -> tuple[str, ...]:
    """Daemons that keep a clock and run now, in this process-id namespace."""
    return tuple(sorted({_DAEMONS[task.comm] for task in proc.tasks() if task.comm in _DAEMONS}))


def chrony_tracking() -> ChronyTracking | Unread:
    """What `chronyc` tells; chronyd slews by frequency, so that its offset never shows in the kernel's account."""
    binary = shutil.which("chronyc")
    if binary is None:
        return Unread(FieldState.NOT_SUPPORTED, "chronyc is not installed")
    try:
        # Fixed words: nothing of the caller reaches the command line.
        done = subprocess.run(
            [binary, "-c", "-n", "tracking"],
            capture_output=True,
            timeout=_CHRONY_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Unread(FieldState.TIMEOUT, f"chronyc did not end within {_CHRONY_SECONDS:g} s")
    except OSError as error:
        return Unread(FieldState.ERROR, f"chronyc cannot be started: {error.strerror}")
    if done.returncode != 0:
        said = " ".join(done.stdout.decode("utf-8", errors="replace").split())[:120]
        return Unread(FieldState.ERROR, f"chronyc: {said or 'failed'}")
    with contextlib.suppress(ProbeError):
        return parse_tracking(done.stdout.decode("utf-8", errors="replace"))
    return Unread(FieldState.ERROR, "chronyc answered in an unknown shape")


def parse_tracking(text: str) -> ChronyTracking:
    """Reads one line of `chronyc -c tracking`.

    Source: chronyc(1): reference id, its name, stratum, reference time, system time offset, last offset, …, leap.

    >>> line = "C0A80101,192.168.1.1,3,1764526000.1,-0.000021,0.00001,0.00002,1.5,0.0,0.1,0.02,0.001,64.0,Normal"
    >>> parse_tracking(line).offset_seconds
    -2.1e-05
    """
    parts = text.strip().split(",")
    try:
        offset = float(parts[4])
        stratum = int(parts[2])
        if not math.isfinite(offset) or len(parts) < 14:
            raise ValueError(text)
    except (ValueError, IndexError) as error:
        raise ProbeError("chronyc answered in an unknown shape") from error
    return ChronyTracking(
        offset_seconds=offset,
        stratum=stratum,
        is_synchronised=parts[13] != "Not synchronised" and stratum > 0,
    )
