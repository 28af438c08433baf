"""The audit file: one JSON line a request, appended, never rewritten."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from bot.errors import ConfigError

_log = structlog.get_logger("rca.agent.audit")

_WRITE_TIMEOUT_SECONDS = 2.0
_TAIL_BYTES = 1024 * 1024


class AuditLog:
    """Appends lines; without a file they go to the agent's own log.

    A line that cannot be written (a full disk is one of the faults that probes look for) is counted and logged, and
    the probe still runs.
    """

    def __init__(self, path: Path | None) -> None:
        """Opens the file, created with mode 0600.

        Raises:
            ConfigError: it cannot be opened.
        """
        self._path = path
        self._descriptor: int | None = None
        self._lock = asyncio.Lock()
        self.failures = 0
        if path is not None:
            try:
                self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise ConfigError(
                    f"RCA_AGENT_AUDIT: {path}: {error.strerror}; give a path that can be written"
                ) from error

    def recent_token_ids(self, now: float) -> dict[str, float]:
        """Ids of tokens that a former run accepted and that are still valid, with their expiry."""
        if self._path is None:
            return {}
        with self._path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", errors="replace").splitlines()
        used: dict[str, float] = {}
        for line in lines:
            try:
                entry = json.loads(line)
                if entry["outcome"] == "accepted" and entry["expires_at"] > now:
                    used[str(entry["token_id"])] = float(entry["expires_at"])
            except (ValueError, KeyError, TypeError):
                continue
        return used

    async def write(self, entry: Mapping[str, Any]) -> None:
        """Appends one line; returns when it is written or has failed."""
        if self._descriptor is None:
            _log.info("audit", **entry)
            return
        line = (json.dumps(entry, ensure_ascii=True, sort_keys=True) + "\n").encode()
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_SECONDS), self._lock:
                await asyncio.to_thread(_append, self._descriptor, line)
        except (OSError, TimeoutError) as error:
            self.failures += 1
            _log.error("audit_not_written", why=str(error) or "timeout", **entry)

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _append(descriptor: int, line: bytes) -> None:
    written = os.write(descriptor, line)
    if written != len(line):
        raise OSError(f"only {written} of {len(line)} bytes were written")
