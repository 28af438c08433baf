"""Runs git on a throw-away repository: no shell, no hooks, no settings of the user or the machine, a deadline a call.

Each delivery fetches into a fresh folder, so that a killed process leaves no lock behind and no state is shared. The
commit is made from objects alone, without a work tree: a name or a link in the repository can lead nowhere.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shlex
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bot.errors import DeliveryError, Reason
from bot.target_settings import GitSettings

TIMEOUT_SECONDS = 120.0
"""A shallow fetch of a large repository over a slow line; more than this means that it hangs."""
_MOST_OUTPUT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """The program in one folder. environment: all that the program sees; it holds the token, and is never printed."""

    program: str
    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    where: str

    async def run(
        self, *words: str, given: bytes = b"", more: Mapping[str, str] | None = None
    ) -> str:
        """What the command printed, without the last line break.

        Raises:
            DeliveryError: it failed, or took too long.
        """
        code, output, error = await self.attempt(*words, given=given, more=more)
        if code != 0:
            raise self.fault(words[0], error)
        return output

    async def attempt(
        self, *words: str, given: bytes = b"", more: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Exit status, output and error output of a command.

        Raises:
            DeliveryError: it took too long; it and what it started are gone then.
        """
        process = await asyncio.create_subprocess_exec(
            self.program,
            *words,
            cwd=self.folder,
            env={**self.environment, **(more or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                output, error = await process.communicate(given)
        except TimeoutError as late:
            raise DeliveryError(
                f"{self.where}: git {words[0]} took more than {TIMEOUT_SECONDS:g} s; it is tried again",
                reason=Reason.TIMEOUT,
            ) from late
        finally:
            if process.returncode is None:
                _kill(process.pid)
                await process.wait()
        return (
            process.returncode or 0,
            output.decode("utf-8", "replace").rstrip("\n"),
            error[-_MOST_OUTPUT:].decode("utf-8", "replace"),
        )

    def fault(self, command: str, error: str) -> DeliveryError:
        """The error of a command that failed, by what it said."""
        lines = [line.strip() for line in error.splitlines() if line.strip()]
        fatal = [line for line in lines if line.startswith(("fatal:", "error:", "remote: error"))]
        said = (fatal or lines or ["it said nothing"])[0][:200]
        reason, advice = _meaning(error.lower())
        return DeliveryError(f"{self.where}: git {command} failed: {said}; {advice}", reason=reason)


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it is gone already, which is what was wanted


def _meaning(said: str) -> tuple[Reason, str]:
    """Source: messages of git 2.39 (remote-curl.c, transport.c, connect.c), in the C locale."""
    for reason, advice, signs in (
        (
            Reason.UNAUTHORISED,
            "give it a token or key that may push",
            ("authentication failed", "could not read username", "permission denied",
             "error: 401", "error: 403", "host key verification failed"),
        ),
        (
            Reason.CONFLICT,
            "somebody else pushed at the same time; it is tried again",
            ("stale info", "non-fast-forward", "fetch first", "cannot lock ref"),
        ),
        (
            Reason.UNSUPPORTED,
            "the repository's rules refuse the branch: allow rca/*",
            ("pre-receive hook declined", "protected branch", "hook declined"),
        ),
        (
            Reason.NOT_FOUND,
            "it has moved: correct [git] url",
            ("error: 301", "error: 302", "error: 307", "error: 308", "redirection"),
        ),
        (
            Reason.NOT_FOUND,
            "correct [git] url, or the rights of the token",
            ("repository not found", "does not appear to be a git repository",
             "does not exist", "error: 404"),
        ),
    ):  # fmt: skip
        if any(sign in said for sign in signs):
            return reason, advice
    return Reason.REFUSED, "it is tried again"


def prepared(settings: GitSettings, folder: Path, where: str) -> Git:
    """Everything that git needs for one delivery.

    The token goes into a header by git's own environment variables, so that it stands in no address, file or list of
    processes, and only for this host.

    Raises:
        DeliveryError: there is no git here.
        ConfigError: the file with the token cannot be read.
    """
    program = shutil.which("git")
    if program is None:
        raise DeliveryError(
            f"{where}: git is not installed; install the package git", reason=Reason.UNSUPPORTED
        )
    options = {
        "core.hooksPath": os.devnull,
        "credential.helper": "",
        "http.followRedirects": "false",
        "protocol.allow": "never",
        "protocol.https.allow": "always",
        "protocol.http.allow": "always",
        "protocol.ssh.allow": "always",
        "protocol.file.allow": "always",
        "gc.auto": "0",
        "user.useConfigOnly": "true",
        "commit.gpgSign": "false",
        "push.gpgSign": "false",
    }
    if settings.ca_file is not None:
        options["http.sslCAInfo"] = str(settings.ca_file)
    token = settings.read_token()
    if token is not None and settings.url.startswith(("http://", "https://")):
        parts = urlsplit(settings.url)
        basic = base64.b64encode(f"{settings.user}:{token}".encode()).decode()
        options[f"http.{parts.scheme}://{parts.netloc}/.extraHeader"] = (
            f"Authorization: Basic {basic}"
        )
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_AUTHOR_NAME": settings.author_name,
        "GIT_AUTHOR_EMAIL": settings.author_email,
        "GIT_COMMITTER_NAME": settings.author_name,
        "GIT_COMMITTER_EMAIL": settings.author_email,
        "GIT_SSH_COMMAND": _ssh(settings.ssh_key),
        "GIT_CONFIG_COUNT": str(len(options)),
    }
    for n, (key, value) in enumerate(options.items()):
        environment[f"GIT_CONFIG_KEY_{n}"] = key
        environment[f"GIT_CONFIG_VALUE_{n}"] = value
    return Git(program=program, folder=folder, environment=environment, where=where)


def _ssh(key: Path | None) -> str:
    words = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"]
    if key is not None:
        words += ["-o", "IdentitiesOnly=yes", "-i", str(key)]
    return shlex.join(words)
