"""The folder of profiles that wait to be fetched: few, for a while, served in pieces."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.device.artefact import ARTEFACT_ID, ArtefactFolder
from bot.errors import ConfigError

MAX_FILES = 8
"""Our judgement: profiles are fetched at once; with the limit of each this bounds the disk."""
LIFETIME_SECONDS = 3600.0
"""Our judgement: an incident that has not fetched its profile within the hour takes a new one."""
PIECE_BYTES = 256 * 1024
"""A piece is held in memory and sent in one answer."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes from `offset` on; `total` is the file's size."""

    offset: int
    total: int
    content: bytes


class ArtefactStore:
    """Owns the folder; one that it made itself is removed with it."""

    def __init__(self, path: Path | None, limit_bytes: int, *, now: Callable[[], float]) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._now = now
        self._own: tempfile.TemporaryDirectory[str] | None = None

    def folder(self) -> ArtefactFolder:
        """The folder, made when it is first needed, with room for one more file.

        Raises:
            ConfigError: it cannot be made, or others may write there.
        """
        try:
            if self._path is None:
                self._own = tempfile.TemporaryDirectory(prefix="rca-agent-")
                self._path = Path(self._own.name)
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ConfigError(
                    f"paths.artefacts: {self._path}: others may write there; give a folder of mode 0700"
                )
            self._make_room(self._path)
        except OSError as error:
            raise ConfigError(
                f"paths.artefacts: {self._path}: {error.strerror}; give a folder that can be written"
            ) from error
        return ArtefactFolder(self._path, self._limit_bytes)

    def piece(self, artefact_id: str, offset: int) -> Piece | None:
        """At most `PIECE_BYTES` from `offset`; None where there is no such file, or it ended before."""
        if self._path is None or not ARTEFACT_ID.fullmatch(artefact_id):
            return None
        path = self._path / artefact_id
        with contextlib.suppress(OSError):
            # A link or a pipe under a profile's name was put there by somebody else.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                facts = os.fstat(descriptor)
                if not stat.S_ISREG(facts.st_mode):
                    return None
                if self._now() - facts.st_mtime > LIFETIME_SECONDS:
                    path.unlink()
                    return None
                total = stream.seek(0, 2)
                if not 0 <= offset < total:
                    return None
                stream.seek(offset)
                return Piece(offset, total, stream.read(PIECE_BYTES))
        return None

    def close(self) -> None:
        """Removes the folder that it made."""
        if self._own is not None:
            self._own.cleanup()
            self._own = None

    def _make_room(self, folder: Path) -> None:
        files = sorted(
            (path for path in folder.iterdir() if path.is_file() and not path.is_symlink()),
            key=lambda path: path.stat().st_mtime,
        )
        for number, path in enumerate(files):
            is_old = self._now() - path.stat().st_mtime > LIFETIME_SECONDS
            if is_old or number <= len(files) - MAX_FILES:
                path.unlink(missing_ok=True)
