"""Reads the kernel's ring buffer, or a recorded log, without following it."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bot.device.files import READ_LIMIT_BYTES, read_end, wrap
from bot.errors import ProbeError

KERNEL_DEVICE = Path("/dev/kmsg")
MAX_RECORDS = 20_000
"""The newest that are kept. A buffer of some MiB holds more; what is cut off is older than what the lines reach back to."""
_MOST_READS = 50 * MAX_RECORDS
"""Where a flood comes faster than it is read, the reading ends here."""
_RECORD_BYTES = 8192
"""Source: Linux Documentation/ABI/testing/dev-kmsg, one read returns one record of at most this size."""

# Source: syslog(2).
_READ_ALL, _SIZE_BUFFER = 3, 10
_NEWLINE = "\\x0a"
"""How the device spells a line end inside a message. Source: as above, non-printable characters are escaped."""
_FACILITY_BITS = ~7
"""Bits of a record's priority above its level; none is set in the kernel's own messages. Source: syslog(2)."""

_LEVEL = re.compile(r"^(?:<\d+>|[a-z]+\s*:\s*[a-z]+\s*:\s*)")
# Uptime in brackets, a ctime in brackets, a syslog prefix or an ISO prefix may stand before the message.
_PREFIX = re.compile(
    r"^(?:\[\s*(?P<uptime>\d+\.\d+)\](?:\[\s*[CT]\d+\])?"
    r"|\[(?P<ctime>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4})\]"
    r"|(?P<syslog>[A-Z][a-z]{2} +\d+ [\d:]{8}) \S+ kernel:(?:\s*\[\s*\d+\.\d+\])?"
    r"|(?P<iso>\d{4}-\d\d-\d\dT\S+) \S+ kernel:(?:\s*\[\s*\d+\.\d+\])?)\s*"
)
_LEAP_YEAR = "2000"
"""A syslog prefix has no year; any that has a 29 February serves to tell lines apart."""
_GARBAGE_SHARE = 0.1
"""Our judgement: a text in which a tenth of the characters cannot be decoded is none."""


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message. `uptime_seconds` counts from boot, `clock_seconds` from some fixed moment; None where not told.

    The second tells lines of one log apart and is no date: its zone, and sometimes its year, are not known.
    """

    text: str
    uptime_seconds: float | None
    clock_seconds: float | None = None


def read_kernel_log(path: Path) -> tuple[KernelLine, ...]:
    """All lines that the ring buffer, or the file, holds now, oldest first.

    Raises:
        ProbeError: `unauthorised` without the SYSLOG capability, `unsupported` where there is no log.
    """
    try:
        if stat.S_ISCHR(path.stat().st_mode):
            records = newest(_records(path))
            return tuple(line for record in records for line in record_lines(record))
    except OSError as error:
        if path != KERNEL_DEVICE:
            raise wrap(error, path) from error
        return _from_system_call(wrap(error, path))
    except ProbeError as failure:
        if path != KERNEL_DEVICE:
            raise
        return _from_system_call(failure)
    content = read_end(path)
    if "\0" in content or content.count("\ufffd") > _GARBAGE_SHARE * len(content):
        raise ProbeError(f"{path}: holds no kernel log")
    return tuple(parse_line(line) for line in content.splitlines() if line.strip())


def newest(records: Iterable[str]) -> deque[str]:
    """The last `MAX_RECORDS` of them: an incident is told by the newest lines."""
    return deque(records, MAX_RECORDS)


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
    return tuple(parse_line(line) for line in text.splitlines() if line.strip())


def record_lines(record: str) -> tuple[KernelLine, ...]:
    r"""Reads one /dev/kmsg record: `priority,sequence,microseconds,flags;text`.

    One message may hold several lines; what a program wrote into the log, and not the kernel, gives none.

    >>> record_lines("6,339,5140900,-;NET: Registered PF_INET6\n SUBSYSTEM=net\n")[0].uptime_seconds
    5.1409
    >>> record_lines("12,340,5140901,-;myapp: NVRM: Xid (PCI:0000:5d:00): 79\n")
    ()
    """
    head, _, body = record.partition(";")
    parts = head.split(",")
    if parts[0].isdigit() and int(parts[0]) & _FACILITY_BITS:
        return ()
    uptime = int(parts[2]) / 1e6 if len(parts) > 2 and parts[2].isdigit() else None
    text = body.splitlines()[0] if body else ""
    return tuple(KernelLine(part.strip(), uptime) for part in text.split(_NEWLINE))


def parse_line(line: str) -> KernelLine:
    """Reads one line of a recorded log in any of its usual prefixes.

    >>> parse_line("<4>[  900.5] NVRM: Xid (0000:03:00): 14, Channel 1").uptime_seconds
    900.5
    """
    line = _LEVEL.sub("", line)
    found = _PREFIX.match(line)
    if found is None:
        return KernelLine(line.strip(), None)
    uptime = found.group("uptime")
    return KernelLine(
        line[found.end() :].strip(),
        float(uptime) if uptime else None,
        _clock(found.group("ctime"), found.group("syslog"), found.group("iso")),
    )


def _clock(ctime: str | None, syslog: str | None, iso: str | None) -> float | None:
    try:
        if ctime:
            when = datetime.strptime(f"{ctime} +0000", "%a %b %d %H:%M:%S %Y %z")
        elif syslog:
            when = datetime.strptime(f"{_LEAP_YEAR} {syslog} +0000", "%Y %b %d %H:%M:%S %z")
        elif iso:
            when = datetime.fromisoformat(iso.replace(",", "."))
        else:
            return None
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _records(path: Path) -> Iterator[str]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise wrap(error, path) from error
    try:
        for _ in range(_MOST_READS):
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
