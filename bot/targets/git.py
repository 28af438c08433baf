"""A git repository of postmortems: one branch an incident, with the Markdown, its drawings and data, and the JSON."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

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
from bot.targets._git_branch import branches, link, push_files

WORKSHOPS = "git"
"""Folder below the data directory."""


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
    # Before the push: what it may leave there is known to be ours even if its answer is lost.
    await means.progress.put("paths", json.dumps(sorted({*files, *earlier})))
    made = await push_files(
        settings,
        means.settings.data_dir / WORKSHOPS,
        branch=branch,
        files=files,
        stale=[path for path in earlier if path not in files],
        message=f"Postmortem of {incident}\n\n{parcel.key}\n",
        at=int(means.clock().timestamp()),
    )
    reached("delivery.sent")
    await means.progress.put("paths", json.dumps(sorted(files)))
    await means.progress.put("commit", made.commit)
    path = f"{folder}/{parcel.export.main}"
    text = (
        say("delivery.git_written", branch=branch, path=path, commit=made.commit[:12])
        if made.is_new
        else say("delivery.git_unchanged", branch=branch)
    )
    return Delivered(text=text, url=link(settings, branch, path), is_changed=made.is_new)


async def _earlier(means: Means, folder: str) -> tuple[str, ...]:
    """Paths that an earlier delivery wrote: those alone may be taken out of the repository again."""
    known = await means.progress.get("paths")
    found = json.loads(known) if known else []
    return tuple(path for path in found if PurePosixPath(path).is_relative_to(folder))


def _settings(settings: Settings) -> GitSettings:
    if settings.git is None:
        raise DeliveryError(
            "git: not set up: there is no [git] in RCA_CONFIG; add url", reason=Reason.UNSUPPORTED
        )
    return settings.git


async def check(settings: Settings, _http: httpx.AsyncClient) -> str:
    """Reads the list of branches; whether it may push shows only when it does."""
    own = _settings(settings)
    tips = await branches(own, settings.data_dir / WORKSHOPS)
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
