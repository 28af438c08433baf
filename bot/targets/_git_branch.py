"""Files onto a branch of the team's repository, from a fresh folder that is gone afterwards."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from urllib.parse import quote, urlsplit

from bot.errors import DeliveryError, Reason
from bot.target_settings import GitSettings
from bot.targets._git_commands import prepared
from bot.targets._git_commit import Made, Tips, commit, refs

TRIES = 3
_LEFTOVER_SECONDS = 86_400.0


async def push_files(
    settings: GitSettings,
    workshops: Path,
    *,
    branch: str,
    files: Mapping[str, bytes],
    stale: Sequence[str] = (),
    message: str,
    at: int,
) -> Made:
    """Brings `branch` to hold `files`, with one commit; with none where it does already.

    workshops: folder for the throw-away repositories. stale: paths to take away. at: time of the commit, seconds since
    1970. Branch and paths are ours and hold no hostile character.

    Raises:
        DeliveryError: it was not taken; CONFLICT when somebody pushed to the branch each time.
        ConfigError: the file with the token cannot be read.
    """
    with _Workshop(workshops) as folder:
        program = prepared(settings, folder, where(settings))
        await program.run("init", "--quiet", "--bare", ".")
        attempt = 1
        while True:
            tips = await refs(program, settings.url, branch, settings.branch)
            try:
                return await commit(
                    program,
                    url=settings.url,
                    branch=branch,
                    base=settings.branch,
                    tips=tips,
                    files=files,
                    stale=stale,
                    message=message,
                    at=at,
                )
            except DeliveryError as error:
                # Somebody pushed to the branch meanwhile: their commit becomes the parent of ours.
                if error.reason is not Reason.CONFLICT or attempt == TRIES:
                    raise
            attempt += 1


async def branches(settings: GitSettings, workshops: Path) -> Tips:
    """Whether the repository answers, and has the branch to grow from.

    Raises:
        DeliveryError: it does not.
        ConfigError: the file with the token cannot be read.
    """
    with _Workshop(workshops) as folder:
        program = prepared(settings, folder, where(settings))
        return await refs(program, settings.url, "rca/check", settings.branch)


@dataclass(slots=True)
class _Workshop:
    """A folder for one piece of work; what a killed process left is removed at the next."""

    root: Path
    _made: Path | None = None

    def __enter__(self) -> Path:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in self.root.iterdir():
            if left.is_dir() and time.time() - left.stat().st_mtime > _LEFTOVER_SECONDS:
                rmtree(left, ignore_errors=True)
        self._made = Path(tempfile.mkdtemp(dir=self.root))
        return self._made

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            rmtree(self._made, ignore_errors=True)


def link(settings: GitSettings, branch: str, path: str) -> str | None:
    """Where people see a file; known for two services, else by the setting `web`."""
    web = settings.web
    if web is None and settings.url.startswith("https://"):
        base = settings.url.removesuffix(".git")
        match urlsplit(base).hostname:
            case "github.com":
                web = f"{base}/blob/{{branch}}/{{path}}"
            case "gitlab.com":
                web = f"{base}/-/blob/{{branch}}/{{path}}"
    if web is None:
        return None
    return web.replace("{branch}", quote(branch)).replace("{path}", quote(path))


def where(settings: GitSettings) -> str:
    """The place by the name of its host, for messages."""
    if settings.url.startswith(("http://", "https://", "ssh://")):
        return f"git at {urlsplit(settings.url).hostname}"
    if "@" in settings.url:
        return f"git at {settings.url.rpartition('@')[2].partition(':')[0]}"
    return "git on this machine"
