"""Files that a heavy probe leaves for the caller: named by chance, bounded in bytes, told by their digest."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from bot.errors import ProbeError, Reason

ARTEFACT_ID = re.compile(r"[0-9a-f]{32}")
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """One file. `id` is its name in the agent's folder; `name` is what a person would save it as."""

    id: str
    name: str
    media_type: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ArtefactFolder:
    """Where a probe may write, and how much."""

    path: Path
    limit_bytes: int

    def new_path(self) -> Path:
        """A path that nobody can guess; the file is not there yet."""
        return self.path / os.urandom(16).hex()

    def keep(self, path: Path, name: str, media_type: str) -> Artefact:
        """Describes a file that was written to `new_path()`.

        Raises:
            ProbeError: it is not there, empty or larger than the limit; it is removed then.
        """
        try:
            size = path.stat().st_size
            if not 0 < size <= self.limit_bytes:
                path.unlink()
                raise ProbeError(
                    f"the profile has {size} bytes, from 1 to {self.limit_bytes} may be kept; "
                    "ask for fewer seconds"
                )
            path.chmod(0o600)
            return Artefact(
                id=path.name,
                name=name,
                media_type=media_type,
                bytes=size,
                sha256=file_digest(path),
            )
        except FileNotFoundError as error:
            raise ProbeError("the profiler ended without writing its file") from error
        except OSError as error:
            raise ProbeError(f"the profile cannot be kept: {error.strerror}") from error

    def copy(self, source: Path, name: str, media_type: str) -> Artefact:
        """Takes over a file that a service wrote.

        Raises:
            ProbeError: as `keep`.
        """
        target = self.new_path()
        try:
            # What the service wrote is a file: behind a link it could have the agent send any that the agent may read.
            descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                facts = os.fstat(descriptor)
                if not stat.S_ISREG(facts.st_mode):
                    raise ProbeError("the profile that the service left is no file")
                if facts.st_size > self.limit_bytes:
                    raise ProbeError(
                        f"the profile is larger than {self.limit_bytes} bytes; ask for fewer seconds"
                    )
                with target.open("xb") as copy:
                    shutil.copyfileobj(stream, copy, _CHUNK_BYTES)
        except PermissionError as error:
            raise ProbeError(
                "the agent may not read the service's profile; give it the group",
                reason=Reason.UNAUTHORISED,
            ) from error
        except OSError as error:
            raise ProbeError(f"the profile cannot be kept: {error.strerror}") from error
        return self.keep(target, name, media_type)


def file_digest(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
