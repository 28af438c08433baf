"""The audit file: one JSON line a request, appended, never rewritten."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import structlog

from bot.errors import ConfigError

_log = structlog.get_logger("rca.agent.audit")

_WRITE_TIMEOUT_SECONDS = 2.0
_TAIL_BYTES = 1024 * 1024


class AuditError(Exception):
    """A line could not be written; the message is the reason."""


class AuditLog:
    """Appends lines; without a file they go to the agent's own log.

    A file that was moved or removed is made anew, so that no line goes where nobody looks.
    """

    def __init__(self, path: Path | None) -> None:
        """Opens the file, created with mode 0600.

        Raises:
            ConfigError: it cannot be opened.
        """
        self._path = path
        self._descriptor: int | None = None
        self._is_torn = False
        # One thread of its own: lines keep their order, and a disk that hangs holds up this thread and nothing else.
        self._writer = ThreadPoolExecutor(1, "audit")
        try:
            self._open()
        except OSError as error:
            raise ConfigError(
                f"RCA_AGENT_AUDIT: {path}: {error.strerror}; give a path that can be written"
            ) from error

    def recent_token_ids(self, now: float) -> dict[str, float]:
        """Ids of tokens that a former run accepted and that are still valid, with their expiry."""
        used: dict[str, float] = {}
        for line in self._tail(_TAIL_BYTES).decode("utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
                if entry["outcome"] == "accepted" and entry["expires_at"] > now:
                    used[str(entry["token_id"])] = float(entry["expires_at"])
            except (ValueError, KeyError, TypeError):
                continue
        return used

    async def write(self, entry: Mapping[str, Any]) -> None:
        """Appends one line; returns when it is written.

        Raises:
            AuditError: it is not; the agent's own log has been given it instead.
        """
        try:
            if self._path is None:
                _log.info("audit", **entry)
                return
            line = (json.dumps(entry, ensure_ascii=True, sort_keys=True) + "\n").encode()
            async with asyncio.timeout(_WRITE_TIMEOUT_SECONDS):
                await asyncio.get_running_loop().run_in_executor(self._writer, self._append, line)
        except (OSError, TimeoutError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else ""
            why = why or str(error) or f"no answer within {_WRITE_TIMEOUT_SECONDS:g} s"
            with contextlib.suppress(OSError):
                _log.error("audit_not_written", why=why, **entry)
            raise AuditError(why) from error

    def close(self) -> None:
        """Closes the file."""
        self._writer.shutdown(wait=False, cancel_futures=True)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        if self._path is None:
            return
        # Readable too: the tail tells which tokens a former run has accepted, and whether its last line is whole.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._is_torn = self._tail(1) not in {b"", b"\n"}

    def _tail(self, count: int) -> bytes:
        """The last bytes of a regular file; a terminal or a pipe has none."""
        if self._descriptor is None:
            return b""
        facts = os.fstat(self._descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return b""
        return os.pread(self._descriptor, count, max(0, facts.st_size - count))

    def _append(self, line: bytes) -> None:
        if self._was_moved():
            self._open()
        if self._descriptor is None:
            raise OSError("the audit is closed")
        # What a full disk cut off must not take the next line with it.
        whole = b"\n" + line if self._is_torn else line
        written = os.write(self._descriptor, whole)
        if written:
            self._is_torn = written != len(whole)
        if written != len(whole):
            raise OSError(f"only {written} of {len(whole)} bytes were written")

    def _was_moved(self) -> bool:
        """True when the path names another file than the open one, as after a rotation by renaming."""
        if self._path is None or self._descriptor is None:
            return True
        ours = os.fstat(self._descriptor)
        if not stat.S_ISREG(ours.st_mode):
            return False
        try:
            theirs = self._path.stat()
        except FileNotFoundError:
            return True
        return (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino)
