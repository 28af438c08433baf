"""What an issue says, and how it is found again by the mark in its text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from bot.domain.action_item import ActionItem, ActionStatus
from bot.locales import translate
from bot.report.markdown import escape
from bot.report.plain import visible
from bot.report.wording import web_address
from bot.target import Means, Parcel
from bot.target_settings import GithubSettings
from bot.targets._http import Door

PAGES = 10
"""Pages of 100 that are looked through; an issue of ours is younger than the newest thousand in practice."""
MAX_TITLE = 256
"""Source: GitHub refuses a longer title with 422 ("title is too long (maximum is 256 characters)")."""
_SKEW = timedelta(minutes=5)

# GitHub turns these into notices to people and links from other issues, wherever they stand in a text.
_MENTIONS = re.compile(r"@(?=[A-Za-z0-9_-])|#(?=\d)|\b(?:GH|gh)(?=-\d)")


class State(Enum):
    """What becomes of an issue. The value is what is remembered."""

    OPEN = "open"
    DONE = "done"
    DROPPED = "dropped"

    @property
    def state(self) -> str:
        """The word of the API."""
        return "open" if self is State.OPEN else "closed"

    @property
    def reason(self) -> str:
        """The reason of the API."""
        return {"open": "reopened", "done": "completed", "dropped": "not_planned"}[self.value]


def state_of(item: ActionItem) -> State:
    """The state that the issue of an action item should have; what its author took back is dropped."""
    if item.text is None and item.status is ActionStatus.OPEN:
        return State.DROPPED
    return State(item.status.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Title and body of an issue."""

    title: str
    body: str

    @property
    def digest(self) -> str:
        """Changes exactly when the content does."""
        return hashlib.sha256(f"{self.title}\0{self.body}".encode()).hexdigest()


def content_of(parcel: Parcel, item: ActionItem) -> Content:
    """What the issue says; no part of it is markup, mentions anybody or refers to another issue."""
    locale = parcel.locale
    text = (
        item.text.in_locale(locale) if item.text else translate(locale, "delivery.issue_withheld")
    )
    line = " ".join(f"{parcel.incident}: {visible(text)}".split())
    intro = translate(locale, "delivery.issue_intro", n=item.n, incident=parcel.incident)
    lines = [_mark(parcel, item.n), _inert(intro), "", _inert(text), ""]
    if item.owner:
        lines.append(f"- {_inert(translate(locale, 'delivery.issue_owner', owner=item.owner))}")
    if item.due:
        lines.append(f"- {_inert(translate(locale, 'delivery.issue_due', due=item.due))}")
    lines += ["", f"*{_inert(translate(locale, 'delivery.issue_footer'))}*", ""]
    title = line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"
    return Content(title=title, body="\n".join(lines))


def _inert(text: str) -> str:
    return _MENTIONS.sub(lambda match: f"{match[0]}&#8203;", escape(text))


def _mark(parcel: Parcel, n: int) -> str:
    return f"<!-- rca-bot {parcel.key} action {n} -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Issues that carry our mark: number of the action item to number and address of its issue."""

    found: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def number(self, n: int) -> str | None:
        """Number of the issue of an action item."""
        return self.found[n][0] if n in self.found else None

    def url(self, n: int) -> str | None:
        """Its address."""
        return self.found[n][1] if n in self.found else None


async def known_issues(door: Door, settings: GithubSettings, parcel: Parcel, means: Means) -> Known:
    """Looks for issues of ours where it is not remembered whether there are any, and only then.

    First by label. Labels are dropped in silence where the token may not set them, so after a lost answer all issues
    since that request are looked through.

    Raises:
        DeliveryError: the list could not be read.
    """
    unsure = [
        opening
        for item in parcel.action_items
        if not await means.progress.get(f"issue:{item.n}")
        and (opening := await means.progress.get(f"opening:{item.n}"))
    ]
    found: dict[int, tuple[str, str]] = {}
    if unsure:
        since = min(datetime.fromisoformat(text) for text in unsure) - _SKEW
        await _search(door, settings, parcel, found, {"since": f"{since:%Y-%m-%dT%H:%M:%SZ}"})
    if not await means.progress.get("looked"):
        await _search(door, settings, parcel, found, {"labels": settings.label})
        await means.progress.put("looked", "1")
    return Known(found=found)


async def _search(
    door: Door,
    settings: GithubSettings,
    parcel: Parcel,
    found: dict[int, tuple[str, str]],
    narrowed: Mapping[str, str],
) -> None:
    marks = {_mark(parcel, item.n): item.n for item in parcel.action_items}
    for page in range(1, PAGES + 1):
        params = {"state": "all", "per_page": "100", "page": str(page), **narrowed}
        answer = await door.send("GET", f"/repos/{settings.repository}/issues", params=params)
        issues = door.value(answer)
        if not isinstance(issues, list):
            raise door.misshapen()
        for issue in issues:
            if not isinstance(issue, Mapping) or "pull_request" in issue:
                continue
            n = marks.get(str(issue.get("body") or "").split("\n", 1)[0].strip())
            if n is None:
                continue
            number, url = number_of(door, issue)
            # A copy of an issue carries its mark too; ours is the older one.
            if n not in found or int(number) < int(found[n][0]):
                found[n] = (number, url)
        if len(issues) < 100:
            return


def number_of(door: Door, issue: Any) -> tuple[str, str]:
    """Number and address of an issue as the API answers it.

    Raises:
        DeliveryError: it is not in the documented shape.
    """
    number = issue.get("number") if isinstance(issue, Mapping) else None
    url = web_address(issue.get("html_url")) if isinstance(issue, Mapping) else None
    if not isinstance(number, int) or isinstance(number, bool) or url is None:
        raise door.misshapen()
    return str(number), url
