"""A git repository of postmortems: one branch an incident, with the Markdown, its drawings and data, and the JSON."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from shutil import rmtree
from urllib.parse import quote, urlsplit

import httpx

from bot.checkpoint import reached
from bot.domain.postmortem import Postmortem
from bot.errors import DeliveryError, Reason
from bot.exporter import Export, ExportOptions
from bot.exporters import render_report
from bot.locales import say
from bot.report.wording import safe_name
from bot.settings import Settings
from bot.target import Delivered, Means, Parcel, Target
from bot.target_settings import GitSettings
from bot.targets._git_commands import prepared
from bot.targets._git_commit import commit, refs

TRIES = 3
_LEFTOVER_SECONDS = 86_400.0


def write(report: Postmortem, options: ExportOptions) -> Export:
    """The Markdown bundle with the JSON beside it."""
    written = render_report(report, ("md", "json"), options)
    files = {name: data for export in written.values() for name, data in export.files.items()}
    return Export(main=written["md"].main, files=files)


async def deliver(parcel: Parcel, means: Means) -> Delivered:
    """Brings the incident's branch to this report with one commit; with none where it is there already."""
    settings = _settings(means.settings)
    if parcel.export is None:
        raise ValueError("git takes a written report")
    incident = safe_name(parcel.incident)
    folder = f"{settings.folder}/{incident}"
    branch = f"rca/{incident}"
    files = {f"{folder}/{name}": content for name, content in parcel.export.files.items()}
    earlier = await _earlier(means, folder)
    await means.progress.put("paths", json.dumps(sorted({*files, *earlier})))
    with _Workshop(means.settings.data_dir / "git", means.clock().timestamp()) as workshop:
        program = prepared(settings, workshop, _where(settings))
        await program.run("init", "--quiet", "--bare", ".")
        made = None
        for attempt in range(1, TRIES + 1):
            tips = await refs(program, settings.url, branch, settings.branch)
            try:
                made = await commit(
                    program,
                    url=settings.url,
                    branch=branch,
                    base=settings.branch,
                    tips=tips,
                    files=files,
                    stale=[path for path in earlier if path not in files],
                    message=f"Postmortem of {incident}\n\n{parcel.key}\n",
                    at=int(means.clock().timestamp()),
                )
                break
            except DeliveryError as error:
                # Somebody pushed to the branch meanwhile: their commit becomes the parent of ours.
                if error.reason is not Reason.CONFLICT or attempt == TRIES:
                    raise
    if made is None:
        raise AssertionError("unreachable")
    reached("delivery.sent")
    await means.progress.put("paths", json.dumps(sorted(files)))
    await means.progress.put("commit", made.commit)
    path = f"{folder}/{parcel.export.main}"
    text = (
        say("delivery.git_written", branch=branch, path=path, commit=made.commit[:12])
        if made.is_new
        else say("delivery.git_unchanged", branch=branch)
    )
    return Delivered(text=text, url=_link(settings, branch, path), is_changed=made.is_new)


async def _earlier(means: Means, folder: str) -> tuple[str, ...]:
    """Paths that an earlier delivery wrote: those alone may be taken out of the repository again."""
    known = await means.progress.get("paths")
    found = json.loads(known) if known else []
    return tuple(path for path in found if PurePosixPath(path).is_relative_to(folder))


@dataclass(slots=True)
class _Workshop:
    """A fresh folder for one delivery, removed at its end; what a killed process left is removed at the next."""

    root: Path
    now: float
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


def _link(settings: GitSettings, branch: str, path: str) -> str | None:
    """Where people see the file; known for two services, else by the setting `web`."""
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


def _where(settings: GitSettings) -> str:
    if settings.url.startswith(("http://", "https://", "ssh://")):
        return f"git at {urlsplit(settings.url).hostname}"
    name = (
        settings.url.rpartition("@")[2].partition(":")[0] if "@" in settings.url else "this machine"
    )
    return f"git at {name}"


def _settings(settings: Settings) -> GitSettings:
    if settings.git is None:
        raise DeliveryError(
            "git: not set up: there is no [git] in RCA_CONFIG; add url", reason=Reason.UNSUPPORTED
        )
    return settings.git


async def check(settings: Settings, _http: httpx.AsyncClient) -> str:
    """Reads the list of branches; whether it may push shows only when it does."""
    own = _settings(settings)
    with _Workshop(settings.data_dir / "git", time.time()) as workshop:
        program = prepared(own, workshop, _where(own))
        tips = await refs(program, own.url, "rca/check", own.branch)
    grows = "is empty" if tips.base is None else f"has the branch {own.branch}"
    return f"the repository answers and {grows}"


git = Target(
    name="git",
    is_set_up=lambda settings: settings.git is not None,
    may_be_private=lambda settings: bool(settings.git and settings.git.private),
    write=write,
    deliver=deliver,
    check=check,
)
