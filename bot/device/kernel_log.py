"""Reads the kernel's ring buffer, or a recorded log, without following it."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.device.files import READ_LIMIT_BYTES, read_text, wrap
from bot.errors import ProbeError

KERNEL_DEVICE = Path("/dev/kmsg")
MAX_RECORDS = 20_000
"""More than any ring buffer holds; a flood ends here, and the probe says so."""
_RECORD_BYTES = 8192
"""Source: Linux Documentation/ABI/testing/dev-kmsg, one read returns one record of at most this size."""

# Source: syslog(2).
_READ_ALL, _SIZE_BUFFER = 3, 10
_LEVEL = re.compile(r"^<\d+>")
# Uptime in brackets, a ctime in brackets, a syslog prefix or an ISO prefix may stand before the message.
_PREFIX = re.compile(
    r"^(?:\[\s*(?P<uptime>\d+\.\d+)\]|\[[A-Z][a-z]{2} [^\]]+\]"
    r"|[A-Z][a-z]{2} +\d+ [\d:]{8} \S+ kernel:(?:\s*\[\s*\d+\.\d+\])?"
    r"|\d{4}-\d\d-\d\dT\S+ \S+ kernel:(?:\s*\[\s*\d+\.\d+\])?)\s*"
)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message. `uptime_seconds` counts from boot; None where the line does not tell."""

    text: str
    uptime_seconds: float | None


def read_kernel_log(path: Path) -> tuple[KernelLine, ...]:
    """All lines that the ring buffer, or the file, holds now, oldest first.

    Raises:
        ProbeError: `unauthorised` without the SYSLOG capability, `unsupported` where there is no log.
    """
    try:
        if stat.S_ISCHR(path.stat().st_mode):
            return tuple(parse_record(record) for record in _records(path))
    except OSError as error:
        if path != KERNEL_DEVICE:
            raise wrap(error, path) from error
        return _from_system_call(wrap(error, path))
    except ProbeError as failure:
        if path != KERNEL_DEVICE:
            raise
        return _from_system_call(failure)
    return tuple(parse_line(line) for line in read_text(path).splitlines() if line.strip())


def _from_system_call(failure: ProbeError) -> tuple[KernelLine, ...]:
    """The same buffer through syslog(2): a container has no /dev/kmsg, but may have the SYSLOG capability."""
    library = ctypes.CDLL(None)
    size = library.klogctl(_SIZE_BUFFER, None, 0)
    if size <= 0:
        raise failure
    buffer = ctypes.create_string_buffer(min(size, READ_LIMIT_BYTES))
    length = library.klogctl(_READ_ALL, buffer, len(buffer))
    if length < 0:
        raise failure
    text = buffer.raw[:length].decode("utf-8", errors="replace")
    return tuple(parse_line(_LEVEL.sub("", line)) for line in text.splitlines() if line.strip())


def parse_record(record: str) -> KernelLine:
    r"""Reads one /dev/kmsg record: `priority,sequence,microseconds,flags;text`.

    >>> parse_record("6,339,5140900,-;NET: Registered PF_INET6\n SUBSYSTEM=net\n").uptime_seconds
    5.1409
    """
    head, _, text = record.partition(";")
    parts = head.split(",")
    uptime = int(parts[2]) / 1e6 if len(parts) > 2 and parts[2].isdigit() else None
    return KernelLine(text.splitlines()[0] if text else "", uptime)


def parse_line(line: str) -> KernelLine:
    """Reads one line of a recorded log in any of its usual prefixes.

    >>> parse_line("[  900.5] NVRM: Xid (0000:03:00): 14, Channel 1").uptime_seconds
    900.5
    """
    found = _PREFIX.match(line)
    if found is None:
        return KernelLine(line.strip(), None)
    uptime = found.group("uptime")
    return KernelLine(line[found.end() :].strip(), float(uptime) if uptime else None)


def _records(path: Path) -> Iterator[str]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise wrap(error, path) from error
    try:
        for _ in range(MAX_RECORDS):
            try:
                record = os.read(descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                # EPIPE: the record was overwritten before it was read; the next read goes on behind it.
                if error.errno == errno.EPIPE:
                    continue
                raise wrap(error, path) from error
            if not record:
                return
            yield record.decode("utf-8", errors="replace")
    finally:
        os.close(descriptor)
