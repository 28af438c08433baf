"""Bounded reads of kernel files, with the outside error turned into the reason that a probe reports."""

from __future__ import annotations

import os
from pathlib import Path

from bot.errors import ProbeError, Reason

READ_LIMIT_BYTES = 8 * 1024 * 1024
"""A cap: no file of /proc or /sys that a probe reads is near it. Our judgement."""


def read_text(path: Path, *, limit_bytes: int = READ_LIMIT_BYTES) -> str:
    """The file's text, at most `limit_bytes` of it; undecodable bytes are replaced.

    Raises:
        ProbeError: `unsupported` when the kernel has no such file, `unauthorised` when it may not be read,
            `not_found` when the process behind it is gone, `malformed` for any other failure.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(limit_bytes).decode("utf-8", errors="replace")
    except OSError as error:
        raise wrap(error, path) from error


def read_end(path: Path, *, limit_bytes: int = READ_LIMIT_BYTES) -> str:
    """The end of a file that only grows, whole lines of it; the whole file where it is no longer than that.

    Raises:
        ProbeError: as `read_text`.
    """
    try:
        with path.open("rb") as stream:
            if stream.seekable():
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - limit_bytes))
                if size > limit_bytes:
                    stream.readline()
            return stream.read(limit_bytes).decode("utf-8", errors="replace")
    except OSError as error:
        raise wrap(error, path) from error


def read_whole(path: Path) -> int:
    """The single whole number that a kernel file holds.

    Raises:
        ProbeError: as `read_text`; `malformed` when it is no number.
    """
    text = read_text(path, limit_bytes=64).strip()
    try:
        return int(text)
    except ValueError as error:
        raise ProbeError(f"{path}: holds {text!r}, no whole number") from error


def list_names(path: Path) -> list[str]:
    """Names in a directory, sorted.

    Raises:
        ProbeError: as `read_text`.
    """
    try:
        return sorted(os.listdir(path))  # noqa: PTH208 - names only; Path objects for 10,000 pids are slow
    except OSError as error:
        raise wrap(error, path) from error


def wrap(error: OSError, path: Path) -> ProbeError:
    """The `ProbeError` for an operating system error met while reading `path`."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return ProbeError(f"{path}: is not there on this machine", reason=Reason.UNSUPPORTED)
        case PermissionError():
            return ProbeError(
                f"{path}: the agent may not read this; give it the capability or the group",
                reason=Reason.UNAUTHORISED,
            )
        case ProcessLookupError():
            return ProbeError(f"{path}: the process is gone", reason=Reason.NOT_FOUND)
        case _:
            return ProbeError(f"{path}: {error.strerror or error}")
